"""The client against a server that answers as traind does."""
import datetime
import hashlib
import json
import math
import os
import socket
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [ROOT, os.path.join(ROOT, "tests")]
os.environ.pop("TRAIND_URL", None)
os.environ.pop("TRAIND_DATA", None)

import traind
from client_fixture import ended, job_like as job
from fake_traind import FakeTraind, error, event
from tests.cases import case, main
from traind import discovery, progress, transport

TABLE = {"x": [1.0, 2.0, None], "kind": [True, False, True]}


def client(fake, **options):
    folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
    found = traind.connect(fake.url, data_folder=folder, **options)
    found.transport._retry_s = 1.0
    return found, folder


def raises(kind, function, *arguments, **options):
    try:
        function(*arguments, **options)
    except kind as e:
        return e
    raise AssertionError(f"no {kind.__name__}")


@case("train() writes the tables, submits the spec, waits, answers with the table's own labels, and removes the tables")
def _():
    with FakeTraind() as fake:
        ended(fake, "id,kind,p_false,p_true\n0,true,0.25,0.75\n1,false,0.5,0.5\n")
        found, folder = client(fake)
        seen = []
        submit = found.transport.json

        def spy(method, path, body=None, **options):
            if path == "/v1/jobs":
                with open(body["data"]["train"], encoding="utf-8") as f:
                    seen.append(f.read())
            return submit(method, path, body, **options)
        found.transport.json = spy
        answer = found.train(TABLE, target="kind", test={"x": [3, 4]}, budget=10, metric="accuracy", progress=False,
                             data={"folds": 3}, model={"mlp": {}})
        spec = fake.called("POST", "/v1/jobs")[0].json()
        assert list(answer["kind"]) == [True, False] and list(answer["p_true"]) == [0.75, 0.5], answer
        assert spec["budget"] == {"time": "10s"} and spec["task"] == {"metric": "accuracy"}, spec
        assert spec["data"]["target"] == "kind" and spec["data"]["folds"] == 3 and spec["model"] == {"mlp": {}}, spec
        assert os.path.dirname(spec["data"]["train"]) == folder == os.path.dirname(spec["data"]["test"]), spec
        assert seen == ["x,kind\n1.0,true\n2.0,false\n,true\n"], seen
        assert os.listdir(folder) == []


@case("submit_many() sends batches, and answers each spec with its Job or its error")
def _():
    with FakeTraind() as fake:
        good = [{"id": f"j-{i}", "created": True, "warnings": ["slow"], "status": "OK", "message": ""} for i in range(100)]
        bad = {"id": "", "created": False, "warnings": [], "status": "INVALID_ARGUMENT", "message": "data.target: no column"}
        fake.replies["POST /v1/jobs:batch"] = [(200, {"outcomes": good}), (200, {"outcomes": [bad, good[7]]})]
        found, folder = client(fake)
        specs = [{"data": {"train": TABLE, "target": "kind"}, "budget": "5s"} for _ in range(102)]
        answers = found.submit_many(specs, request_ids=[f"key-{i}" for i in range(102)], owner="ann")
        sent = [call.json()["submits"] for call in fake.called("POST", "/v1/jobs:batch")]
        assert [len(batch) for batch in sent] == [100, 2], [len(batch) for batch in sent]
        assert sent[1][1]["request_id"] == "key-101" and sent[0][0]["owner"] == "ann", sent[1][1]
        assert [answers[i].id for i in (0, 99, 101)] == ["j-0", "j-99", "j-7"] and answers[0].warnings == ["slow"]
        assert isinstance(answers[100], traind.SpecError) and answers[100].places[0].path == "data.target", answers[100]
        assert len(os.listdir(folder)) == 101  # the tables of those that run
        assert "102 specs have 1" in str(raises(ValueError, found.submit_many, specs, ["key"]))


