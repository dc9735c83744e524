"""Jobs beside others that fail: not a bit of their predictions differs."""
from tests.cases import case, main
from tests.e2e.harness import House

FOLDS, EPOCHS = 2, 40


def predictions(job):
    assert job["state"] == "SUCCEEDED" and job["quality"] == "FULL", job
    with open(job["predictions"]["path"], "rb") as f:
        return f.read()


@case("A Job predicts the same bits alone and beside Jobs that fail, crash and are cancelled",
      limit_s=240)
def _():
    # A slot for each fold of all four Jobs: nobody's turn ends, so the Job trains beside those that crash.
    with House(slots=4 * FOLDS) as house:
        house.start("--allow-programs")
        # Its time suffices for all epochs, so nothing of it depends on how long anything takes.
        spec = house.spec(rows=3000, folds=FOLDS, epochs=EPOCHS, budget="150s")
        alone = predictions(house.wait(house.submit(spec)["id"], limit_s=150))

        fails = house.spec(rows=150, folds=FOLDS)
        del fails["train"]
        fails["model"] = {"command": {"train": ["false"], "code": house.data}}
        crashes = house.spec(rows=3000, folds=FOLDS, epochs=100000, budget="40s")
        crashed = house.submit(crashes)["id"]
        house.until_saved(crashed)
        ranks = house.busy_ranks()  # nobody else trains yet
        assert ranks, house.job(crashed)
        others = [house.submit(other)["id"] for other in (fails, crashes)]
        mine = house.submit(spec)["id"]
        house.until(mine, "it trains", lambda j: any(f["state"] == "RUNNING" for f in j["folds"]), 150)
        beside = house.job(crashed)
        assert all(f["state"] == "RUNNING" for f in beside["folds"]), beside
        for pid in ranks:
            house.kill(pid)
        job = house.wait(mine, limit_s=150)
        ends = [a["end_reason"] for a in house.job(crashed)["attempts"]]
        assert "RANK_DIED" in ends, ends
        house.cli("cancel", others[1])
        assert house.wait(others[0])["quality"] != "FULL", house.job(others[0])
        house.cli("cancel", crashed)
        both = predictions(job)
        assert both == alone, (both[:300], alone[:300], job["attempts"])


main()
