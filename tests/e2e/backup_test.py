"""Copies of the state folder: made while traind runs, checked, and restored after a loss."""
import glob
import os
import shutil
import subprocess
import time

from tests.cases import case, main
from tests.e2e.harness import House, eventually


def admin(house, *arguments):
    return subprocess.run([os.path.join(house.bin, "server/traind"), "admin", *arguments],
                          capture_output=True, text=True, timeout=60, env=house.environment())


def flip(path, at):
    with open(path, "r+b") as f:
        f.seek(at)
        byte = f.read(1)[0]
        f.seek(at)
        f.write(bytes([byte ^ 4]))


@case("A backup of a running traind, restored after everything was lost, has the Job and its predictions",
      limit_s=150)
def _():
    with House(slots=1) as house:
        house.start()
        done = house.submit(house.spec(rows=150, folds=2, epochs=2, budget="40s"))["id"]
        job = house.wait(done)
        with open(job["predictions"]["path"]) as f:
            before = f.read()
        events = house.json("events", done)
        live = house.submit(house.spec(rows=3000, folds=2, budget="60s", train={"epochs": 100000}))["id"]
        house.until_saved(live)
        token = [os.path.join(house.bin, "server/traind"), "token", "add", "ann", "--role", "user", "--state", house.state,
                 "--out", os.path.join(house.root, "ann.token")]
        subprocess.run(token, check=True, timeout=60, env=house.environment())
        assert os.path.exists(os.path.join(house.state, "tokens"))
        backup = os.path.join(house.root, "backup")
        made = admin(house, "backup", "--state", house.state, backup)
        assert made.returncode == 0, made
        assert not os.path.exists(os.path.join(backup, "tokens"))
        again = admin(house, "backup", "--state", house.state, backup)
        assert again.returncode == 1 and "not empty" in again.stderr, again
        in_backup = os.path.join(backup, os.path.relpath(house.results(done), house.state))
        standing = os.readlink(os.path.join(house.results(done), "current"))
        assert os.readlink(os.path.join(in_backup, "current")) == standing
        assert not os.path.islink(os.path.join(in_backup, standing))
        told = max(a["id"] for a in house.job(live)["attempts"])
        listed = subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=backup)
        assert listed.returncode == 0

        house.kill_all("traind", "trainworker", "trainrank", "trainprep")
        house.daemon.wait()
        shutil.rmtree(house.state)
        restored = admin(house, "restore", "--state", house.state, backup)
        assert restored.returncode == 0, restored
        checked = admin(house, "fsck", "--state", house.state)
        assert checked.returncode == 0, checked
        house.start()
        job = house.job(done)
        assert job["state"] == "SUCCEEDED", job
        with open(job["predictions"]["path"]) as f:
            assert f.read() == before
        assert house.json("events", done) == events
        house.until(live, "it goes on in an Attempt that nobody has heard of", lambda j: any(
            a["id"] > told + 1000 for a in j["attempts"]))
        house.json("finish", live)
        assert house.wait(live)["state"] == "SUCCEEDED"
        over = admin(house, "restore", "--state", house.state, backup)
        assert over.returncode == 1 and "holds" in over.stderr, over  # traind, its lock


@case("A damaged backup is not restored")
def _():
    with House(standalone=False) as house:
        house.start()
        house.submit(house.spec(rows=150, folds=2))
        backup = os.path.join(house.root, "backup")
        assert admin(house, "backup", "--state", house.state, backup).returncode == 0
        target = os.path.join(house.root, "restored")
        flip(os.path.join(backup, "traind.db"), 5000)
        refused = admin(house, "restore", "--state", target, backup)
        assert refused.returncode == 1 and "traind.db is missing or damaged" in refused.stderr, refused
        assert not os.path.exists(os.path.join(target, "traind.db"))
        os.remove(os.path.join(backup, "SHA256SUMS"))
        refused = admin(house, "restore", "--state", target, backup)
        assert refused.returncode == 1 and "not whole" in refused.stderr, refused


