"""The checker finds what is wrong with histories that were written by hand, and nothing in the right one."""
import copy

from tests.cases import case, main
from tests.histories.checker import check, summary

DEADLINE = 1000.0


def line(op, at, output=None, job="a", outcome="ok", client=1, took=0.1, error=None, wall=None, **values):
    made = {"client": client, "op": op, "job": None if op in ("submit", "list", "fault", "end", "start") else job,
            "input": values, "invoke": at, "return": at + took, "wall": wall or 900 + at, "outcome": outcome}
    made.update({"output": output} if outcome == "ok" else {"error": error or "OSError('cut')"})
    return made


def view(state="RUNNING", version=1, label=0, finished_at=None, prediction=None, end_reason=None, job="a"):
    return {"id": job, "name": "key-a", "state": state, "end_reason": end_reason, "version": version, "label": label,
            "deadline": DEADLINE, "finished_at": finished_at, "prediction": prediction}


def ended(**changes):
    return view(**{"state": "SUCCEEDED", "version": 9, "label": 2, "finished_at": 950.0, "end_reason": "COMPLETED",
                   "prediction": {"number": 2, "sha256": "d2"}, **changes})


def standing(number, score, **changes):
    return {"number": number, "quality": "DEGRADED", "metric": "accuracy", "score": score, "comparable": True,
            "complete": 0, "folds": [0, 1], "told": f"d{number}", "digest": f"d{number}", "switched": 940.0, **changes}


def event(sequence, detail=""):
    return [sequence, "2026-01-01T00:00:00Z", "state", detail]


def point(sequence, step):
    return [sequence, "2026-01-01T00:00:00Z", 0, 1, step, "train_loss", 0.5]


def sound():
    """A right history; tests change a line of it by its name."""
    return {
        "submit": line("submit", 1, {"job": "a", "created": True}, key="key-a", other=False),
        "fault": line("fault", 2, {"struck": 1}, client="nemesis", fault="kill traind"),
        "start": line("start", 2.2, {"pid": 7}, client="nemesis", took=0.5),
        "again": line("submit", 3, {"job": "a", "created": False}, key="key-a", other=False),
        "conflict": line("submit", 4, outcome="fail", error="ALREADY_EXISTS", key="key-a", other=True),
        "label 1": line("label", 5, view(version=2, label=1), value=1),
        "label 2": line("label", 6, outcome="unknown", value=2),
        "get": line("get", 7, view(version=3, label=2), client=2),
        "events": line("events", 8, {"events": [event(1), event(2)]}, after=0),
        "more events": line("events", 9, {"events": [event(3)]}, after=2),
        "metrics": line("metrics", 10, {"points": [point(1, 1), point(2, 2)], "dropped": 0}, after=0),
        "disk 1": line("disk", 11, standing(1, 0.5)),
        "disk 2": line("disk", 12, standing(2, 0.6)),
        "end": line("end", 20, {"open": 0}, client="last"),
        "last get": line("get", 21, ended()),
        "last events": line("events", 22, {"events": [event(1), event(2), event(3), event(4)]}, after=0),
        "last metrics": line("metrics", 23, {"points": [point(1, 1), point(2, 2)], "dropped": 0}, after=0),
        "last disk": line("disk", 110, standing(2, 0.6)),
        "list": line("list", 111, {"jobs": [{"id": "a", "name": "key-a", "state": "SUCCEEDED",
                                             "end_reason": "COMPLETED"}]}),
    }


def rules(history, **options):
    return {violation["rule"] for violation in check(list(history.values()), **options)}


def bad(sentence, rule):
    """A case: the history that the function changes breaks this rule, and no other."""
    def add(change):
        @case(sentence)
        def _():
            history = sound()
            change(history)
            assert rules(history) == {rule}, check(list(history.values()))
        return change
    return add


@case("A right history has no violations, in whatever order its lines stand")
def _():
    lines = list(sound().values())
    before = copy.deepcopy(lines)
    assert check(lines) == [] and check(lines[::-1]) == [], check(lines)
    assert lines == before
    told = summary(lines)
    assert told["jobs"] == 1 and told["faults"] == {"kill traind": 1}, told
    assert told["calls"] == {"ok": 14, "fail": 1, "unknown": 1}, told
    assert told["recovery_max_s"] == 0.5, told


# ---- lost

@bad("A Job that was acknowledged and is not found is lost", "lost")
def _(history):
    history["get"] = line("get", 7, outcome="fail", error="NOT_FOUND: there is no job a")


@bad("A Job that was acknowledged and is not in the list is lost", "lost")
def _(history):
    history["early list"] = line("list", 4.5, {"jobs": []})


@case("A list that was asked for before the Job was acknowledged need not have it")
def _():
    history = sound()
    history["list beside"] = line("list", 1.05, {"jobs": []})
    assert rules(history) == set(), rules(history)


@bad("A label that was acknowledged and is not there is lost", "lost")
def _(history):
    history["get"]["output"]["label"] = 0


@bad("A label that was read and is not there later is lost", "lost")
def _(history):
    history["later get"] = line("get", 8, view(version=4, label=1))


@bad("A version that goes back is a loss", "lost")
def _(history):
    history["later get"] = line("get", 8, view(version=2, label=2))


@bad("Events that were told and do not come again are lost", "lost")
def _(history):
    history["last events"]["output"]["events"] = [event(1), event(2)]


@bad("Metrics that were told and do not come again are lost", "lost")
def _(history):
    history["last metrics"]["output"]["points"] = [point(1, 1)]


# ---- twice, unasked