def array_replies(fake, *batches):
    """Answers batches of so many specs; a negative number refuses all."""
    outcomes, number = [], 0
    for batch in batches:
        good = batch > 0
        outcomes.append((200, {"outcomes": [
            {"id": f"j-{number + i}" if good else "", "created": good, "warnings": [], "status": "OK" if good else "ABORTED",
             "message": ""} for i in range(abs(batch))]}))
        number += abs(batch)
    fake.replies["POST /v1/jobs:batch"] = outcomes
    return lambda: [call.json()["submits"] for call in fake.called("POST", "/v1/jobs:batch")]


@case("submit_array() submits a Job for each combination, with the array's labels and a table that is written once")
def _():
    with FakeTraind() as fake:
        sent = array_replies(fake, 4)
        found, folder = client(fake)
        spec = {"data": {"train": TABLE, "target": "kind"}, "labels": {"team": "a"}, "model": {"mlp": {}}}
        array = found.submit_array(spec, {"train.learning_rate": [0.1, 0.01], "data.seed": range(1, 3)}, name="grid",
                                   request_id="monday", owner="ann")
        (batch,) = sent()
        specs = [submit["spec"] for submit in batch]
        assert [(s["train"]["learning_rate"], s["data"]["seed"]) for s in specs] == [
            (0.1, 1), (0.1, 2), (0.01, 1), (0.01, 2)], specs
        assert [s["name"] for s in specs] == ["grid-0", "grid-1", "grid-2", "grid-3"]
        assert specs[3]["labels"] == {"team": "a", "array": "monday", "array_index": "3"}, specs[3]
        assert [s["request_id"] for s in batch] == [f"monday-{i}" for i in range(4)] and batch[0]["owner"] == "ann"
        assert not any("after" in s for s in specs)
        assert array.id == "monday" and [job.id for job in array] == ["j-0", "j-1", "j-2", "j-3"] and not array.errors
        assert array.settings[2] == {"train.learning_rate": 0.01, "data.seed": 1}, array.settings
        assert "seed" not in spec["data"] and "array" not in spec["labels"], spec
        paths = [s["data"]["train"] for s in specs]
        assert len(set(paths)) == 4 and len({os.stat(path).st_ino for path in paths}) == 1, paths


@case("With at_once each Job of an array waits for the last one of its lane that was taken")
def _():
    with FakeTraind() as fake:
        sent = array_replies(fake, 2, -2, 1)
        array = client(fake)[0].submit_array({"name": "x"}, {"data.seed": range(5)}, at_once=2)
        after = [submit["spec"].get("after") for batch in sent() for submit in batch]
        waits = [{"jobs": [id], "end": "any"} for id in ("j-0", "j-1")]
        assert after == [None, None, waits[0], waits[1], waits[0]], after
        assert [job.id for job in array.jobs] == ["j-0", "j-1", "j-4"] and len(array.errors) == 2, array
        assert len({submit["spec"]["labels"]["array"] for batch in sent() for submit in batch}) == 1
        assert [submit["spec"]["name"] for batch in sent() for submit in batch] == ["x"] * 5


@case("submit_array() refuses what is no array, and at_once beside `after`, before anything is sent")
def _():
    with FakeTraind() as fake:
        submit = client(fake)[0].submit_array
        assert "not '1..5'" in str(raises(TypeError, submit, {}, {"data.seed": "1..5"}))
        assert "is empty" in str(raises(ValueError, submit, {}, {"data.seed": []}))
        assert "needs a field" in str(raises(ValueError, submit, {}, {}))
        assert "more than 10000" in str(raises(ValueError, submit, {}, {"a": range(101), "b": range(100)}))
        assert "more than 10000" in str(raises(ValueError, submit, {}, {"a": iter(int, 1)}))
        assert "model is 'mlp'" in str(raises(TypeError, submit, {"model": "mlp"}, {"model.mlp.dropout": [0.1]}))
        assert "at_once is 0" in str(raises(ValueError, submit, {}, {"data.seed": [1]}, at_once=0))
        assert "do not go together" in str(raises(ValueError, submit, {"after": "a"}, {"data.seed": [1]}, at_once=1))
        assert "do not go together" in str(raises(ValueError, submit, {}, {"after.jobs": [["a"]]}, at_once=1))
        assert not fake.called("POST", "/v1/jobs:batch")


