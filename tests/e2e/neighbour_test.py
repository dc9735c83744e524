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


@case("A Job predicts the same bits alone and beside Jobs that crash, diverge, cannot be read and are cancelled",
      limit_s=240)
def _():
    with House(slots=2) as house:
        house.start()
        # Nothing of it depends on how long anything takes.
        spec = house.spec(rows=3000, folds=FOLDS, epochs=EPOCHS, budget="150s", train={"ema": False})
        alone = predictions(house.wait(house.submit(spec)["id"], limit_s=150))

        house.write("broken.csv", "id,x1,kind\n1,0.5\n")
        broken = house.spec(rows=150, folds=2, data={"train": "broken.csv"})
        diverges = house.spec(rows=150, folds=2, epochs=50, train={"learning_rate": 10})
        crashes = house.spec(rows=3000, folds=1, epochs=100000, budget="60s")
        crashed = house.submit(crashes)["id"]
        others = [house.submit(other)["id"] for other in (broken, diverges, crashes)]
        mine = house.submit(spec, "--priority", "1")["id"]
        killed = 0

        def over(job):
            nonlocal killed
            for pid in house.processes("trainrank"):
                if killed < 5 and works_for(pid, crashed):
                    house.kill(pid)
                    killed += 1
            return job["state"] in ENDED
        job = house.until(mine, "the Job has ended", over, 150)
        assert killed > 0
        house.json("cancel", others[2])
        for other in others[:2]:
            house.wait(other)
        assert house.job(others[0])["state"] == "FAILED"
        house.json("cancel", crashed)
        assert predictions(job) == alone


main()
