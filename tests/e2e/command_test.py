"""Programs of users as models (model.command), end to end: folds, scores, bad answers, cuts and kills."""
import os
import sys
import time

from tests.cases import case, main
from tests.e2e.harness import House, eventually, moment, rows_of

# The class whose mean product of x0 and x1 is nearest, as labels or as probabilities.
TRAIN = """
import csv, os, sys, time
mode, fold = sys.argv[1], int(sys.argv[2])
def read(name):
    with open(os.environ[name], newline="") as f:
        return list(csv.DictReader(f))
train, valid, test = read("TRAIND_TRAIN_CSV"), read("TRAIND_VALID_CSV"), read("TRAIND_TEST_CSV")
assert list(train[0]) == list(valid[0]) == ["id", "x0", "x1", "x2", "x3", "colour", "kind"], list(train[0])
assert list(test[0]) == ["id", "x0", "x1", "x2", "x3", "colour"], list(test[0])
assert not {r["id"] for r in train} & {r["id"] for r in valid} and len(train) + len(valid) == 400
product = lambda r: float(r["x0"]) * float(r["x1"])
means = {k: [product(r) for r in train if r["kind"] == k] for k in "abc"}
means = {k: sum(v) / len(v) for k, v in means.items()}
def write(name, rows, labels=False, bad=""):
    with open(name + ".new", "w") as f:
        f.write("id,kind\\n" if labels else "id,p_a,p_b,p_c\\n")
        for i, r in enumerate(rows):
            near = min("abc", key=lambda k: abs(product(r) - means[k]))
            shares = [0.8 if k == near else 0.1 for k in "abc"]
            if bad and i == 6:
                shares[1] = bad
            f.write(r["id"] + "," + (near if labels else ",".join(map(str, shares))) + "\\n")
    os.rename(name + ".new", name)
def both(**how):
    write("oof_predictions.csv", valid[::-1], **how)
    write(os.path.join(os.environ["TRAIND_OUT"], "test_predictions.csv"), test, **how)
"""

PLAIN = TRAIN + """
both(labels=fold == 1, bad="nan" if mode == "all_bad" or (mode == "one_bad" and fold == 1) else "")
if mode == "one_fails" and fold == 2:
    os.remove("oof_predictions.csv")
    sys.exit("it went wrong")
"""

# Goes on from where it was, and takes 2 s.
SLOW = TRAIN + """
state = os.path.join(os.environ["TRAIND_CHECKPOINTS"], "state")
n = int(open(state).read()) if os.path.exists(state) else 0
while n < 10:
    n += 1
    print(f"Epoch {n}/10", flush=True)
    time.sleep(0.2)
    open(state + ".new", "w").write(str(n))
    os.replace(state + ".new", state)  # a kill leaves the old one or the new one
both()
"""

# Would take minutes; what it has so far is there after each epoch.
LONG = TRAIN + """
for epoch in range(1000):
    if epoch == 0 or mode == "asks":
        both()
    if mode == "asks" and os.path.exists(os.environ["TRAIND_STOP_FILE"]):
        break
    print(f"Epoch {epoch + 1}/1000", flush=True)
    time.sleep(0.2)
"""

# Leaves a model at once and answers by another command.
TWO_STEPS = TRAIN + """
if mode == "train":
    open("model.txt", "w").write("here")
    time.sleep(100)
assert open("model.txt").read() == "here"
both()
"""