@case("An array is cancelled from its end, without the Jobs that have ended")
def _():
    with FakeTraind() as fake:
        array_replies(fake, 3)
        array = client(fake)[0].submit_array({}, {"data.seed": range(3)})
        for i, state in enumerate(("RUNNING", "SUCCEEDED", "QUEUED")):
            fake.replies[f"GET /v1/jobs/j-{i}"] = [(200, {"id": f"j-{i}", "state": state})]
            fake.replies[f"POST /v1/jobs/j-{i}:cancel"] = [(200, {"id": f"j-{i}", "state": "CANCELLED"})]
        assert array.cancel() == 2
        assert [path for path in (c.path for c in fake.calls) if path.endswith(":cancel")] == [
            "/v1/jobs/j-2:cancel", "/v1/jobs/j-0:cancel"]


@case("Without a target, train() names the argument that was probably meant")
def _():
    with FakeTraind() as fake:
        found = client(fake)[0]
        assert "no tagret=, did you mean target=?" in str(raises(TypeError, found.train, TABLE, tagret="kind"))
        assert str(raises(TypeError, found.train, TABLE, model="auto")).endswith("the column to predict")


@case("Without rows to predict, train() returns the Job; its warnings are Python warnings")
def _():
    import warnings
    with FakeTraind() as fake:
        ended(fake)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = client(fake)[0].train(TABLE, target="kind", progress=False)
        assert isinstance(result, traind.Job) and result.quality == "FULL", result
        assert [str(w.message) for w in caught if w.category is traind.TraindWarning] == ["a column is constant"]
        assert caught[0].filename == __file__, caught[0].filename


@case("A Submit carries an Idempotency-Key, and is repeated with the same one while the server is not there")
def _():
    with FakeTraind() as fake:
        ended(fake)
        fake.replies["POST /v1/jobs"] = [(503, error("UNAVAILABLE", "later")), (200, None),
                                         (200, {"job": job(), "created": True})]
        client(fake)[0].submit("name: x\n", request_id="mine")
        calls = fake.called("POST", "/v1/jobs")
        assert [c.headers["Idempotency-Key"] for c in calls] == ["mine"] * 3, calls
        assert calls[0].body == "name: x\n" and calls[0].headers["Content-Type"] == "application/yaml"


@case("`after` takes Jobs, ids, or the field's own dict")
def _():
    with FakeTraind() as fake:
        ended(fake)
        found = client(fake)[0]
        first = found.submit({"name": "x"})
        for after in (first, [first, "b"], {"jobs": [first], "end": "any"}):
            found.submit({"name": "y", "after": after})
        sent = [json.loads(call.body).get("after") for call in fake.called("POST", "/v1/jobs")]
        assert sent == [None, [first.id], [first.id, "b"], {"jobs": [first.id], "end": "any"}], sent


@case("A token goes with every call, from the argument, a file or the environment; never in plain text to another host")
def _():
    with FakeTraind() as fake, tempfile.TemporaryDirectory() as folder:
        fake.replies["GET /v1/jobs"] = [(200, {"jobs": []})]
        path = os.path.join(folder, "ann.token")
        with open(path, "w") as f:
            f.write("traind_1\n")
        client(fake, token="traind_0")[0].jobs()
        client(fake, token_file=path)[0].jobs()
        os.environ["TRAIND_TOKEN"] = "traind_2"
        try:
            client(fake)[0].jobs()
        finally:
            del os.environ["TRAIND_TOKEN"]
        client(fake)[0].jobs()
        sent = [call.headers["Authorization"] for call in fake.calls]
        assert sent == ["Bearer traind_0", "Bearer traind_1", "Bearer traind_2", None], sent
        wrong = raises(ValueError, traind.connect, "http://train.example:7071", token="traind_0")
        assert "must begin with https://" in str(wrong), wrong


@case("What must not happen twice is not repeated: a broken connection is an error at once")
def _():
    with FakeTraind() as fake:
        fake.replies["POST /v1/jobs"] = [(200, None)]
        raises(traind.UnreachableError, client(fake)[0].transport.json, "POST", "/v1/jobs", {})
        assert len(fake.calls) == 1, fake.calls


