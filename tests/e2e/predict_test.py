"""Rows that come later, predicted with the models of a Job: as a file, and at once."""
import glob
import gzip
import io
import json
import os
import random
import threading
import zipfile

from tests.cases import case, main
from tests.e2e.harness import House, blobs, eventually, moment, rows_of, sha256


def trained(house, **changes):
    house.start()
    job = house.submit(house.spec(**changes), "--wait")
    assert job["state"] == "SUCCEEDED" and job["quality"] == "FULL", job
    return job


def test_file(house, rows=400):
    return os.path.join(house.data, f"test{rows}.csv")


def predict(house, job, path, *arguments, code=0):
    return house.json("predict", job["id"], "--data", path, *arguments, code=code)


def zipped(name, content):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return packed.getvalue()


def manifest_of(house, job):
    with open(os.path.join(house.results(job["id"]), "current/manifest.json")) as f:
        return json.load(f)


def wide_file(house, name, rows):
    """More rows than a Rank predicts in a moment."""
    head, *lines = blobs(2000, seed=5).strip().split("\n")
    with open(os.path.join(house.data, name), "w") as f:
        f.write(head + "\n")
        for i in range(rows):
            f.write(str(i) + lines[i % len(lines)][lines[i % len(lines)].index(","):] + "\n")
    return os.path.join(house.data, name)


def lasting(house, job, least_s):
    """A file that takes so long to predict on this machine; its rows, its Job, its seconds."""
    rows, took = 30000, 0
    while took < least_s:
        rows *= 2
        path = wide_file(house, "wide.csv", rows)
        whole = predict(house, job, path)
        assert whole["quality"] == "FULL", whole
        took = moment(whole["finished_at"]) - moment(whole["started_at"])
    return path, rows, whole, took


@case("A Job's own test file gives its own Prediction again, byte by byte, with its cache gone")
def _():
    with House(slots=2) as house:
        job = trained(house, folds=3, epochs=5)
        for name in os.listdir(os.path.join(house.state, "cache")):
            os.unlink(os.path.join(house.state, "cache", name))
        copy = os.path.join(house.root, "later.csv")
        again = predict(house, job, test_file(house), "--out", copy, "--budget", "30s")
        assert (again["state"], again["quality"]) == ("SUCCEEDED", "FULL"), again
        assert again["models_from"] == job["id"], again
        assert sha256(copy) == job["predictions"]["sha256"] == again["predictions"]["sha256"]
        assert again["scores"]["oof"] == job["scores"]["oof"] and again["scores"]["comparable"], again
        manifest = house.standing(again["id"])
        members = manifest["members"]
        assert [m["fold"] for m in members] == [0, 1, 2], manifest
        assert abs(sum(m["weight"] for m in members) - 1) < 1e-12, members
        assert all(m["step"] > 0 and 0 < m["best_epoch"] <= 5 for m in members), members
        assert manifest["models_from"] == job["id"], manifest
        before = {m["fold"]: m["step"] for m in manifest_of(house, job)["members"]}
        assert before == {m["fold"]: m["step"] for m in members}, (before, members)
        assert moment(again["finished_at"]) <= moment(again["deadline"]), again


def noisy(rows, seed, known=True):
    """Numbers whose noise grows with them."""
    chance = random.Random(seed)
    text = "id,x,price\n" if known else "id,x\n"
    for i in range(rows):
        x = chance.uniform(1, 10)
        price = 10 * x + x * chance.gauss(0, 1)
        text += f"{i},{x},{price}\n" if known else f"{i},{x}\n"
    return text


