"""Jobs from submit to answer, through trainctl, on the standalone daemon."""
import glob
import os
import subprocess
import threading
import time

from tests.cases import case, main
from tests.e2e.harness import House, eventually, moment, rows_of, sha256

DIGITS = os.path.dirname(os.path.realpath("examples/digits/job.yaml"))


def in_time(job):
    assert moment(job["finished_at"]) <= moment(job["deadline"]), (job["finished_at"], job["deadline"])


@case("The digits are learnt within a budget of 20 s")
def _():
    with House(slots=2) as house:
        house.data = DIGITS
        house.start()
        copy = os.path.join(house.root, "copied.csv")
        job = house.json("submit", "-f", os.path.join(DIGITS, "job.yaml"), "--budget", "20s",
                         "--set", f"output={copy}", "--wait")
        assert job["state"] == "SUCCEEDED", job
        in_time(job)
        assert abs(moment(job["deadline"]) - moment(job["accepted_at"]) - 20) < 0.01, job
        assert job["predictions"]["rows"] == 355 and job["predictions"]["quality"] == job["quality"], job
        assert job["quality"] in ("FULL", "DEGRADED") and job["predictions"]["folds"], job
        assert job["scores"]["oof"] > 0.93 and job["scores"]["test"] > 0.93, job["scores"]
        assert len(job["folds"]) == 5, job["folds"]
        assert sha256(copy) == sha256(job["predictions"]["path"])
        table = rows_of(copy)
        assert len(table) == 356 and table[0][-10:] == [f"p_{d}" for d in range(10)], table[0]


@case("Where not even an epoch fits, a Job that may see a part of the rows is cut to what fits")
def _():
    with House(slots=2) as house:
        house.start()
        spec = house.spec(rows=12000, folds=2, epochs=4, budget="12s", train={"batch": 1},
                          model={"mlp": {"hidden": [1024, 1024, 1024]}})
        spec["budget"]["subsample"] = True
        job = house.submit(spec, "--wait")
        assert (job["state"], job["quality"]) == ("SUCCEEDED", "DEGRADED"), job
        in_time(job)
        shares = [d for d in job["decisions"] if d["to"].endswith("% of the rows")]
        assert shares and shares[0]["from"] == "100 % of the rows", job["decisions"]
        # Rows come back where the machine turns out to be faster (B9).
        assert shares[0]["rule"] in ("B2", "B3") and 0.05 <= job["plan"]["row_share"] <= 1, job["plan"]
        assert job["plan"]["epochs"] == 1, job["plan"]
        assert job["scores"]["oof"] > 0.5, job["scores"]


@case("Every fold of a short Job answers, and each number of the answer adds up")
def _():
    with House(slots=2) as house:
        house.start()
        job = house.submit(house.spec(folds=4, epochs=6), "--wait")
        assert (job["state"], job["quality"], job["end_reason"]) == ("SUCCEEDED", "FULL", "COMPLETED"), job
        in_time(job)
        assert job["predictions"]["folds"] == [0, 1, 2, 3], job["predictions"]
        assert [f["index"] for f in job["folds"]] == [0, 1, 2, 3]
        for fold in job["folds"]:
            assert fold["state"] == "DONE" and fold["progress"]["unit"] == "EPOCH", fold
            assert fold["progress"]["done"] == fold["progress"]["planned"] == 6, fold
            assert fold["score"] > 0.5, fold
        assert job["decisions"] == [] and job["scores"]["comparable"], job
        assert 0.5 < job["scores"]["oof"] <= 1 and 0.5 < job["scores"]["test"] <= 1, job["scores"]
        house.check_predictions(job["predictions"]["path"])
        # The score on the test labels, once more from the two files.
        truth = {r[0]: r[-1] for r in rows_of(os.path.join(house.data, "test400.csv"))[1:]}
        answer = rows_of(job["predictions"]["path"])[1:]
        right = sum(truth[r[0]] == r[1] for r in answer) / len(answer)
        assert abs(right - job["scores"]["test"]) < 1e-6, (right, job["scores"])
        house.standing(job["id"])


@case("The same spec and seed give the same predictions again")
def _():
    answers = []
    for _ in range(2):
        with House(slots=1) as house:
            house.start()
            job = house.submit(house.spec(folds=2, epochs=4), "--wait")
            answers.append(rows_of(job["predictions"]["path"]))
    assert answers[0] == answers[1]