@case("A server that does not come is told with its address, after the time for retries")
def _():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    found = transport.Transport(url, retry_s=0.3)
    begin = time.monotonic()
    e = raises(traind.UnreachableError, found.json, "GET", "/v1/jobs")
    assert url in str(e) and 0.1 < time.monotonic() - begin < 5, e


@case("A wrong spec is an error with each place, of the details or of the message's lines")
def _():
    with FakeTraind() as fake:
        found, folder = client(fake)
        fake.replies["POST /v1/jobs"] = [(400, error("INVALID_ARGUMENT", "2 errors", [
            {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "INVALID_FIELD", "domain": "traind",
             "metadata": {"field": "model.mpl", "message": "unknown key", "line": "4", "column": "9"}},
            {"@type": "type.googleapis.com/google.rpc.ErrorInfo",
             "metadata": {"field": "budget.time", "message": "budget.time: no unit"}},
        ]))]
        e = raises(traind.SpecError, found.submit, {"data": {"train": TABLE, "target": "kind"}})
        assert e.places == [traind.Place("model.mpl", "unknown key", 4, 9), traind.Place("budget.time", "no unit")], e.places
        assert isinstance(e, ValueError) and os.listdir(folder) == []  # the table of a refused spec is gone
        fake.replies["POST /v1/jobs"] = [(400, error(
            "INVALID_ARGUMENT", "job.yaml:4:9: error: unknown key 'mpl' in model\ndata.folds: must be at least 2"))]
        e = raises(traind.SpecError, found.submit, "x: 1\n")
        assert [str(p) for p in e.places] == ["4:9: unknown key 'mpl' in model", "data.folds: must be at least 2"], e.places


@case("A table outside the data roots is an error that says what to do")
def _():
    with FakeTraind() as fake:
        fake.replies["POST /v1/jobs"] = [(400, error("INVALID_ARGUMENT",
                                                     "data.train: /x lies outside the data roots: /srv"))]
        e = raises(traind.DataFolderError, client(fake)[0].submit, {"data": {"train": "/x"}})
        assert "--data-root" in str(e) and "data_folder" in str(e) and e.places[0].path == "data.train", e


@case("A server on another machine gets a table in parts, and the spec names it there; a part whose answer was lost goes again")
def _():
    with FakeTraind() as fake, tempfile.TemporaryDirectory() as folder:
        remote = client(fake)[0]
        remote._folder = None  # as for an address that is not this machine's
        fake.replies["POST /v1/jobs"] = [(200, {"job": job(), "created": True})]
        table = os.path.join(folder, "rows of mine.csv")
        with open(table, "w") as f:
            f.write("x\n" + "1\n" * 10)
        size = os.path.getsize(table)
        with open(table, "rb") as f:
            route = f"/v1/uploads/{hashlib.sha256(f.read()).hexdigest()}/rows_of_mine.csv"
        there = {"present": True, "offset": size, "path": "/srv/state/uploads/x.csv"}
        fake.replies["PUT " + route] = [(200, {"present": False, "offset": 4, "path": ""}), (200, None), (200, there)]
        assert remote.upload(table) == "/srv/state/uploads/x.csv"
        sent = [(call.path.partition("?")[2], call.body) for call in fake.called("PUT", route)]
        rest = ("size_bytes=22&offset=4", "x\n" + "1\n" * 10)
        assert sent[0] == ("size_bytes=22&offset=0", "") and sent[1:] == [(rest[0], rest[1][4:])] * 2, sent
        # A frame goes the same way, and no file of this machine with that name is removed afterwards.
        remote.upload = lambda path: "/srv/state/uploads/table.csv"
        remote.submit({"data": {"train": TABLE, "target": "x"}})
        assert fake.called("POST", "/v1/jobs")[0].json()["data"]["train"] == "/srv/state/uploads/table.csv"