@case("Quantiles stand beside the answer: of the test rows, of a later file, and of rows at once")
def _():
    with House(slots=2) as house:
        house.start()
        house.write("train.csv", noisy(600, 1))
        test = house.write("test.csv", noisy(400, 2))
        spec = {"name": "priced", "data": {"train": "train.csv", "test": "test.csv", "target": "price", "id": "id"},
                "model": {"lightgbm": {}}, "train": {"epochs": 40}, "budget": {"time": "30s"},
                "predictions": {"quantiles": [0.1, 0.9]}}
        job = house.submit(spec, "--wait")
        assert job["state"] == "SUCCEEDED" and job["predictions"]["members"], job
        head, *rows = rows_of(job["predictions"]["path"])
        assert head == ["id", "price", "price_q0.1", "price_q0.9"], head
        truth = [float(row[2]) for row in rows_of(test)[1:]]
        inside = sum(float(row[2]) <= y <= float(row[3]) for row, y in zip(rows, truth)) / len(rows)
        assert 0.7 < inside < 0.9, inside
        told = {s["level"]: s for s in job["scores"]["test_quantiles"]}
        assert sorted(told) == [0.1, 0.9] and len(job["scores"]["quantiles"]) == 2, job["scores"]
        for at, (level, score) in enumerate(sorted(told.items())):
            quantiles = [float(row[2 + at]) for row in rows]
            below = sum(y <= q for y, q in zip(truth, quantiles)) / len(rows)
            pinball = sum(max(level * (y - q), (level - 1) * (y - q)) for y, q in zip(truth, quantiles)) / len(rows)
            assert abs(score["below"] - below) <= 0.003, (score, below)
            assert abs(score["pinball"] - pinball) <= 1e-3 * pinball, (score, pinball)
        assert "0.1:" in house.cli("get", job["id"]).stdout, house.cli("get", job["id"]).stdout
        house.kill_daemon()
        house.start()
        again = house.job(job["id"])
        assert again["scores"] == job["scores"], (again["scores"], job["scores"])
        widths = sorted((float(row[1]), float(row[3]) - float(row[2])) for row in rows)
        assert widths[-1][1] > 2 * widths[0][1], (widths[0], widths[-1])
        again = predict(house, job, test)
        assert rows_of(again["predictions"]["path"]) == [head] + rows, again
        result = house.cli("predict", job["id"], "--rows", house.write("few.csv", noisy(400, 2, known=False)))
        few = [line.split(",") for line in result.stdout.strip().split("\n")]
        assert few[0] == head[1:], few[0]
        for row, at_once in zip(rows, few[1:]):
            for told, same in zip(row[1:], at_once):
                assert abs(float(told) - float(same)) <= 1e-4 * abs(float(told)), (row, at_once)


@case("A floor that answers predicts later rows like its own test rows: as a file, and at once")
def _():
    with House(slots=2) as house:
        house.start()
        job = house.submit(house.spec(folds=2, epochs=1, train={"learning_rate": 1e-9}), "--wait")
        assert (job["state"], job["quality"]) == ("SUCCEEDED", "FLOOR"), job
        again = predict(house, job, test_file(house))
        assert (again["state"], again["quality"]) == ("SUCCEEDED", "FLOOR"), again
        assert again["predictions"]["sha256"] == job["predictions"]["sha256"], (again, job)
        assert again["scores"]["oof"] == job["scores"]["oof"], again
        result = house.cli("predict", job["id"], "--rows", test_file(house))
        assert result.returncode == 0 and "FLOOR" in result.stderr, result
        answers = [line.split(",") for line in result.stdout.strip().split("\n")]
        assert [r[1:] for r in rows_of(job["predictions"]["path"])] == answers, result.stdout[:300]


@case("A later file in another order, with values and columns that training has not seen")
def _():
    with House(slots=2) as house:
        job = trained(house, folds=2, epochs=3)
        head, *lines = blobs(40, seed=9).strip().split("\n")
        columns = head.split(",")
        order = ["colour", "extra", "x3", "x0", "id", "x2", "x1"]
        text = "\t".join(order) + "\n"
        for i, line in enumerate(lines):
            row = dict(zip(columns, line.split(",")), extra=str(i))
            if i == 3:
                row["colour"] = "mauve"
            text += "\t".join(row[c] for c in order) + "\n"
        later = predict(house, job, house.write("later.tsv", text))
        assert later["state"] == "SUCCEEDED", later
        assert later["predictions"]["rows"] == 40, later
        assert any("extra" in w for w in later["warnings"]), later["warnings"]
        house.check_predictions(later["predictions"]["path"], rows=40)
        # The same rows as the training file has them, but for the new colour.
        plain = predict(house, job, house.write("plain.csv", head + "\n" + "\n".join(lines) + "\n"))
        mine, theirs = rows_of(later["predictions"]["path"]), rows_of(plain["predictions"]["path"])
        assert [r for i, r in enumerate(mine) if i != 4] == [r for i, r in enumerate(theirs) if i != 4]
        assert mine[4] != theirs[4]