class Commands(House):
    def __enter__(self):
        super().__enter__()
        self.code = os.path.join(self.root, "code")
        os.mkdir(self.code)
        return self

    def script(self, text, name="train.py"):
        with open(os.path.join(self.code, name), "w") as f:
            f.write(text)

    def command_spec(self, mode="plain", budget="30s", changes=None, **data):
        spec = self.spec(budget=budget)
        del spec["train"]
        spec["data"].update(data)
        spec["model"] = {"command": {"train": [sys.executable, "train.py", mode, "{fold}"], "code": self.code,
                                     **(changes or {})}}
        return spec

    def ends(self, spec):
        job = self.wait(self.submit(spec)["id"])
        assert job["state"] == "SUCCEEDED", job
        assert moment(job["finished_at"]) <= moment(job["deadline"]), job
        return job

    def answer(self, job):
        """predictions.csv, which is whole."""
        self.check_predictions(os.path.join(self.results(job["id"]), "current", "predictions.csv"))
        return self.standing(job["id"])

    def processes_of(self, script):
        return [pid for pid, command in self.processes().items() if command.startswith(f"{sys.executable} {script}")]


@case("A program trains three folds; its predictions are scored and answer alone, as probabilities and as labels")
def _():
    with Commands(slots=2) as house:
        house.start("--allow-programs")
        house.script(PLAIN)
        job = house.ends(house.command_spec())
        assert job["quality"] == "FULL" and job["end_reason"] == "COMPLETED", job
        assert job["predictions"]["folds"] == [0, 1, 2], job["predictions"]
        assert job["scores"]["oof"] > 0.85, job["scores"]
        manifest = house.answer(job)
        assert all(f["score"] > 0.8 for f in job["folds"]), job["folds"]
        assert manifest["floor"]["weight"] == 0, manifest
        assert [m["kind"] for m in manifest["members"]] == ["command"] * 3, manifest
        refusal = house.cli("predict", job["id"], "--data", os.path.join(house.data, "test400.csv"))
        assert refusal.returncode != 0 and "run the program on the later data" in refusal.stderr, refusal


@case("A regression without ids answers in the order of the rows; rows without a target are left out")
def _():
    with Commands(slots=2) as house:
        house.start("--allow-programs")
        house.write("line.csv", 'x;note;y\n' + "".join(
            f'{i};"a ""quoted""\nnote; of two lines";{"" if i % 50 == 7 else i * i}\n' for i in range(200)))
        house.write("later.csv", "y;x;note\n" + "".join(f"{i};{i};n\n" for i in range(30)))
        house.script("""
import csv, os
def read(name):
    with open(os.environ[name], newline="") as f:
        return list(csv.DictReader(f, delimiter=";"))
train, valid, test = map(read, ("TRAIND_TRAIN_CSV", "TRAIND_VALID_CSV", "TRAIND_TEST_CSV"))
assert list(test[0]) == ["x", "note"] and len(train) + len(valid) == 196, (test[0], len(train), len(valid))
assert all(r["note"] == 'a "quoted"\\nnote; of two lines' for r in train + valid)
known = {float(r["x"]): float(r["y"]) for r in train}
def nearest(x):
    return known[min(known, key=lambda k: abs(k - x))]
for name, rows in (("oof_predictions.csv", valid), ("test_predictions.csv", test)):
    with open(name, "w") as f:
        f.write("prediction\\n" + "".join(f"{nearest(float(r['x']))}\\n" for r in rows))
""")
        spec = house.command_spec()
        spec["task"] = {"type": "regression"}
        spec["data"] = {"train": "line.csv", "test": "later.csv", "target": "y", "folds": 3}
        job = house.ends(spec)
        assert job["quality"] == "FULL", job
        assert job["scores"]["oof"] < 700, job["scores"]
        rows = rows_of(os.path.join(house.results(job["id"]), "current", "predictions.csv"))
        assert len(rows) == 31 and all(abs(float(r[1]) - int(r[0]) ** 2) < 150 for r in rows[1:]), rows