@case("Each status has a class of its own")
def _():
    with FakeTraind() as fake:
        found, _ = client(fake)
        for status, code, kind in (("NOT_FOUND", 404, traind.NotFoundError), ("ALREADY_EXISTS", 409, traind.ConflictError),
                                   ("FAILED_PRECONDITION", 400, traind.StateError),
                                   ("RESOURCE_EXHAUSTED", 429, traind.LimitError), ("INTERNAL", 500, traind.TraindError)):
            fake.replies["GET /v1/jobs/x"] = [(code, error(status, "why"))]
            e = raises(kind, found.job, "x")
            assert e.status == status and str(e) == "why", e
        fake.replies["GET /v1/jobs/x"] = [(404, "no JSON")]
        assert "no JSON" in str(raises(traind.NotFoundError, found.job, "x"))


@case("wait() goes on when the stream breaks or ends, and reads the Job anew")
def _():
    with FakeTraind() as fake:
        last = ended(fake)
        fake.replies["GET /v1/jobs/blobs-1/events"] = [(200, event(job("RUNNING", 2))), (200, None), (503, error(
            "UNAVAILABLE", "restarting")), (429, error("RESOURCE_EXHAUSTED", "256 streams are open")), (200, event(job("PAUSED"), "other") + event(last))]
        fake.replies["GET /v1/jobs/blobs-1"] = [(200, job()), (200, job()), (200, job()), (200, last)]
        found, _ = client(fake)
        done = found.submit("x: 1\n").wait(progress=False)
        assert done.ended and done.status == "SUCCEEDED", done


@case("wait() raises for a Job without a prediction, and for one that takes too long")
def _():
    with FakeTraind() as fake:
        ended(fake)
        fake.replies["GET /v1/jobs/blobs-1/events"] = [(200, event(job("FAILED", end_message="no column 'y'")))]
        found, _ = client(fake)
        e = raises(traind.JobFailedError, found.submit("x: 1\n").wait, progress=False)
        assert "no column 'y'" in str(e) and e.job.info["state"] == "FAILED", e
        fake.replies["GET /v1/jobs/blobs-1/events"] = [(200, event(job()))]
        fake.replies["GET /v1/jobs/blobs-1"] = [(200, job())]
        begin = time.monotonic()
        raises(traind.WaitTimeoutError, found.submit("x: 1\n").wait, progress=False, timeout=0.5)
        assert time.monotonic() - begin < 5


@case("predict() submits the rows, and answers with the labels of the training table")
def _():
    with FakeTraind() as fake:
        ended(fake)
        fake.replies["POST /v1/jobs/blobs-1:predict"] = [(200, {"job": job("QUEUED"), "created": True})]
        found, folder = client(fake)
        trained = found.submit({"data": {"train": TABLE, "target": "kind"}}).wait(progress=False)
        answer = trained.predict({"x": [1]}, budget="5s")
        call = fake.called("POST", "/v1/jobs/blobs-1:predict")[0]
        assert list(answer["kind"]) == [True], answer
        assert call.json()["budget"] == "5s" and call.headers["Idempotency-Key"], call.body
        assert os.listdir(folder) == []


@case("predict_rows() sends values as they would stand in a file")
def _():
    with FakeTraind() as fake:
        fake.replies["POST /v1/jobs/blobs-1:predictRows"] = [(200, {
            "targets": ["kind"], "classes": ["false", "true"], "rows": [{"values": ["true"], "probabilities": [0.25, 0.75]}]})]
        answer = client(fake)[0].predict_rows("blobs-1", [{"x": None, "c": "red"}], [True, False])
        assert fake.calls[0].json() == {"columns": ["x", "c"], "rows": [{"values": ["", "red"]}]}, fake.calls[0].body
        assert list(answer["kind"]) == [True] and list(answer["p_true"]) == [0.75], answer


