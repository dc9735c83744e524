"""Quotas: device-seconds of owners and labels."""
import time

from tests.cases import case, main
from tests.e2e.harness import House, eventually, moment


@case("A quota is used up by Jobs, stops the one that trains, refuses the next, and survives a restart")
def _():
    with House(slots=2) as house:
        house.start()
        house.submit(house.spec(folds=2, epochs=2), "--wait")  # now `local` is known
        state = house.json("quota", "set", "local", "9s", "per", "10m")
        assert 0 < state["used_s"] < 9, state
        # With a deadline the Plan is made for what is left.
        job = house.submit(house.spec(folds=2, epochs=100000, budget="40s"), "--wait")
        assert job["state"] == "SUCCEEDED" and job["predictions"]["folds"], job
        assert job["decisions"][0]["rule"] == "quota", job["decisions"]
        assert moment(job["finished_at"]) - moment(job["accepted_at"]) < 12, job
        # Without one, training is stopped.
        state = house.json("quota", "set", "local", f"{int(house.json('quota')[0]['used_s']) + 4}s", "per", "10m")
        job = house.submit(house.spec(folds=2, epochs=100000, budget=None), "--wait")
        assert (job["state"], job["end_reason"]) == ("SUCCEEDED", "QUOTA_REACHED"), job
        assert job["predictions"]["folds"], job
        assert any("quota: user local has used" in w for w in job["warnings"]), job["warnings"]
        # The Job was stopped a little before all was used, so that it ends in time.
        (state,) = house.json("quota")
        house.json("quota", "set", "local", f"{int(state['used_s'])}s", "per", "10m")
        refused = house.cli("submit", "-f", house.write_spec(house.spec()))
        assert refused.returncode != 0 and "free again at" in refused.stderr, refused
        house.kill_daemon()
        house.start()
        (state,) = house.json("quota", "list")
        assert state["left_s"] == 0, state
        # Another owner pays for itself.
        other = house.submit(house.spec(folds=2, epochs=2), "--owner", "bob", "--wait")
        assert other["owner"] == "bob" and other["state"] == "SUCCEEDED", other
        house.cli("quota", "remove", "local")
        assert house.json("quota") == []
        assert house.submit(house.spec(folds=2, epochs=2), "--wait")["state"] == "SUCCEEDED"


def training(house, *jobs):
    return sum(fold["state"] == "RUNNING" for job in jobs for fold in house.job(job).get("folds") or [])


@case("An owner has no more Jobs and slots than it may, also after a restart")
def _():
    flags = ("--owner-jobs", "2", "--owner-slots", "1")
    with House(slots=3) as house:
        house.start(*flags)

        def submit(owner):
            spec = house.spec(folds=2, train={"epochs": 100000, "patience": 0}, budget="100s")
            return house.submit(spec, "--owner", owner)["id"]

        ada, bob = [submit("ada"), submit("ada")], submit("bob")
        eventually("each has its slot", lambda: training(house, *ada) == 1 and training(house, bob) == 1, 40)
        eventually("the other one is told why it waits", lambda: any(
            job.get("pending_reason") == "QUOTA" and "owner ada uses 1 of the 1 slots" in job["waits_for"]
            for job in map(house.job, ada)), 20)
        refused = house.cli("submit", "-f", house.write_spec(house.spec()), "--owner", "ada")
        assert refused.returncode != 0 and "ada has 2 Jobs that are not over" in refused.stderr, refused
        wide = house.cli("submit", "-f", house.write_spec(house.spec(resources={"slots": 2})), "--owner", "cid")
        assert wide.returncode == 2 and "an owner may use 1 at a time" in wide.stderr, wide
        house.kill_daemon()
        house.start(*flags)
        for _ in range(20):
            assert training(house, *ada) <= 1 and training(house, bob) <= 1
            time.sleep(0.1)
        refused = house.cli("submit", "-f", house.write_spec(house.spec()), "--owner", "ada")
        assert refused.returncode != 0 and "--owner-jobs" in refused.stderr, refused
        for job in (*ada, bob):
            assert house.finish(job)["state"] == "SUCCEEDED", house.job(job)


@case("A quota of nobody, or that says nothing, is an error")
def _():
    with House(slots=1) as house:
        house.start()
        unknown = house.cli("quota", "set", "bob", "45h", "per", "7d")
        assert unknown.returncode == 5 and "bob" in unknown.stderr, unknown
        assert house.json("quota", "set", "bob", "45h", "per", "7d", "--add")["left_s"] == 45 * 3600
        assert house.cli("quota", "list", "alice").returncode == 5
        assert house.cli("quota", "remove", "alice").returncode == 5
        for words in (["set", "bob", "45h"], ["set", "bob", "45", "per", "7d"], ["set"], ["grow"]):
            assert house.cli("quota", *words).returncode == 2, words
        odd = house.cli("submit", "-f", house.write_spec(house.spec()), "--owner", "a/b")
        assert odd.returncode == 2 and "owner" in odd.stderr, odd


main()