@case("Files that are packed, or not in UTF-8, are read as their text; the answer is UTF-8")
def _():
    with House(slots=2) as house:
        house.start()
        head, *lines = [line.replace("green", "grün").replace("colour", "größe").replace(",a", ",ä")
                        for line in blobs(300, seed=1).strip().split("\n")]
        train = "\n".join([head, *lines]) + "\n"
        house.write("latin.csv.gz", gzip.compress(train.encode("cp1252")))
        job = house.submit({
            "api": "v1", "name": "latin", "task": {"type": "classification"},
            "data": {"train": "latin.csv.gz", "target": "kind", "id": "id", "folds": 2},
            "model": {"mlp": {"hidden": [8]}}, "train": {"epochs": 3}, "budget": {"time": "60s"}}, "--wait")
        assert job["state"] == "SUCCEEDED", job
        assert any("latin.csv.gz" in w and "Windows-1252" in w for w in job["warnings"]), job["warnings"]
        text = "\n".join([head, *lines[:40]]) + "\n"
        plain = predict(house, job, house.write("plain.csv", text.encode()))
        with open(plain["predictions"]["path"], encoding="utf-8") as f:
            answer = f.read()
        assert answer.split("\n")[0] == "id,kind,p_b,p_c,p_ä", answer.split("\n")[0]
        for name, packed in [("later.csv.gz", gzip.compress(text.encode("cp1252"))),
                             ("later.txt", text.replace(",", "\t").encode("utf-16")),
                             ("later.zip", zipped("rows.csv", text.encode()))]:
            later = predict(house, job, house.write(name, packed))
            assert later["state"] == "SUCCEEDED", later
            with open(later["predictions"]["path"], encoding="utf-8") as f:
                assert f.read() == answer, name
        cut = house.write("cut.csv.gz", gzip.compress(text.encode())[:-9])
        result = house.cli("predict", job["id"], "--data", cut)
        assert result.returncode != 0 and "cut.csv.gz: the file is cut" in result.stderr, result


@case("A file that cannot be predicted is refused, naming what is wrong with it")
def _():
    with House(slots=1) as house:
        job = trained(house, folds=2, epochs=2)
        head, *lines = blobs(5, seed=3).strip().split("\n")
        bad = "\n".join([head, lines[0], lines[1].replace(lines[1].split(",")[1], "tall", 1), lines[2]])
        for name, text, words in [
                ("lacks.csv", "id,x0,x1,x3,colour\n1,2,3,4,red\n", ["x2", "is missing"]),
                ("text.csv", bad + "\n", ["row 2", "x0", "tall", "not a number"]),
                ("colons.csv", head.replace(",", ":") + "\n1:2:3:4:5:red:a\n", ["commas, tabs, semicolons or bars"])]:
            failed = predict(house, job, house.write(name, text), code=1)
            assert (failed["state"], failed["end_reason"]) == ("FAILED", "DATA_ERROR"), failed
            assert all(w in failed["end_message"] for w in [name, *words]), failed["end_message"]
        for name, text, words in [("empty.csv", "", "empty"), ("none.csv", head + "\n", "row")]:
            result = house.cli("predict", job["id"], "--data", house.write(name, text))
            assert result.returncode != 0 and words in result.stderr + result.stdout, result
        result = house.cli("predict", job["id"], "--data", test_file(house), "--min-members", "3")
        assert result.returncode == 1 and "has 2 models" in result.stderr, result
        result = house.cli("predict", job["id"])
        assert result.returncode == 2 and "--data" in result.stderr, result