@case("metrics() has all points in the order in which they were recorded, or those of the names that are asked for")
def _():
    with FakeTraind() as fake:
        ended(fake)

        def series(name, sequences):
            return {"name": name, "fold": 1, "attempt": 3, "points": len(sequences), "sequence": sequences,
                    "step": [10 * s for s in sequences], "epoch": [float(s) for s in sequences],
                    "at_s": [1796148000.25] * len(sequences), "value": ["NaN"] + [0.5] * (len(sequences) - 1)}
        fake.replies["GET /v1/jobs/blobs-1/metrics"] = [(200, {"series": [
            series("loss", [1, 4]), series("val_metric", [2, 3])], "last_sequence": 4})]
        found = client(fake)[0].job("blobs-1")
        points = found.points()
        assert [p["sequence"] for p in points] == [1, 2, 3, 4] and [p["name"] for p in points][1:3] == ["val_metric"] * 2
        assert points[3] == {"sequence": 4, "at": "2026-12-01T18:00:00.250+00:00", "fold": 1, "attempt": 3, "step": 40,
                             "epoch": 4.0, "name": "loss", "value": 0.5}, points[3]
        assert math.isnan(points[0]["value"]), points[0]
        columns = found.metrics("loss", "val_metric")
        assert list(columns["step"]) == [10, 20, 30, 40], columns
        asked = [c.path.partition("?")[2] for c in fake.called("GET", "/v1/jobs/blobs-1/metrics")]
        assert asked == ["columns=true&max_points=0", "columns=true&max_points=0&names=loss%2Cval_metric"], asked


@case("jobs() reads page by page up to the limit")
def _():
    with FakeTraind() as fake:
        fake.replies["GET /v1/jobs"] = [(200, {"jobs": [job()], "next_page_token": "t&1"}), (200, {"jobs": []}), (
            200, {"jobs": [], "next_page_token": ""})]
        found, _ = client(fake)
        fake.replies["GET /v1/jobs"].insert(1, (200, {"jobs": [], "next_page_token": "t2"}))  # a page may be empty
        fake.replies["GET /v1/jobs"].insert(2, (200, {"jobs": [job(), job()], "next_page_token": "t3"}))
        assert len(found.jobs(limit=3, labels={"team": "vision", "a": "b"})) == 3
        assert "page_token=t%261" in fake.calls[1].path, fake.calls[1].path
        assert "labels=team%3Dvision&labels=a%3Db" in fake.calls[0].path, fake.calls[0].path


@case("plan() asks what would be, and leaves no table behind")
def _():
    with FakeTraind() as fake:
        fake.replies["POST /v1/plan"] = [(200, {"plan": {"folds": 5}})]
        found, folder = client(fake)
        assert found.plan({"data": {"train": TABLE, "target": "kind"}})["plan"]["folds"] == 5
        assert os.listdir(folder) == []


@case("The verbs of a Job call the routes of the gateway")
def _():
    with FakeTraind() as fake:
        ended(fake)
        found, folder = client(fake)
        handle = found.submit("x: 1\n")
        for verb in ("finish", "cancel", "pause", "resume"):
            fake.replies[f"POST /v1/jobs/blobs-1:{verb}"] = [(200, job("RUNNING", 9))]
            assert getattr(handle, verb)().info["version"] == 9
        fake.replies["PATCH /v1/jobs/blobs-1"] = [(200, job())]
        handle.update(budget=90, priority=0)
        assert fake.called("PATCH", "/v1/jobs/blobs-1")[0].json() == {"budget": "90s", "priority": 0}
        handle.update(budget=datetime.datetime(2026, 12, 1, tzinfo=datetime.timezone.utc))
        assert fake.called("PATCH", "/v1/jobs/blobs-1")[1].json() == {"deadline": "2026-12-01T00:00:00+00:00"}
        fake.replies["DELETE /v1/jobs/blobs-1"] = [(200, {"id": "blobs-1"})]
        handle.delete()
        path = handle.fetch(os.path.join(folder, "answer.csv"))
        with open(path, encoding="utf-8") as f:
            assert f.read() == "id,kind\n0,true\n"