@case("A fold whose predictions are bad or whose program fails leaves the answer to the others")
def _():
    with Commands(slots=2) as house:
        house.start("--allow-programs")
        house.script(PLAIN)
        for mode, fold, words in [("one_bad", 1, ("oof_predictions.csv", "row 7", "column")),
                                  ("one_fails", 2, ("exit status 1", "it went wrong"))]:
            changes = {"predictions": "test_*.csv"}
            if mode == "one_bad":
                house.script(PLAIN.replace("labels=fold == 1", "labels=False"))
            else:
                house.script(PLAIN)
            job = house.ends(house.command_spec(mode, changes=changes))
            assert job["quality"] == "DEGRADED" and job["end_reason"] == "USER_ERROR", job
            assert job["predictions"]["folds"] == [f for f in range(3) if f != fold], job["predictions"]
            for word in words:
                assert word in job["end_message"], (word, job["end_message"])
            house.answer(job)


@case("Where all predictions are bad, the floor answers, and the message says what is wrong")
def _():
    with Commands(slots=2) as house:
        house.start("--allow-programs")
        house.script(PLAIN.replace("labels=fold == 1", "labels=False"))
        job = house.ends(house.command_spec("all_bad"))
        assert job["quality"] == "FLOOR" and job["end_reason"] == "USER_ERROR", job
        assert "column 'p_b'" in job["end_message"] and "'nan'" in job["end_message"], job["end_message"]
        house.answer(job)


@case("Predictions that turn bad leave the last valid ones, and the message tells")
def _():
    with Commands(slots=3) as house:
        house.start("--allow-programs")
        house.script(TRAIN + """
both()
time.sleep(4)
both(bad="2.5")
""")
        job = house.ends(house.command_spec(budget="20s"))
        assert job["quality"] == "DEGRADED" and job["end_reason"] == "USER_ERROR", job
        assert "'2.5' is no probability" in job["end_message"], job["end_message"]
        assert job["predictions"]["folds"] == [0, 1, 2] and job["scores"]["oof"] > 0.85, job
        house.answer(job)


@case("A killed program and a killed trainprog go on from the program's own checkpoint")
def _():
    with Commands(slots=3) as house:
        house.start("--allow-programs")
        house.script(SLOW)
        for victim in ("program", "trainprog"):
            job = house.submit(house.command_spec(changes={"epochs": 10}, budget="40s"))
            eventually("all folds train", lambda: len(house.processes_of("train.py")) == 3, 20)
            time.sleep(0.6)
            for pid in house.processes_of("train.py") if victim == "program" else house.processes("trainprog"):
                house.kill(pid)
            job = house.wait(job["id"])
            assert job["quality"] == "FULL", job
            assert len([a for a in job["attempts"] if a["task"] != job["attempts"][0]["task"]]) >= 6, job["attempts"]
            house.answer(job)


@case("At the deadline, predictions that are there count: of a program that asks, and of one that is killed", limit_s=90)
def _():
    with Commands(slots=3) as house:
        house.start("--allow-programs")
        house.script(LONG)
        for mode in ("asks", "ignores"):
            job = house.ends(house.command_spec(mode, budget="9s"))
            assert job["quality"] == "DEGRADED" and job["end_reason"] == "BUDGET_REACHED", job
            assert job["predictions"]["folds"] == [0, 1, 2], job["predictions"]
            assert any(d["rule"] in ("B5", "B8") for d in job["decisions"]), job["decisions"]
            house.answer(job)


@case("A fold whose training was cut answers by its predict command", limit_s=60)
def _():
    with Commands(slots=3) as house:
        house.start("--allow-programs")
        house.script(TWO_STEPS)
        spec = house.command_spec("train", changes={"predict": [sys.executable, "train.py", "predict", "{fold}"]})
        spec["budget"] = {"time": "10s", "reserve_share": 0.4}
        job = house.ends(spec)
        assert job["quality"] == "DEGRADED" and job["predictions"]["folds"] == [0, 1, 2], job
        house.answer(job)


