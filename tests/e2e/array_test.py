"""Arrays of Jobs."""
import json

from tests.cases import case, main
from tests.e2e.harness import House


@case("An array is a Job for each combination, listed, awaited and cancelled together", limit_s=150)
def _():
    with House(slots=2) as house:
        house.start()
        path = house.write_spec(house.spec(rows=300, folds=2, epochs=2, budget="30s"))
        array = house.json("submit", path, "--array", "train.learning_rate=0.1,0.01", "--array", "data.seed=1..2",
                           "--name", "grid", "--request-id", "grid-1", "--at-once", "2")
        assert array["array"] == "grid-1" and len(array["jobs"]) == 4, array
        assert array["jobs"][3]["settings"] == {"train.learning_rate": "0.01", "data.seed": "2"}, array
        again = house.json("submit", path, "--array", "train.learning_rate=0.1,0.01", "--array", "data.seed=1..2",
                           "--name", "grid", "--request-id", "grid-1", "--at-once", "2")
        assert [j["id"] for j in again["jobs"]] == [j["id"] for j in array["jobs"]], again
        assert not any(j["created"] for j in again["jobs"]), again
        listed = house.json("list", "--array", "grid-1")["jobs"]
        assert {j["name"] for j in listed} == {f"grid-{i}" for i in range(4)}, listed
        ended = house.json("wait", "--array", "grid-1")["jobs"]
        assert [j["state"] for j in ended] == ["SUCCEEDED"] * 4, ended
        jobs = {j["labels"]["array_index"]: house.job(j["id"]) for j in ended}
        for index in ("2", "3"):
            before = jobs[str(int(index) - 2)]
            assert jobs[index]["started_at"] >= before["finished_at"], (index, jobs)


@case("A cancelled array is cancelled as a whole, those that wait for others first", limit_s=90)
def _():
    with House(slots=1) as house:
        house.start()
        path = house.write_spec(house.spec(rows=3000, folds=2, epochs=100000, budget="60s"))
        array = house.json("submit", path, "--array", "data.seed=1..5", "--at-once", "1")["array"]
        result = house.cli("cancel", "--array", array)
        assert result.returncode == 0 and "5 of 5 Jobs cancelled" in result.stdout, (result.stdout, result.stderr)
        states = [house.wait(j["id"], 30)["state"] for j in house.json("list", "--array", array)["jobs"]]
        assert states == ["CANCELLED"] * 5, states
        assert house.cli("wait", "--array", "none").returncode != 0
        wrong = house.cli("submit", path, "--array", "data.seed")
        assert wrong.returncode == 2 and "has no values" in wrong.stderr, wrong


if __name__ == "__main__":
    main()