@case("The leaderboard joins the models of a setting, the heaviest first, with the floor by its name")
def _():
    with FakeTraind() as fake:
        members = [{"fold": f, "trial": 1, "kind": "mlp", "score": 0.5 + f, "weight": 0.1, "complete": True} for f in (0, 1)]
        members += [{"fold": 0, "trial": 0, "kind": "lightgbm", "score": 0.9, "weight": 0.6, "complete": False},
                    {"fold": -1, "trial": 0, "kind": "logistic", "score": None, "weight": 0.2, "complete": True}]
        ended(fake, predictions={"members": members}, trials=[{"index": 0, "name": "lightgbm-1"}, {"index": 1, "name": "mlp-1"}])
        board = client(fake)[0].job("blobs-1").leaderboard()
        rows = board if isinstance(board, list) else board.to_dict("records")
        assert [(r["name"], r["models"], r["complete"]) for r in rows] == [
            ("lightgbm-1", 1, False), ("mlp-1", 2, True), ("floor", 1, True)], rows
        assert rows[1]["score"] == 1.0 and abs(rows[1]["weight"] - 0.2) < 1e-12, rows


@case("The leaderboard of a Job that had nothing to predict has the models that were trained")
def _():
    with FakeTraind() as fake:
        folds = [{"index": 0, "trial": 0, "state": "DONE", "score": 0.5}, {"index": 1, "trial": 0, "state": "PARTIAL", "score": 0.7},
                 {"index": 0, "trial": 1, "state": "PENDING", "score": None}]
        ended(fake, predictions=None, folds=folds, trials=[{"index": 0, "name": "mlp-1", "kind": "mlp"}])
        board = client(fake)[0].job("blobs-1").leaderboard()
        rows = board if isinstance(board, list) else board.to_dict("records")
        assert rows == [{"name": "mlp-1", "kind": "mlp", "models": 2, "score": 0.6, "weight": 0.0, "complete": False}], rows


@case("Answers and importance are columns, with NaN where nothing is known")
def _():
    with FakeTraind() as fake:
        answers = [{"number": 1, "at_s": 0.2, "quality": "QUALITY_FLOOR", "oof": 0.8, "comparable": True, "test": None, "models": 0},
                   {"number": 2, "at_s": 1.5, "quality": "QUALITY_FULL", "oof": 0.9, "comparable": True, "test": 0.7, "models": 5}]
        importance = [{"column": "age", "drop": 0.1, "error": 0.01, "folds": 5}, {"column": "town", "drop": 0.0, "error": None, "folds": 1}]
        ended(fake, report={"answers": answers, "importance": importance})
        job = client(fake)[0].job("blobs-1")
        columns = job.answers()
        assert list(columns["at_s"]) == [0.2, 1.5] and list(columns["models"]) == [0, 5], columns
        assert columns["test"][0] != columns["test"][0] and columns["test"][1] == 0.7, columns
        columns = job.importance()
        assert list(columns["column"]) == ["age", "town"] and list(columns["folds"]) == [5, 1], columns
        assert columns["error"][1] != columns["error"][1] and columns["error"][0] == 0.01, columns


@case("A Job shows itself as text and as HTML, in which nothing of the server's is taken as markup")
def _():
    with FakeTraind() as fake:
        ended(fake, end_message="<script>x</script>", name="<b>")
        found = client(fake)[0].job("blobs-1")
        shown = found._repr_html_()
        assert "<script" not in shown and "&lt;script&gt;" in shown and "width:100%" in shown, shown
        assert "blobs-1" in repr(found) and "SUCCEEDED" in repr(found)


@case("The server is the argument, else $TRAIND_URL, else the one started here, else the one on this machine")
def _():
    with FakeTraind() as fake:
        fake.replies["GET /v1/jobs"] = [(200, {"jobs": []})]
        assert discovery.find_url("a", "b") == "a"
        os.environ["TRAIND_URL"] = "http://env:1"
        try:
            assert discovery.find_url(None, "b") == "http://env:1"
        finally:
            del os.environ["TRAIND_URL"]
        assert discovery.find_url(None, "b") == "b"
        there, discovery.DEFAULT_URL = discovery.DEFAULT_URL, fake.url
        discovery._PROC = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))  # no process runs
        try:
            assert discovery.find_url() == fake.url
            fake.replies["GET /v1/jobs"] = [(200, "another program")]
            e = raises(traind.ServerNotFoundError, traind.train, TABLE, target="kind")
            assert "traind.start()" in str(e) and "--standalone" in str(e), e
        finally:
            discovery.DEFAULT_URL, discovery._PROC = there, "/proc"


