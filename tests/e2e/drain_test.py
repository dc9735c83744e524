"""Workers that are cordoned, drained, told to stop, or end by themselves."""
import os
import signal

from tests.cases import case, main
from tests.e2e.harness import House, eventually, moment


class Cluster(House):
    """traind, and Workers that have folders of their own."""

    def add(self, name, *arguments, slots=1):
        """Starts a Worker; its id, and its process."""
        before = {w["id"] for w in self.json("workers")}
        process = self.start_worker(slots, os.path.join(self.root, name), arguments=arguments)
        new = eventually(f"{name} is attached", lambda: [
            w["id"] for w in self.json("workers") if w["id"] not in before and w.get("connected")])
        return new[0], process

    def slow(self, **changes):
        return self.spec(rows=3000, folds=2, epochs=100000, budget="60s",
                         train={"epochs": 100000, "checkpoint_every": "500ms"}, **changes)

    def worker(self, id):
        return next(w for w in self.json("workers") if w["id"] == id)

    def attempts(self, job, task="fold-0"):
        return [a for a in self.job(job).get("attempts", []) if a["task"] == task]


@case("A drained Worker gives its fold to another, which goes on from the checkpoint", limit_s=120)
def _():
    with Cluster(standalone=False) as house:
        house.start()
        first, _process = house.add("w1")
        job = house.submit(house.slow())
        house.until_saved(job["id"], 40)
        second, _process = house.add("w2", slots=2)
        drained = house.json("workers", "drain", first, "--wait", "--timeout", "30s")
        assert drained["mode"] == "DRAINING" and not drained.get("attempts"), drained
        eventually("the fold runs on the other Worker", lambda: [
            a for a in house.attempts(job["id"]) if a["worker"] == second])
        house.until_again(job["id"], 40)
        house.check_resumed(house.job(job["id"]), all_told=False)
        attempts = house.attempts(job["id"])
        assert [a["worker"] for a in attempts] == [first, second], attempts
        assert attempts[0]["end_reason"] == "SHUTDOWN", attempts
        assert attempts[0]["message"] == "its worker is drained", attempts
        retries = [d for d in house.job(job["id"]).get("decisions", []) if d["rule"] == "retry"]
        assert [d["cause"] for d in retries] == ["fold-0: SHUTDOWN: its worker is drained"], retries
        # It holds over a restart of traind.
        house.kill_daemon()
        house.start(listen=house.server)
        eventually("both are back", lambda: sum(w.get("connected", False) for w in house.json("workers")) == 2)
        assert house.worker(first)["mode"] == "DRAINING", house.worker(first)
        assert "drained" in house.cli("workers").stdout
        assert house.cli("finish", job["id"]).returncode == 0
        ended = house.wait(job["id"], 40)
        assert ended["state"] == "SUCCEEDED", ended
        assert house.json("workers", "uncordon", first).get("mode") is None


@case("A cordoned Worker takes nothing new, and Jobs are told so", limit_s=60)
def _():
    with Cluster(standalone=False) as house:
        house.start()
        only, _process = house.add("w1")
        house.json("workers", "cordon", only)
        job = house.submit(house.spec(folds=2, epochs=1))
        house.until(job["id"], "it knows why it waits",
                    lambda j: j.get("waits_for") == "a Worker; those that are attached take nothing new")
        assert not house.job(job["id"]).get("attempts"), house.job(job["id"])
        house.json("workers", "uncordon", only)
        assert house.wait(job["id"], 40)["state"] == "SUCCEEDED"
        wrong = house.cli("workers", "cordon", "nobody")
        assert wrong.returncode == 5 and f"there is {only}" in wrong.stderr, wrong


@case("A Worker that is told to stop gets nothing new; its fold goes on elsewhere with what it had", limit_s=120)
def _():
    with Cluster(standalone=False) as house:
        house.start()
        first, process = house.add("w1")
        job = house.submit(house.slow())
        house.until_saved(job["id"], 40)
        second, _process = house.add("w2", slots=2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        house.until_again(job["id"], 40)
        house.check_resumed(house.job(job["id"]), all_told=False)
        attempts = house.attempts(job["id"])
        assert [a["worker"] for a in attempts] == [first, second], attempts
        assert house.cli("finish", job["id"]).returncode == 0
        assert house.wait(job["id"], 40)["state"] == "SUCCEEDED"


@case("Workers end by themselves: when they are old, and when they have had no work", limit_s=120)
def _():
    with Cluster(standalone=False) as house:
        house.start()
        old, process = house.add("w1", "--lifetime", "4s", "--idle-exit", "60s")
        job = house.submit(house.slow())
        house.until_saved(job["id"], 40)
        assert process.wait(20) == 0
        attempt = eventually("its fold was saved", lambda: [
            a for a in house.attempts(job["id"]) if a.get("ended_at")])[0]
        assert attempt["worker"] == old and attempt["end_reason"] == "SHUTDOWN", attempt
        idle, process = house.add("w2", "--idle-exit", "2s", slots=2)
        house.until_again(job["id"], 40)
        assert process.poll() is None, "it has work"
        assert house.cli("finish", job["id"]).returncode == 0
        ended = house.wait(job["id"], 40)
        assert ended["state"] == "SUCCEEDED", ended
        assert process.wait(20) == 0
        assert house.attempts(job["id"])[-1]["worker"] == idle
        assert moment(ended["finished_at"]) <= moment(ended["deadline"])


if __name__ == "__main__":
    main()