@case("fsck finds a flipped bit in the database, in a standing prediction and in a checkpoint")
def _():
    with House(slots=1) as house:
        house.start()
        job = house.wait(house.submit(house.spec(rows=150, folds=2, epochs=2, budget="40s"))["id"])
        assert admin(house, "fsck", "--state", house.state).returncode == 0
        house.kill_daemon(15)
        flip(job["predictions"]["path"], 40)
        found = admin(house, "fsck", "--state", house.state)
        assert found.returncode == 1 and "predictions.csv is damaged" in found.stdout, found
        flip(job["predictions"]["path"], 40)
        checkpoint = glob.glob(os.path.join(house.state, "jobs", job["id"], "attempts/*/*.safetensors"))[0]
        flip(checkpoint, os.path.getsize(checkpoint) - 3)
        found = admin(house, "fsck", "--state", house.state)
        assert found.returncode == 1 and f"{os.path.basename(checkpoint)} is damaged" in found.stdout, found
        flip(checkpoint, os.path.getsize(checkpoint) - 3)
        assert admin(house, "fsck", "--state", house.state).returncode == 0
        flip(os.path.join(house.state, "traind.db"), 4096 + 77)
        assert admin(house, "fsck", "--state", house.state).returncode == 1


@case("A prediction that is damaged at rest is told by an event of its Job")
def _():
    with House(slots=1) as house:
        house.start("--scrub-every", "1s")
        job = house.wait(house.submit(house.spec(rows=150, folds=2, epochs=2, budget="40s"))["id"])
        flip(job["predictions"]["path"], 40)
        eventually("an event tells it", lambda: [
            e for e in house.json("events", job["id"])
            if e["kind"] == "damaged" and "predictions.csv: it does not fit its digest" in e["detail"]], 20)


@case("A checkpoint that is damaged at rest is told and set aside; its fold goes on from the one before", limit_s=120)
def _():
    with House(slots=1) as house:
        house.start("--scrub-every", "1s")
        spec = house.spec(rows=3000, folds=2, budget="80s", train={"epochs": 100000, "checkpoint_every": "300ms"})
        job = house.submit(spec)["id"]
        trains = house.until_saved(job)
        [fold] = [f for f in trains["folds"] if f["state"] == "RUNNING"]
        house.json("pause", job)
        house.until(job, "nothing trains", lambda j: all(f["state"] != "RUNNING" for f in j["folds"]))
        steps = sorted(house.checkpoints(job)[fold["attempt"]])
        assert len(steps) >= 2, steps
        name = f"checkpoint-{steps[-1]}.safetensors"
        path = os.path.join(house.results(job), "attempts", str(fold["attempt"]), name)
        flip(path, os.path.getsize(path) // 2)
        since = time.monotonic()
        eventually("an event tells it", lambda: [
            e for e in house.json("events", job) if e["kind"] == "damaged"
            and f"{name}: it does not fit its digest; it was set aside" in e["detail"]], 20)
        print(f"told after {time.monotonic() - since:.1f} s", flush=True)
        house.json("resume", job)

        def begun_again(j):
            return [a["first_step"] for a in j["attempts"] if a["id"] > fold["attempt"]
                    and a["task"] == f"fold-{fold['index']}" and a["first_step"] is not None]
        again = house.until(job, "the fold trains again", begun_again)
        assert begun_again(again) == [steps[-2]], (again["attempts"], steps)
        house.check_predictions(house.finish(job)["predictions"]["path"])


@case("A lost write-ahead log is refused in words, and may be given up")
def _():
    with House(standalone=False) as house:
        house.start()
        house.submit(house.spec(rows=150, folds=2))
        house.kill_daemon()
        os.remove(os.path.join(house.state, "traind.db-wal"))
        result = subprocess.run([os.path.join(house.bin, "server/traind"), "--state", house.state,
                                 "--listen", "127.0.0.1:0", "--data-root", house.data],
                                capture_output=True, text=True, timeout=20, env=house.environment())
        assert result.returncode == 1, result
        assert "was acknowledged" in result.stderr and "--accept-loss" in result.stderr, result
        house.start("--accept-loss")
        assert house.json("list")["jobs"] == []
        assert house.kill_daemon(15) == 0
        house.start()


main()
