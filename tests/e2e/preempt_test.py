"""Folds that make room for Jobs of a higher priority."""
from tests.cases import case, main
from tests.e2e.harness import House, eventually


def unbounded(house, **changes):
    spec = house.spec(rows=3000, folds=2, epochs=100000,
                      train={"epochs": 100000, "checkpoint_every": "500ms"}, **changes)
    del spec["budget"]
    return spec


@case("A fold saves a checkpoint and goes for a Job of a higher priority, and goes on when that has ended", limit_s=180)
def _():
    with House(slots=1) as house:
        house.start("--preempt-after", "2s")
        low = house.submit(unbounded(house))["id"]
        house.until_saved(low, 40)
        # A fold runs for a while before it makes room.
        high = house.submit(house.spec(rows=300, folds=2, epochs=3, priority=5, budget="100s"))["id"]
        house.until(low, "the fold went", lambda j: any(
            a.get("end_reason") == "PREEMPTED" for a in j["attempts"]), 90)
        assert f"preempted by {high}" in [a["message"] for a in house.job(low)["attempts"]]
        eventually("it is told why it waits", lambda: (
            f"preempted by {high}" in house.job(low).get("waits_for", "")
            or house.job(high)["state"] in ("SUCCEEDED", "FAILED")), 30)
        done = house.wait(high, 100)
        house.check_folds_answer(done)
        assert [d["from"] for d in done["decisions"] if d["rule"] == "preempt"] == [
            f"fold-0 of {low} (priority 0) runs"], done["decisions"]
        house.until_again(low, 60)
        house.check_resumed(house.job(low), all_told=False)
        job = house.finish(low)
        told = [d for d in job["decisions"] if d["rule"] == "preempt"]
        assert len(told) == 1 and told[0]["cause"] == f"fold-0: PREEMPTED: preempted by {high}", told
        assert not [d for d in job["decisions"] if d["rule"] == "retry"], job["decisions"]


@case("Nobody goes where it is turned off", limit_s=90)
def _():
    with House(slots=1) as house:
        house.start("--preempt-after", "never")
        low = house.submit(unbounded(house))["id"]
        house.until_saved(low, 40)
        high = house.submit(house.spec(rows=300, folds=2, epochs=3, priority=5, budget="12s"))["id"]
        assert house.wait(high, 40)["quality"] == "FLOOR"
        assert {a.get("end_reason") for a in house.job(low)["attempts"]} <= {"COMPLETED", None, "UNSPECIFIED", "NONE"}


if __name__ == "__main__":
    main()