@case("Regression on a column with missing values, without id and test target")
def _():
    with House(slots=1) as house:
        lines, test = ["a,b,y"], ["b,extra,a"]
        for i in range(300):
            # No linear floor learns this.
            lines.append(f"{i % 17},{'' if i % 9 == 0 else i % 5},{4 * abs(i % 17 - 8) - 2 * (i % 5) + 0.5}")
        for i in range(50):
            test.append(f"{i % 5},x,{i % 17}")
        house.write("train.csv", "\n".join(lines) + "\n")
        house.write("test.csv", "\n".join(test) + "\n")
        house.start()
        job = house.submit({
            "api": "v1", "name": "line", "task": {"type": "regression", "metric": "rmse"},
            "data": {"train": "train.csv", "test": "test.csv", "target": "y", "folds": 3},
            "model": {"mlp": {"hidden": [32]}}, "train": {"epochs": 40, "batch": 32, "learning_rate": 0.01},
            "budget": {"time": "30s"}}, "--wait")
        house.check_folds_answer(job)
        assert job["scores"].get("test") is None, job["scores"]
        assert job["scores"]["oof"] < 0.6 * job["scores"]["floor"], job["scores"]
        assert any("extra" in w for w in job["warnings"]), job["warnings"]
        table = rows_of(job["predictions"]["path"])
        assert len(table) == 51 and table[0][1:] == ["y"], table[0]
        assert [r[0] for r in table[1:]] == [str(i) for i in range(50)]
        assert all(-40 < float(r[1]) < 80 for r in table[1:])


@case("A Job without a test file trains and predicts nothing")
def _():
    with House(slots=1) as house:
        spec = house.spec(folds=2, epochs=2)
        del spec["data"]["test"]
        house.start()
        job = house.submit(spec, "--wait")
        assert job["state"] == "SUCCEEDED" and job["predictions"] is None, job
        assert job["scores"]["oof"] > 0.4, job["scores"]


@case("Finish ends training now and predicts with what there is")
def _():
    with House(slots=1) as house:
        house.start()
        job = house.submit(house.spec(folds=3, epochs=100000, budget="10m"))
        house.until(job["id"], "the first fold has learnt something",
                    lambda j: j["folds"][0]["state"] == "RUNNING" and j["folds"][0]["progress"]["done"] >= 20)
        begin = time.monotonic()
        house.json("finish", job["id"])
        job = house.wait(job["id"], 15)
        assert time.monotonic() - begin < 10
        assert (job["state"], job["end_reason"]) == ("SUCCEEDED", "FINISHED_BY_USER"), job
        assert job["quality"] == "DEGRADED" and job["predictions"]["folds"] == [0], job["predictions"]
        assert job["folds"][0]["state"] == "PARTIAL", job["folds"]
        assert not job["scores"]["comparable"], job["scores"]
        house.check_predictions(job["predictions"]["path"])


@case("A paused Job lets go of its slot, another uses it, and Resume goes on from the checkpoint")
def _():
    with House(slots=1) as house:
        house.start()
        job = house.submit(house.spec(folds=2, epochs=100000, budget="60s"))
        house.until(job["id"], "it trains", lambda j: j["folds"][0]["progress"]["done"] >= 20)
        assert house.json("pause", job["id"])["state"] == "PAUSED"
        eventually("the slot is free", lambda: not house.json("workers")[0]["slots"][0].get("job"))
        other = house.submit(house.spec(folds=2, epochs=2), "--wait")
        assert other["state"] == "SUCCEEDED" and other["predictions"]["folds"] == [0, 1], other
        paused = house.job(job["id"])
        assert paused["state"] == "PAUSED" and house.standing(job["id"]), paused
        house.json("resume", job["id"])
        house.check_resumed(house.until_again(job["id"]))
        house.json("finish", job["id"])
        job = house.wait(job["id"], 40)
        assert job["state"] == "SUCCEEDED" and 0 in job["predictions"]["folds"], job
        assert house.cli("pause", job["id"]).returncode == 1  # what is over does not change


