"""Jobs beside others that fail: not a bit of their predictions differs."""
import os

from tests.cases import case, main
from tests.e2e.harness import ENDED, House

FOLDS, EPOCHS = 2, 40


def predictions(job):
    assert job["state"] == "SUCCEEDED" and job["quality"] == "FULL", job
    with open(job["predictions"]["path"], "rb") as f:
        return f.read()


def works_for(pid, job):
    """Whether this Rank writes the log of an Attempt of that Job."""
    try:
        return any(job in os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return False


@case("A Job predicts the same bits alone and beside Jobs that fail, crash and are cancelled",
      limit_s=240)
def _():
    with House(slots=3) as house:
        house.start("--allow-programs")
        # Its time suffices for all epochs, so nothing of it depends on how long anything takes.
        spec = house.spec(rows=3000, folds=FOLDS, epochs=EPOCHS, budget="150s")
        alone = predictions(house.wait(house.submit(spec)["id"], limit_s=150))

        fails = house.spec(rows=150, folds=2)
        del fails["train"]
        fails["model"] = {"command": {"train": ["false"], "code": house.data}}
        crashes = house.spec(rows=3000, folds=2, epochs=100000, budget="60s")
        crashed = house.submit(crashes)["id"]
        house.until_saved(crashed)
        others = [house.submit(other)["id"] for other in (fails, crashes)]
        mine = house.submit(spec)["id"]
        killed = 0

        def over(job):
            nonlocal killed
            for pid in house.processes("trainrank"):
                if killed < 5 and works_for(pid, crashed):
                    house.kill(pid)
                    killed += 1
            return job["state"] in ENDED
        job = house.until(mine, "the Job has ended", over, 150)
        assert killed > 0, "no Rank of the other Job was killed"
        house.json("cancel", others[1])
        assert house.wait(others[0])["quality"] != "FULL", house.job(others[0])
        house.json("cancel", crashed)
        both = predictions(job)
        assert both == alone, (both[:300], alone[:300], job["attempts"])


main()