def process(proc, pid, program, inode):
    """A folder as /proc has it, of a process with one socket."""
    os.makedirs(os.path.join(proc, str(pid), "fd"))
    os.symlink(f"socket:[{inode}]", os.path.join(proc, str(pid), "fd", "7"))
    with open(os.path.join(proc, str(pid), "cmdline"), "w", encoding="utf-8") as f:
        f.write(f"{program}\0--standalone\0")


@case("A traind of this user is found by its process and the port that answers HTTP; of several none is guessed")
def _():
    proc = discovery._PROC = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
    try:
        with FakeTraind() as one, FakeTraind() as two, socket.socket() as grpc:
            grpc.bind(("127.0.0.1", 0))  # it does not listen, so nothing answers there
            ports = [int(u.rpartition(":")[2]) for u in (one.url, two.url)] + [grpc.getsockname()[1]]
            os.mkdir(os.path.join(proc, "net"))
            with open(os.path.join(proc, "net", "tcp"), "w", encoding="ascii") as f:
                f.write("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n")
                for i, (port, state) in enumerate(zip(ports + ports[:1], ("0A", "0A", "0A", "01"))):
                    f.write(f"   {i}: 0100007F:{port:04X} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000 0 0 "
                            f"{100 + i} 1 0 100 0 0 10 0\n")
            for fake in (one, two):
                fake.replies["GET /v1/jobs"] = [(200, {"jobs": []})]
            process(proc, 5, "/bin/traind", 100)
            os.symlink("socket:[102]", os.path.join(proc, "5", "fd", "8"))  # the port of gRPC
            process(proc, 6, "/bin/trainworker", 101)
            process(proc, 7, "traind", 103)  # a connection, no port
            process(proc, 8, "traind", 999)
            assert discovery.find_url() == one.url
            process(proc, 9, "traind", 101)
            e = raises(traind.ServerNotFoundError, discovery.find_url)
            assert one.url in str(e) and two.url in str(e) and "TRAIND_URL" in str(e), e
    finally:
        discovery._PROC = "/proc"


@case("Without tqdm a plain line tells state, folds, score and time left")
def _():
    import io
    out = io.StringIO()
    line = progress.PlainProgress("blobs", out)
    scores = {"metric": "accuracy", "oof": 0.5}  # of the answer, whatever the folds' are
    folds = [{"state": "DONE", "score": 0.4}, {"state": "RUNNING", "progress": {"planned": 40, "done": 10}},
             {"state": "DROPPED"}]
    for state in ("RUNNING", "RUNNING", "SUCCEEDED"):
        line.update(job(state, folds=folds, scores=scores, remaining_s=75.2))
    line.close()
    assert out.getvalue().splitlines() == ["blobs  62% RUNNING  folds 1/2  accuracy 0.5  1m15s left",
                                           "blobs 100% SUCCEEDED  folds 1/2  accuracy 0.5"], out.getvalue()
    waiting = job("QUEUED", pending_reason="RESOURCES", waits_for="4 slots; 2 free")
    assert progress.describe(waiting).endswith("waits: RESOURCES (4 slots; 2 free)"), progress.describe(waiting)


@case("Times are read with any number of digits of the second, also by old versions of Python")
def _():
    want = datetime.datetime(2026, 12, 1, 18, 0, 0, 120000, datetime.timezone.utc).timestamp()
    for text in ("2026-12-01T18:00:00.12Z", "2026-12-01T18:00:00.120000000Z", "2026-12-01T19:00:00.120+01:00"):
        assert progress.moment(text) == want, text
    assert progress.moment(None) is None


@case("Many threads may use one client")
def _():
    with FakeTraind() as fake:
        ended(fake)
        found, _ = client(fake)
        done = []
        threads = [threading.Thread(target=lambda: done.append(found.job("blobs-1").id)) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert done == ["blobs-1"] * 20, done


main()