@case("Update gives a live Job more time, another priority and labels; bad ones change nothing")
def _():
    with House(slots=1) as house:
        house.start()
        job = house.submit(house.spec(folds=2, epochs=100000, budget="8s"))
        house.until(job["id"], "it trains", lambda j: j["folds"][0]["progress"]["done"] >= 2)
        changed = house.json("update", job["id"], "--budget", "16s", "--priority", "3", "-l", "team=a")
        assert moment(changed["deadline"]) - moment(changed["accepted_at"]) == 16, changed
        assert changed["priority"] == 3 and changed["labels"] == {"team": "a"}, changed
        assert [j["id"] for j in house.json("list", "-l", "team=a")["jobs"]] == [job["id"]]
        for wrong in (["--budget", "90"], ["--budget", "1ms"], ["--deadline", "2020-01-01T00:00:00Z"],
                      ["--priority", "1000"], ["-l", "bad key=1"], []):
            result = house.cli("update", job["id"], *wrong)
            assert result.returncode == 2 and result.stderr, (wrong, result)
        house.kill_daemon()
        house.start()
        kept = house.job(job["id"])
        assert kept["priority"] == 3 and kept["deadline"] == changed["deadline"], kept
        job = house.wait(job["id"], 30)
        assert job["state"] == "SUCCEEDED" and job["predictions"]["folds"], job
        assert job["finished_at"] <= job["deadline"] == changed["deadline"], job


@case("Cancel stops the Ranks, and the Predictions made so far stay")
def _():
    with House(slots=1) as house:
        house.start()
        job = house.submit(house.spec(folds=2, epochs=100000, budget="10m"))
        house.until(job["id"], "it trains", lambda j: j["folds"][0]["progress"]["done"] >= 2)
        house.json("cancel", job["id"])
        job = house.wait(job["id"], 10)
        assert (job["state"], job["end_reason"]) == ("CANCELLED", "CANCELLED_BY_USER"), job
        assert house.standing(job["id"]), "no Prediction stands"
        eventually("the slot is free", lambda: not house.json("workers")[0]["slots"][0].get("job"))
        assert house.json("cancel", job["id"])["finished_at"] == job["finished_at"]  # it is done already
        assert house.cli("finish", job["id"]).returncode == 1  # terminal is for ever
        other = house.submit(house.spec(folds=2, epochs=2), "--wait")
        assert other["state"] == "SUCCEEDED", other