@bad("Two Jobs of one key are an effect twice", "twice")
def _(history):
    history["again"]["output"] = {"job": "b", "created": True}
    history["list"]["output"]["jobs"].append({"id": "b", "name": "key-a", "state": "SUCCEEDED",
                                              "end_reason": "COMPLETED"})


@bad("A second Job whose Submit was never answered is found by its name", "twice")
def _(history):
    history["again"] = line("submit", 3, outcome="unknown", key="key-a", other=False)
    history["list"]["output"]["jobs"].append({"id": "b", "name": "key-a", "state": "SUCCEEDED",
                                              "end_reason": "COMPLETED"})


@bad("A key that made its Job twice is an effect twice, though the id is the same", "twice")
def _(history):
    history["again"]["output"]["created"] = True


@bad("Another spec under the same key must be refused", "twice")
def _(history):
    history["conflict"] = line("submit", 4, {"job": "a", "created": False}, key="key-a", other=True)


@bad("A measurement that is recorded under two sequences is an effect twice", "twice")
def _(history):
    history["last metrics"]["output"]["points"].append(point(3, 2))


@bad("A Job that nobody has submitted is noticed", "unasked")
def _(history):
    history["list"]["output"]["jobs"].append({"id": "z", "name": "key-z", "state": "SUCCEEDED",
                                              "end_reason": "COMPLETED"})


@bad("A label that was refused must not be there", "unasked")
def _(history):
    history["label 2"] = line("label", 6, outcome="fail", error="FAILED_PRECONDITION", value=2)


# ---- changed, gap

@bad("What is over does not go on", "changed")
def _(history):
    history["early end"] = line("get", 15, view(state="CANCELLED", version=8, label=2, finished_at=915.0))


@bad("The list does not tell another end", "changed")
def _(history):
    history["list"]["output"]["jobs"][0]["state"] = "CANCELLED"


@bad("What is over gets no other Prediction", "changed")
def _(history):
    history["early end"] = line("get", 15, ended(prediction={"number": 1, "sha256": "d1"}))


@bad("An event that was told stays as it was", "changed")
def _(history):
    history["last events"]["output"]["events"][1] = event(2, "another")


@bad("A metric that was told stays as it was", "changed")
def _(history):
    history["last metrics"]["output"]["points"][1] = point(2, 5)


@bad("A hole among events is found", "gap")
def _(history):
    history["last events"]["output"]["events"] = [event(1), event(3), event(4)]


@bad("Events after an offset begin right behind it", "gap")
def _(history):
    history["more events"]["output"]["events"] = [event(4)]


@bad("Metrics that were dropped are a hole", "gap")
def _(history):
    history["metrics"]["output"]["dropped"] = 2


# ---- Predictions

@bad("A standing Prediction that scores worse on the same rows is noticed", "worse")
def _(history):
    history["disk 2"]["output"]["score"] = history["last disk"]["output"]["score"] = 0.4


@case("A lower log_loss is better")
def _():
    history = sound()
    for name in ("disk 1", "disk 2", "last disk"):
        history[name]["output"]["metric"] = "log_loss"
    assert rules(history) == {"worse"}
    for name in ("disk 2", "last disk"):
        history[name]["output"]["score"] = 0.4
    assert rules(history) == set()


@case("A fold that is whole may take the place of parts that scored better")
def _():
    history = sound()
    for name in ("disk 2", "last disk"):
        history[name]["output"].update(score=0.4, complete=1)
    assert rules(history) == set()


@bad("A Prediction that goes away is worse", "worse")
def _(history):
    history["disk 2"]["output"] = {}


@bad("An earlier Prediction that stands again is worse", "worse")
def _(history):
    history["back"] = line("disk", 13, standing(1, 0.6))


@bad("A FULL Prediction stays FULL", "worse")
def _(history):
    history["disk 1"]["output"]["quality"] = "FULL"


@bad("A file whose digest is not the manifest's is unsound", "unsound")
def _(history):
    history["disk 1"]["output"]["digest"] = "torn"


@bad("A link that leads nowhere is unsound", "unsound")
def _(history):
    history["disk 1"]["output"] = {"number": None, "missing": "prediction-1"}


@bad("At last the Prediction on disk is the one that the Job tells", "unsound")
def _(history):
    history["last disk"]["output"] = standing(3, 0.7)


# ---- late, open, harness

@bad("A Job that is over after its deadline is late", "late")
def _(history):
    history["last get"]["output"]["finished_at"] = DEADLINE + 0.5


@bad("A Prediction that comes after the deadline is late", "late")
def _(history):
    history["last get"]["output"]["prediction"] = {"number": 3, "sha256": "d3"}
    history["last disk"]["output"] = standing(3, 0.7, switched=DEADLINE + 0.5)


@case("A Prediction that stood in time may be switched to again, after one that came too late")
def _():
    history = sound()
    history["last disk"]["output"]["switched"] = DEADLINE + 0.5
    assert rules(history) == set()


@bad("A Job that never ends is open", "open")
def _(history):
    history["last get"]["output"] = view(version=9, label=2)
    del history["list"]


@bad("A Job that fails is told as such", "open")
def _(history):
    history["last get"]["output"] = ended(state="FAILED", prediction=None)
    del history["list"]


@bad("A run without a fault that struck says nothing", "harness")
def _(history):
    history["fault"]["output"]["struck"] = 0


@bad("A run that did not come to its end says nothing", "harness")
def _(history):
    del history["end"]


@case("A run with too few answers says nothing")
def _():
    assert rules(sound(), least_calls=100) == {"harness"}


main()
