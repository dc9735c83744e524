"""Quotas: device-seconds of owners and labels."""
from tests.cases import case, main
from tests.e2e.harness import House, moment


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