@case("Too little time for all models gives the answer of some, and says so", limit_s=200)
def _():
    with House(slots=2) as house:
        job = trained(house, folds=5, epochs=2, model={"mlp": {"hidden": [512, 512]}}, budget="90s")
        path, rows, whole, took = lasting(house, job, 2.5)
        assert len(whole["predictions"]["folds"]) == 5, whole
        some = predict(house, job, path, "--budget", f"{0.6 * took + 0.8:.1f}s")
        assert (some["state"], some["quality"]) == ("SUCCEEDED", "DEGRADED"), some
        assert moment(some["finished_at"]) <= moment(some["deadline"]), some
        answered = some["predictions"]["folds"]
        assert 1 <= len(answered) < 5, some
        assert some["scores"]["comparable"] is False and some["scores"]["oof"] is None, some["scores"]
        assert any(d["rule"] == "predict" and "time is up" in d["cause"] for d in some["decisions"]), some
        manifest = house.standing(some["id"])
        assert abs(sum(m["weight"] for m in manifest["members"]) - 1) < 1e-12, manifest
        assert len(rows_of(some["predictions"]["path"])) == rows + 1


@case("Told to finish before one model is through, it answers with what that one has reached", limit_s=200)
def _():
    with House(slots=2) as house:
        job = trained(house, folds=2, epochs=2, model={"mlp": {"hidden": [512, 512, 512]}}, budget="90s")
        path, rows, _, _ = lasting(house, job, 5)

        def asked(name, *flags):
            return house.finish_a_prediction(job["id"], path, name, "--timeout", "60s", *flags, least_bytes=100_000)

        part = asked("part")
        assert (part["state"], part["quality"]) == ("SUCCEEDED", "FLOOR"), part
        assert part["scores"]["oof"] is None, part["scores"]
        said = [d for d in part["decisions"] if d["rule"] == "predict"]
        assert said and "mean answer" in said[0]["to"], part["decisions"]
        lines = rows_of(part["predictions"]["path"])
        assert len(lines) == rows + 1
        assert lines[-1][1:] == lines[-2][1:] and lines[1][1:] != lines[-1][1:], (lines[1], lines[-1])
        two = asked("two", "--min-members", "2")
        assert two["state"] == "FAILED" and "predict.min_members is 2" in two["end_message"], two


@case("Rank, Worker or traind killed in the middle: the answer is the same", limit_s=300)
def _():
    with House(slots=2) as house:
        job = trained(house, folds=3, epochs=2, model={"mlp": {"hidden": [512, 512]}}, budget="90s")
        path, _, answer, _ = lasting(house, job, 1.5)
        whole = answer["predictions"]["sha256"]

        def started(name):
            command = ["predict", job["id"], "--data", path, "--name", name, "--budget", "90s",
                       "--timeout", "10s"]
            result = {}
            thread = threading.Thread(target=lambda: result.update(cli=house.cli(*command)))
            thread.start()

            def half_done():
                found = [j for j in house.json("list")["jobs"] if j["name"] == name]
                if not found:
                    return None
                dirs = os.path.join(house.results(found[0]["id"]), "attempts")
                for at, _, files in os.walk(dirs):
                    if "values-0.json" in files:
                        return found[0]
                return None
            return eventually("the first model has answered", half_done, 40), thread

        def check(new, thread, reason=None):
            new = house.wait(new["id"], 60)
            thread.join()
            assert (new["state"], new["quality"]) == ("SUCCEEDED", "FULL"), new
            assert new["predictions"]["sha256"] == whole, new
            assert sha256(new["predictions"]["path"]) == whole
            if reason:
                ends = [a["end_reason"] for a in new["attempts"]]
                assert ends[0] == reason and ends[-1] == "COMPLETED", new["attempts"]

        new, thread = started("rank-dies")
        house.kill_all("trainrank")
        check(new, thread, "RANK_DIED")
        new, thread = started("worker-dies")
        house.kill_all("trainworker")
        check(new, thread, "WORKER_LOST")
        new, thread = started("traind-dies")
        house.kill_daemon()
        house.start()
        check(new, thread)


@case("A running Job predicts a later file with the models that it has")
def _():
    with House(slots=1) as house:
        house.start()
        job = house.submit(house.spec(rows=3000, folds=2, epochs=100000, budget="60s"))
        house.until(job["id"], "a fold answers", lambda j: j["quality"] in ("DEGRADED", "FULL"))
        later = predict(house, job, test_file(house, 3000))
        assert later["state"] == "SUCCEEDED" and later["predictions"]["folds"], later
        house.check_predictions(later["predictions"]["path"])
        house.json("cancel", job["id"])


