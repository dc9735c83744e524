"""Gangs that span Workers: two Workers on one machine, each with a folder of its own, as two hosts."""
import os

from tests.cases import case, main
from tests.e2e.harness import House, eventually, moment


def start_hosts(house, *slots):
    """A Worker with so many slots for each number."""
    return [house.start_worker(number, os.path.join(house.root, f"host{i}"))
            for i, number in enumerate(slots)]


def attached(house, number):
    eventually("the Workers are attached", lambda: len(
        [w for w in house.json("workers") if w.get("connected")]) == number, 20)


def wide(house, slots=4, collective="gloo", **changes):
    train = {"batch": 8, "collective": collective, **changes.pop("train", {})}
    return house.spec(folds=2, resources={"slots": slots, "device": "cpu"}, train=train, **changes)


def gangs(job):
    """The Attempts that train, as the numbers of their Workers."""
    return [1 + len(a.get("other_workers") or []) for a in job["attempts"] if a["task"] != "prepare"]


def losses(house, job):
    found = {}
    for point in house.json("metrics", job)["points"]:
        if point["name"] in ("train_loss", "val_loss"):
            found[point["name"], int(point.get("fold", 0)), point["epoch"]] = point["value"]
    return found


@case("Two ranks on each of two Workers train as four ranks on one", limit_s=150)
def _():
    found = []
    for hosts in [(4,), (2, 2)]:
        with House(standalone=False) as house:
            house.start()
            start_hosts(house, *hosts)
            attached(house, len(hosts))
            job = house.wait(house.submit(wide(house, epochs=4, budget="60s"))["id"], 70)
            assert [f["state"] for f in job["folds"]] == ["DONE"] * 2, job
            assert gangs(job) == [len(hosts)] * 2, job["attempts"]
            assert moment(job["finished_at"]) <= moment(job["deadline"]), job
            found.append(losses(house, job["id"]))
    one, two = found
    assert len(one) == 2 * 2 * 4 and one.keys() == two.keys(), (one, two)
    worst = max(abs(one[key] - two[key]) for key in one)
    print(f"the losses differ by at most {worst:.3g}", flush=True)
    assert worst <= 1e-6, worst


@case("A host is killed; what is left resumes from the checkpoint with fewer ranks and answers on time",
      limit_s=150)
def _():
    with House(standalone=False) as house:
        house.start()
        hosts = start_hosts(house, 2, 2)
        attached(house, 2)
        spec = wide(house, rows=3000, epochs=100000, budget="35s",
                    train={"epochs": 100000, "checkpoint_every": "500ms"})
        job = house.submit(spec)["id"]
        saved = house.until_saved(job, 40)
        assert gangs(saved)[0] == 2, saved["attempts"]
        lead = next(a["worker"] for a in saved["attempts"] if a["task"] == "fold-0")
        # The one that does not lead: its ranks go with it.
        ids = {w["id"]: int(w["pid"]) for w in house.json("workers")}
        lost = next(pid for name, pid in ids.items() if name != lead)
        house.kill(lost)
        next(h for h in hosts if h.pid == lost).wait(10)
        again = house.until_again(job, 45)
        house.check_resumed(again, all_told=False)
        resumed = [a for a in again["attempts"] if a.get("first_step")]
        assert resumed and not resumed[0].get("other_workers"), again["attempts"]
        ended = house.wait(job, 60)
        house.check_folds_answer(ended)
        assert moment(ended["finished_at"]) <= moment(ended["deadline"]), ended
        assert house.standing(job), ended
        rows = [d for d in ended["decisions"] if d["rule"] == "batch"]
        assert not rows, rows  # two ranks take the rows of a step that four took


@case("A gang that no Workers can hold says for how many slots it waits", limit_s=60)
def _():
    with House(standalone=False) as house:
        house.start()
        start_hosts(house, 2)
        attached(house, 1)
        job = house.submit(wide(house, epochs=3, budget="150s"))["id"]
        house.until(job, "it waits for slots", lambda j: j.get("waits_for") == "4 slots; 2 free", 20)
        assert "4 slots; 2 free" in house.cli("get", job).stdout
        house.start_worker(2, os.path.join(house.root, "host1"))
        ended = house.wait(job, 60)
        assert gangs(ended)[0] == 2 and ended["state"] == "SUCCEEDED", ended


main()