@case("What does not go with a program is refused at Submit, by the name of its field")
def _():
    with Commands() as house:
        house.start()
        house.script(PLAIN)
        refusal = house.cli("submit", "-f", house.write_spec(house.command_spec()))
        assert refusal.returncode == 4 and "--allow-programs" in refusal.stderr, refusal
        house.kill_daemon()
        house.start("--allow-programs")
        for words, change in [
                ("model.command.train[4]", lambda s: s["model"]["command"]["train"].append("{lr}")),
                ("model.command.train is missing", lambda s: s["model"]["command"].pop("train")),
                ("model.command.oof", lambda s: s["model"]["command"].update(oof="../x.csv")),
                ("model.command.code", lambda s: s["model"]["command"].update(code="/no/such/folder")),
                ("model.command.environment.TRAIND_FOLD",
                 lambda s: s["model"]["command"].update(environment={"TRAIND_FOLD": "1"})),
                ("train.learning_rate", lambda s: s.update(train={"learning_rate": 0.1})),
                ("search.space is missing", lambda s: s.update(search={"trials": 3})),
                ("task.type", lambda s: s["task"].update(type="forecasting", metric="rmse"))]:
            spec = house.command_spec()
            change(spec)
            refusal = house.cli("submit", "-f", house.write_spec(spec))
            assert refusal.returncode != 0 and words in refusal.stderr, (words, refusal)


# Knows the answer as well as {skill} says.
SKILLED = TRAIN + """
skill = float(os.environ["SKILL"])
assert sys.argv[3] == os.environ["SKILL"] and os.environ["PLAIN"] == "as it is"
chance = __import__("random").Random(1)
honest = product
product = lambda r: honest(r) if chance.random() < skill else chance.uniform(-2, 2)
both()
"""


@case("A search fills a program's settings; trials that are worse get no more folds, and the best answer", limit_s=90)
def _():
    with Commands(slots=2) as house:
        house.start("--allow-programs")
        house.script(SKILLED)
        spec = house.command_spec(budget="60s", changes={"environment": {"SKILL": "{skill}", "PLAIN": "as it is"},
                                                         "settings": {"skill": "0.3"}})
        spec["model"]["command"]["train"].append("{skill}")
        spec["search"] = {"trials": 4, "space": {"skill": [0.1, 0.3, 0.6, 1.0]}, "method": "grid"}
        job = house.ends(spec)
        trials = house.json("trials", job["id"])["trials"]
        skills = [float(t["settings"]["skill"]) for t in trials]
        assert skills[0] == 0.3 and sorted(skills) == [0.1, 0.3, 0.6, 1.0], trials
        assert job["scores"]["oof"] > 0.85, job["scores"]
        best = skills.index(1.0)
        weights = {m["trial"]: m["weight"] for m in house.answer(job)["members"]}
        assert max(weights, key=weights.get) == best, weights
        assert any("clearly worse" in d["cause"] for d in job["decisions"]), job["decisions"]


# Tells how well it does after each of nine epochs, and answers when it is to stop.
REPORTS = SKILLED.replace("both()\n", """
for epoch in range(1, 10):
    time.sleep(0.3)
    os.write(int(os.environ["TRAIND_REPORT_FD"]), b'{"epoch": %d, "metric": %f}\\n' % (epoch, skill))
    if os.path.exists(os.environ["TRAIND_STOP_FILE"]):
        break
both()
""")


@case("A trial whose reported metric is not among the best stops within its fold", limit_s=120)
def _():
    with Commands(slots=1) as house:
        house.start("--allow-programs")
        house.script(REPORTS)
        spec = house.command_spec(budget="90s", changes={"environment": {"SKILL": "{skill}", "PLAIN": "as it is"},
                                                         "settings": {"skill": "1.0"}, "epochs": 9})
        spec["model"]["command"]["train"].append("{skill}")
        spec["search"] = {"trials": 4, "space": {"skill": [0.1, 0.2, 0.3, 1.0]}, "method": "asha"}
        job = house.ends(spec)
        stopped = [d for d in job["decisions"] if "the metric that" in d["cause"]]
        assert any("has place" in d["cause"] and "of 3" in d["cause"] for d in stopped), job["decisions"]
        least = min(f["progress"]["done"] for f in job["folds"] if f["trial"] > 0)
        assert least < 9, job["folds"]
        assert all(f["progress"]["done"] == 9 for f in job["folds"] if f["trial"] == 0), job["folds"]
        assert job["scores"]["oof"] > 0.85, job["scores"]
        house.answer(job)


