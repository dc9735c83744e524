"""Jobs that ask for Workers with labels."""
from tests.cases import case, main
from tests.e2e.harness import House, eventually


@case("A Job runs where its labels are, and one that nobody has is told", limit_s=120)
def _():
    with House(standalone=False) as house:
        house.start()
        house.start_worker(1, house.root + "/a", arguments=("--label", "rack=a"))
        house.start_worker(1, house.root + "/b", arguments=("--label", "rack=b", "--label", "zone=x"))
        workers = eventually("both are attached", lambda: (
            lambda found: found if len(found) == 2 and all(w.get("connected") for w in found) else None)(
                house.json("workers")))
        by_rack = {w["labels"]["rack"]: w["id"] for w in workers}
        assert "rack=b,zone=x" in house.cli("workers").stdout

        job = house.submit(house.spec(rows=300, folds=2, budget="20s", resources={"labels": {"rack": "b", "zone": "x"}}))
        waits = house.submit(house.spec(rows=300, folds=2, budget="20s", resources={"labels": {"rack": "c"}}))
        eventually("it is told", lambda: (
            house.job(waits["id"]).get("waits_for") == "no Worker has label rack=c"))
        assert house.job(waits["id"])["pending_reason"] == "NO_MATCHING_WORKER"
        house.start_worker(1, house.root + "/c", arguments=("--label", "rack=c"))
        done = house.wait(job["id"])
        assert {a["worker"] for a in done["attempts"]} == {by_rack["b"]}, done["attempts"]
        late = house.wait(waits["id"])
        folds = {a["worker"] for a in late["attempts"] if a["task"].startswith("fold")}
        assert folds and not folds & set(by_rack.values()), late["attempts"]


@case("A label of a Worker is checked at its start", limit_s=60)
def _():
    with House(standalone=False) as house:
        house.start()
        worker = house.start_worker(1, house.root + "/a", arguments=("--label", "rack"))
        assert worker.wait(timeout=20) == 2
        with open(house.root + "/worker.log") as log:
            assert "--label: 'rack' is no label: NAME=VALUE" in log.read()


if __name__ == "__main__":
    main()
