"""How fast everything goes on after a kill.

    PYTHONPATH=$PWD python3 tests/bench/recovery.py [--kills 50] [--jobs 10000] [--ended FOLDER] [PART...]

Parts: queued, traind with so many queued Jobs; ended, traind on the database of FOLDER, which
list_bench has filled with a million Jobs that are over; rank, a Rank that trains. Without one, all.
Build with bazel build //server/... //worker/... //client/... //tests/bench:submit_bench first.

traind's time runs from the start of its new process to its first answer; that of a Rank from the
kill to the first step of the fold's next Attempt, as traind tells it.
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time

from tests.e2e.harness import House, eventually


def say(part, seconds, **more):
    ordered = sorted(seconds)
    # Of n values the largest one is the p99 where n is below 100.
    p99 = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    print(json.dumps({"recovery": part, "n": len(ordered), "p50_s": round(ordered[len(ordered) // 2], 3),
                      "p99_s": round(p99, 3), "max_s": round(ordered[-1], 3), **more,
                      "load_1min": os.getloadavg()[0]}), flush=True)


def kill_and_start(house, kills, *arguments):
    took = []
    for _ in range(kills):
        house.kill_daemon()
        at = time.monotonic()
        house.start(*arguments, limit_s=120)
        house.json("workers")
        took.append(time.monotonic() - at)
    return took


def queued(options):
    with House(standalone=False) as house:
        house.start()
        house.spec(rows=200)
        submitter = os.path.join(house.bin, "tests/bench/submit_bench")
        subprocess.run([submitter, "--server", house.server, "--jobs", str(options.jobs), "--train",
                        os.path.join(house.data, "train200.csv"), "--target", "kind"], check=True,
                       stdout=subprocess.DEVNULL)
        say("traind, queued Jobs", kill_and_start(house, options.kills), jobs=options.jobs)


def ended(options):
    if not options.ended:
        print("recovery of ended Jobs: skipped, no --ended FOLDER", flush=True)
        return
    with House(standalone=False) as house:
        for name in os.listdir(options.ended):
            shutil.copy(os.path.join(options.ended, name), house.state)
        keep = ("--keep-jobs", "10000000")  # or it would begin to delete them
        house.start(*keep, limit_s=120)
        say("traind, ended Jobs", kill_and_start(house, options.kills, *keep),
            database_mb=round(os.path.getsize(os.path.join(house.state, "traind.db")) / 1e6))


def rank(options):
    with House(slots=1) as house:
        house.start()
        job = house.submit(house.spec(rows=3000, folds=2, budget="30m", train={"epochs": 100_000, "checkpoint_every": "1s"}))["id"]
        took = []

        def running():
            live = [a for a in house.job(job)["attempts"] if a["ended_at"] is None and a["first_step"] is not None]
            return live[0]["id"] if live else None
        while len(took) < options.kills:
            before = eventually("the fold trains", running, 60)
            house.until_saved(job)
            [pid] = eventually("its Rank works", house.busy_ranks)
            at = time.monotonic()
            os.kill(pid, signal.SIGKILL)
            eventually("its next Attempt trains", lambda: running() not in (None, before), 60)
            took.append(time.monotonic() - at)
        house.json("cancel", job)
        say("a Rank that trains", took)


PARTS = {"queued": queued, "ended": ended, "rank": rank}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", choices=[*PARTS, []])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--ended", help="a folder with a traind.db")
    options = parser.parse_args()
    for name in options.parts or PARTS:
        PARTS[name](options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