# Is always right and never sure; a model that learns is mostly sure and sometimes wrong.
CAUTIOUS = TRAIN.replace("near = min(", "near = 'a' if product(r) > 0.5 else 'b' if product(r) < -0.5 else 'c' or min(") + """
both()
"""


@case("A program and models of traind's own are weighted by how well they answer together", limit_s=90)
def _():
    with Commands(slots=2) as house:
        house.start("--allow-programs")
        house.script(CAUTIOUS)
        spec = house.command_spec(budget="15s", changes={"beside": ["lightgbm"]})
        spec["task"]["metric"] = "logloss"
        job = house.ends(spec)
        weights = {"command": 0, "lightgbm": 0}
        for member in house.answer(job)["members"]:
            weights[member["kind"]] += member["weight"]
        alone = [sum(f["score"] for f in job["folds"] if f["trial"] == trial) / 3 for trial in (0, 1)]
        told = (weights, job["scores"], alone)
        assert job["scores"]["oof"] <= 1.01 * min(alone), told
        # On a fast machine the trees may be so sure that nothing is to be gained by the program.
        assert weights["lightgbm" if alone[1] < alone[0] else "command"] > 0, told


@case("Models of traind's own use the time that a program leaves, and answer with it by their scores", limit_s=90)
def _():
    with Commands(slots=2) as house:
        house.start("--allow-programs")
        house.script(PLAIN.replace("labels=fold == 1", "labels=False"))
        spec = house.command_spec(budget="15s", changes={"beside": ["lightgbm"]})
        spec["predictions"] = {"ensemble": "mean"}  # by default scores may give one of them all the weight
        job = house.ends(spec)
        weights = [(m["kind"], m["weight"]) for m in house.answer(job)["members"]]
        assert {kind for kind, weight in weights if weight > 0} == {"command", "lightgbm"}, weights
        assert job["scores"]["oof"] > 0.85, job["scores"]
        # A program that fails leaves the answer to them.
        job = house.ends(house.command_spec("all_bad", budget="12s", changes={"beside": ["lightgbm"]}))
        assert job["end_reason"] == "USER_ERROR" and "'nan'" in job["end_message"], job
        kinds = {m["kind"] for m in house.answer(job)["members"]}
        assert kinds <= {"lightgbm"}, kinds


@case("A fold without a checkpoint is not predicted; a prediction unlike the sample does not count", limit_s=90)
def _():
    with Commands(slots=3) as house:
        house.start("--allow-programs")
        house.script(TWO_STEPS.replace('open("model.txt", "w").write("here")',
                                       'sys.argv[2] == "1" or open("model.txt", "w").write("here")'))
        spec = house.command_spec("train", changes={"predict": [sys.executable, "train.py", "predict", "{fold}"],
                                                    "checkpoints": ["model*.txt"]})
        spec["budget"] = {"time": "10s", "reserve_share": 0.4}
        job = house.ends(spec)
        assert job["predictions"]["folds"] == [0, 2], job["predictions"]
        house.answer(job)
        sample = house.write("sample.csv", "id,p_a,p_c,p_b\n" + "".join(f"{400 + i},0.5,0.25,0.25\n" for i in range(120)))
        house.script(PLAIN.replace("labels=fold == 1", "labels=False"))
        job = house.ends(house.command_spec(changes={"sample_submission": sample}))
        assert job["quality"] == "FLOOR" and "in this order" in job["end_message"], job


main()