@case("One request id is one Job; with another spec it is a conflict")
def _():
    with House(slots=1) as house:
        house.start()
        spec = house.spec(folds=2, epochs=2)
        path = house.write_spec(spec, "same.yaml")
        first, second = [], []
        threads = [threading.Thread(target=lambda into=into: into.append(
            house.json("submit", "-f", path, "--request-id", "monday"))) for into in (first, second)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert first[0]["id"] == second[0]["id"], (first, second)
        house.wait(first[0]["id"])
        again = house.json("submit", "-f", path, "--request-id", "monday")
        assert again["id"] == first[0]["id"] and again["state"] == "SUCCEEDED", again
        spec["train"]["epochs"] = 3
        other = house.cli("submit", "-f", house.write_spec(spec), "--request-id", "monday")
        assert other.returncode == 6 and "epochs" in other.stderr, other
        assert len(house.json("list")["jobs"]) == 1


@case("Two Jobs at once share one slot, and both answer in time")
def _():
    with House(slots=1) as house:
        house.start()
        ids = [house.submit(house.spec(folds=2, epochs=8, budget="25s", name=f"n{i}"))["id"] for i in range(2)]
        jobs = [house.wait(i, 40) for i in ids]
        spans = []
        for job in jobs:
            assert job["state"] == "SUCCEEDED" and job["predictions"]["folds"] == [0, 1], job
            in_time(job)
            spans += [(moment(a["started_at"]), moment(a["ended_at"])) for a in job["attempts"]
                      if a["task"].startswith("fold")]
        spans.sort()
        assert len(spans) == 4, spans
        for before, after in zip(spans, spans[1:]):
            assert before[1] <= after[0] + 0.001, spans


@case("Two Ranks train one fold together")
def _():
    with House(slots=2) as house:
        house.start()
        job = house.submit(house.spec(folds=2, epochs=12, budget="40s", resources={"slots": 2}))

        def both(_):
            slots = house.json("workers")[0]["slots"]
            return slots[0].get("attempt") and slots[0].get("attempt") == slots[1].get("attempt")
        house.until(job["id"], "both slots hold one Attempt", both)
        job = house.wait(job["id"])
        assert (job["state"], job["quality"]) == ("SUCCEEDED", "FULL"), job
        assert job["scores"]["test"] > 0.5, job["scores"]
        house.check_predictions(job["predictions"]["path"])


@case("Eight submits at once have a floor each, while one slot trains")
def _():
    with House(slots=1) as house:
        house.start()
        path = house.write_spec(house.spec(folds=5, epochs=100000, budget="60s"))
        ids, stands = [], {}
        threads = [threading.Thread(target=lambda: ids.append(house.json("submit", "-f", path)["id"]))
                   for _ in range(8)]
        for t in threads:
            t.start()

        def all_stand():
            for link in glob.glob(os.path.join(house.state, "jobs", "*", "current")):
                stands.setdefault(link.split(os.sep)[-2], time.time())
            return len(stands) == 8
        eventually("a Prediction of each Job stands", all_stand, 20)
        for t in threads:
            t.join()
        took = {i: stands[i] - moment(house.job(i)["accepted_at"]) for i in ids}
        assert len(took) == 8, took
        print("s until the floor stood:", sorted(round(t, 2) for t in took.values()), flush=True)
        for i in ids:
            house.json("cancel", i)


@case("Watch, list, plan, metrics, fetch and workers say what the Job did")
def _():
    with House(slots=1) as house:
        house.start()
        spec = house.spec(folds=2, epochs=4, labels={"team": "blue"})
        plan = house.json("plan", "-f", house.write_spec(spec))
        assert plan["plan"]["folds"] == 2 and plan["plan"]["epochs"] == 4, plan
        assert house.json("list")["jobs"] == []
        job = house.submit(spec)
        watched = house.cli("watch", job["id"])
        assert watched.returncode == 0, watched
        listed = house.json("list")["jobs"]
        assert [j["id"] for j in listed] == [job["id"]] and listed[0]["state"] == "SUCCEEDED", listed
        points = house.json("metrics", job["id"])
        text = str(points)
        assert "train_loss" in text and "val_metric" in text, text[:300]
        target = os.path.join(house.root, "fetched.csv")
        fetched = house.cli("fetch", job["id"], "--to", target)
        assert fetched.returncode == 0, fetched
        assert sha256(target) == house.job(job["id"])["predictions"]["sha256"]
        workers = house.json("workers")
        assert len(workers) == 1 and workers[0]["connected"] and len(workers[0]["slots"]) == 1, workers
        assert house.cli("get", "nobody-1").returncode == 5
        assert house.cli("get", job["id"], server="127.0.0.1:1").returncode == 7


@case("wait returns at the ends of Jobs, through a restart of traind")
def _():
    with House(slots=1) as house:
        house.start()
        spec = house.spec(folds=2, epochs=100000, budget="60s")
        ids = [house.submit({**spec, "name": "first"})["id"]]
        house.until(ids[0], "it trains", lambda j: j["folds"][0]["progress"]["done"] >= 1)
        ids.append(house.submit({**spec, "name": "second"})["id"])  # the first one has the slot
        waiter = subprocess.Popen([os.path.join(house.bin, "client/trainctl"), "--server", house.server,
                                   "wait", *ids], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env=house.environment(), start_new_session=True)
        late = house.cli("wait", *ids, "--timeout", "300ms")
        assert late.returncode == 3 and all(i in late.stderr for i in ids) and not late.stdout, late
        house.kill_daemon()
        house.start(listen=house.server)  # the waiter knows this address
        house.json("finish", ids[0])
        any_of = house.cli("wait", "--any", *ids)
        assert any_of.returncode == 0 and any_of.stdout.startswith(f"{ids[0]} SUCCEEDED"), any_of
        house.json("cancel", ids[1])
        out, err = waiter.communicate(timeout=20)
        assert waiter.returncode == 9, (waiter.returncode, out, err)
        assert dict(line.split()[:2] for line in out.splitlines()) == {
            ids[0]: "SUCCEEDED", ids[1]: "CANCELLED"}, (out, err)
        assert err.count("lost traind") == 1, err


@case("Ctrl-C while following detaches and leaves the Job alone")
def _():
    with House(slots=1) as house:
        house.start()
        path = house.write_spec(house.spec(folds=2, epochs=100000, budget="60s"))
        follower = subprocess.Popen([os.path.join(house.bin, "client/trainctl"), "--server", house.server,
                                     "submit", "-f", path, "--follow", "--request-id", "r1"],
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                    env=house.environment(), start_new_session=True)
        job = eventually("it is listed", lambda: house.json("list")["jobs"])[0]
        house.until(job["id"], "it trains", lambda j: j["folds"][0]["progress"]["done"] >= 1)
        follower.send_signal(2)
        text, _ = follower.communicate(timeout=5)
        assert follower.returncode == 130 and job["id"] in text, (follower.returncode, text)
        told = house.job(job["id"])["folds"][0]["progress"]["done"]
        house.until(job["id"], "it trains on", lambda j: j["folds"][0]["progress"]["done"] > told)
        house.json("finish", job["id"])
        job = house.wait(job["id"])
        assert job["state"] == "SUCCEEDED" and job["predictions"]["folds"], job


main()
