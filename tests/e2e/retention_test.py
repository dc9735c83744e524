"""Jobs that are over go, and nothing that somebody needs goes with them."""
import os
import shutil
import subprocess

from tests.cases import case, main
from tests.e2e.harness import ENDED, House, eventually, moment


def small(house, name, **changes):
    return house.spec(rows=200, folds=2, epochs=1, name=name, **changes)


def disk_bytes(folder):
    return 512 * sum(os.lstat(os.path.join(root, name)).st_blocks
                     for root, _, names in os.walk(folder) for name in names)


def ids(house):
    return {job["id"] for job in house.json("list")["jobs"]}


def remove(folder):
    """Removes it, although a Rank that is about to end may still write its last files."""
    def gone():
        shutil.rmtree(folder, ignore_errors=True)
        return not os.path.exists(folder)
    eventually(f"{folder} is gone", gone)


def predicts(house, job):
    made = house.json("predict", job, "--data", os.path.join(house.data, "test200.csv"))
    assert made["state"] == "SUCCEEDED" and made["models_from"] == job, made
    return made


@case("Of thirty Jobs ten are kept, the pinned one among them; their predictions and models work", limit_s=300)
def _():
    with House(slots=2) as house:
        house.start("--keep-jobs", "10")
        jobs = []
        for number in range(30):
            jobs.append(house.submit(small(house, f"job-{number}"))["id"])
            if number == 0:
                house.wait(jobs[0])
                assert house.json("pin", jobs[0])["pinned"]
            if number == 15:  # in the middle of them
                house.kill_daemon()
                house.start("--keep-jobs", "10")
        for job in jobs:
            eventually(f"{job} has ended or is gone",
                       lambda: job not in ids(house) or house.job(job)["state"] in ENDED, 120)
        # Those that ended last stay: Jobs on two slots end in another order than they were submitted in,
        # and two of them may end in the same millisecond.
        ended = {job: moment(house.job(job)["finished_at"]) for job in ids(house)}
        before = disk_bytes(house.state + "/jobs")
        listed = house.json("gc", "--dry-run")
        there = ids(house)
        assert ids(house) == there and disk_bytes(house.state + "/jobs") == before, "a dry run deletes"
        done = house.json("gc")
        gone = {item["name"] for item in done["items"] if item["kind"] == "job"}
        assert gone == {item["name"] for item in listed["items"] if item["kind"] == "job"}, (listed, done)
        kept = ids(house)
        assert kept == there - gone and len(kept) == 10, (kept, gone)
        last = kept - {jobs[0]}
        assert len(last) == 9 and min(ended[job] for job in last) >= max(ended[job] for job in gone), (kept, ended)
        assert set(os.listdir(house.state + "/jobs")) == kept
        after = disk_bytes(house.state + "/jobs")
        assert after <= before - done["bytes"] * 0.9 and done["bytes"] > 0, (before, after, done["bytes"])
        print(f"30 Jobs took {before} bytes, the 10 that were kept take {after}")
        for job in kept:
            house.standing(job)
            assert house.cli("fetch", job, "--to", os.path.join(house.root, "p.csv")).returncode == 0
        for job in (jobs[0], max(last, key=ended.get)):
            predicts(house, job)


@case("A Job is deleted once it is over; a second deletion succeeds")
def _():
    with House(slots=1) as house:
        house.start()
        live = house.submit(house.spec(folds=2, epochs=100000, budget="60s"))["id"]
        refused = house.cli("delete", live)
        assert refused.returncode == 1 and "cancel" in refused.stderr, refused
        house.until(live, "it trains", lambda j: j["state"] == "RUNNING")
        house.json("cancel", live)
        assert house.json("delete", live)["bytes"] > 0  # also while its Ranks end
        assert not os.path.exists(house.results(live))
        gone = house.cli("get", live)
        assert gone.returncode == 5 and "was deleted" in gone.stderr, gone
        assert house.json("delete", live)["bytes"] == 0
        assert house.cli("delete", "nobody").returncode == 5
        house.kill_daemon()
        house.start()
        assert live not in ids(house) and house.json("delete", live)["bytes"] == 0


@case("The models of a Job stay as long as another Job predicts with them")
def _():
    with House(slots=1) as house:
        house.start("--keep-jobs", "1")
        source = house.submit(small(house, "source"), "--wait")["id"]
        rows = os.path.join(house.data, "test200.csv")
        assert house.cli("predict", source, "--rows", rows).returncode == 0  # starts a Job that serves
        later = house.submit(small(house, "later"), "--wait")["id"]

        def collected():  # an Attempt that still ends keeps its Job until the next collection
            house.json("gc")
            return later not in ids(house)
        eventually("the later Job is gone", collected)
        assert source in ids(house), ids(house)
        refused = house.cli("delete", source)
        assert refused.returncode == 1 and "uses job" in refused.stderr, refused
        assert house.cli("predict", source, "--rows", rows).returncode == 0


@case("A Job whose folder was removed by hand says so")
def _():
    with House(slots=1) as house:
        house.start()
        job = house.submit(small(house, "blobs"), "--wait")["id"]
        remove(house.results(job))
        assert house.job(job)["files_missing"] and house.json("list")["jobs"][0]["files_missing"]
        assert "files gone" in house.cli("list").stdout
        assert "somebody has removed" in house.cli("get", job).stdout
        for arguments, code in ((("fetch", job, "--to", "-"), 5),
                                (("predict", job, "--data", os.path.join(house.data, "test200.csv")), 1),
                                (("predict", job, "--rows", os.path.join(house.data, "test200.csv")), 1),
                                (("submit", "--from", job, "--budget", "20s"), 1)):
            refused = house.cli(*arguments)
            assert refused.returncode == code and house.results(job) in refused.stderr, (arguments, refused)
        house.json("delete", job)
        assert ids(house) == set()


@case("Temporary files of killed writers go")
def _():
    with House(slots=1) as house:
        house.start()
        job = house.submit(small(house, "blobs"), "--wait")["id"]
        dead = subprocess.Popen(["true"])
        dead.wait()
        left = [os.path.join(house.results(job), f"folds.npy.tmp-{dead.pid}-0"),
                os.path.join(house.state, "cache", f"k.table.tmp-{dead.pid}-1")]
        ours = os.path.join(house.state, "cache", f"k.table.tmp-{os.getpid()}-0")
        for path in left + [ours]:
            with open(path, "wb") as f:
                f.write(b"x" * 100_000)
        listed = house.json("gc", "--dry-run")["items"]
        assert sorted(os.path.join(house.state, item["name"]) for item in listed
                      if item["kind"] == "temporary") == sorted(left), listed
        house.kill_daemon()
        house.start()  # sweeps
        eventually("they are gone", lambda: not any(os.path.exists(path) for path in left))
        assert os.path.exists(ours)


main()