@case("Files as asked: NPY, ZIP, without probabilities; and of a training Job as well")
def _():
    with House(slots=2) as house:
        job = trained(house, folds=2, epochs=3, predictions={"format": "npy", "ensemble": "weighted"})
        folder = os.path.dirname(job["predictions"]["path"])
        manifest = house.standing(job["id"])
        assert manifest["ensemble"] == "weighted", manifest
        assert [f["name"] for f in manifest["files"]] == ["predictions.npy"], manifest
        assert sha256(os.path.join(folder, "predictions.npy")) == manifest["files"][0]["sha256"]
        copy = os.path.join(house.root, "out.zip")
        later = predict(house, job, test_file(house), "--format", "zip", "--no-probabilities", "--out", copy)
        with zipfile.ZipFile(copy) as archive:
            assert archive.testzip() is None
            assert archive.namelist() == ["predictions.csv", "predictions.npy"], archive.namelist()
            text = archive.read("predictions.csv").decode()
            assert archive.read("predictions.npy") == open(
                os.path.join(folder, "predictions.npy"), "rb").read()
        with open(later["predictions"]["path"]) as f:
            assert f.read() == text
        assert text.split("\n")[0] == "id,kind", text[:40]
        assert [r[:2] for r in rows_of(job["predictions"]["path"])] == rows_of(later["predictions"]["path"])


@case("Why no model can answer rows is told at once")
def _():
    with House() as house:
        house.start()
        job = house.wait(house.submit(house.spec(folds=2, epochs=2))["id"])
        for path in glob.glob(os.path.join(house.results(job["id"]), "attempts", "*", "model.json")):
            os.remove(path)
        answer = house.cli("predict", job["id"], "--rows", test_file(house))
        assert answer.returncode != 0 and "has no model.json" in answer.stderr, answer.stderr
        served = [j for j in house.json("list")["jobs"] if "-serve" in j["name"]]
        assert len(served) <= 2, served


@case("Rows are answered at once by models that stay loaded, as the file is", limit_s=200)
def _():
    with House(slots=2) as house:
        job = trained(house, folds=3, epochs=4)
        with open(test_file(house)) as f:
            text = f.read()
        rows = house.write("rows.csv", text)
        result = house.cli("predict", job["id"], "--rows", rows)
        assert result.returncode == 0, result
        assert "FULL" in result.stderr and "3 models" in result.stderr, result.stderr
        answers = [line.split(",") for line in result.stdout.strip().split("\n")]
        filed = rows_of(job["predictions"]["path"])
        assert [r[1:] for r in filed] == answers
        again = house.json("predict", job["id"], "--rows", rows)
        assert again["quality"] == "FULL" and [m["fold"] for m in again["members"]] == [0, 1, 2], again
        assert abs(sum(m["weight"] for m in again["members"]) - 1) < 1e-9, again["members"]
        serving = [j for j in house.json("list")["jobs"] if j["models_from"] == job["id"]]
        assert [j["id"] for j in serving] == [again["job"]], serving  # one for all calls
        head, *lines = text.strip().split("\n")
        for bad, words in [
                (head + "\n" + lines[0].replace(",", ",tall", 1) + "\n", ["row 1", "x0", "tall"]),
                ("id,x0,x1,x2\n1,2,3,4\n", ["x3", "colour", "missing"])]:
            result = house.cli("predict", job["id"], "--rows", house.write("bad.csv", bad))
            assert result.returncode == 2 and all(w in result.stderr for w in words), result
        # A Rank that dies is replaced while the caller waits.
        house.kill_all("trainrank")
        result = house.cli("predict", job["id"], "--rows", rows)
        assert result.returncode == 0 and result.stdout.split("\n")[1].split(",") == filed[1][1:], result
        # Finish ends it; the next rows start another.
        house.json("finish", again["job"])
        ended = house.wait(again["job"])
        assert (ended["state"], ended["end_reason"]) == ("SUCCEEDED", "FINISHED_BY_USER"), ended
        third = house.json("predict", job["id"], "--rows", rows)
        assert third["job"] != again["job"] and third["rows"] == again["rows"], third
        house.json("finish", third["job"])


main()
