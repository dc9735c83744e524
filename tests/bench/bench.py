"""The numbers that docs/BENCHMARKS.md quotes, each printed as one JSON line.

    tests/python_test.sh tests/bench/bench.py [PART...] [--data DIR] [--rounds N] [--budgets 3,5,10]

Parts: digits, adult, latency, restart, footprint, help; without one, all of them.
Build with bazel build //server/... //worker/... //client/... //tests/bench/... first.
DIR holds adult_train.csv and adult_test.csv of the UCI Adult set, both with a header
and the target `income`; without them that part is one 'skipped' line.
Times depend on what else the machine does; the last line says how busy it was.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

from tests.e2e.harness import House, eventually, moment

HERTZ = os.sysconf("SC_CLK_TCK")


def say(bench, **numbers):
    print(json.dumps({"bench": bench, **numbers}), flush=True)


def rounded(seconds):
    return round(seconds, 4)


def spread(values):
    """Median, least and most, in seconds."""
    return {"n": len(values), "p50_s": rounded(statistics.median(values)), "min_s": rounded(min(values)),
            "max_s": rounded(max(values))}


def busy_ticks():
    """(all processes, the machine's cores in use) so far."""
    with open("/proc/stat") as f:
        fields = list(map(int, f.readline().split()[1:9]))
    return sum(fields) - fields[3] - fields[4]


def used_ticks(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def memory_bytes(pid, key):
    with open(f"/proc/{pid}/smaps_rollup") as f:
        return sum(int(line.split()[1]) for line in f if line.startswith(key + ":")) * 1024


def outcome(job, submitted_at):
    """What is said about a Job that had a budget."""
    return {
        "state": job["state"], "quality": job["quality"], "end_reason": job["end_reason"],
        "folds": job["predictions"]["folds"], "oof": job["scores"].get("oof"), "test": job["scores"].get("test"),
        "wall_s": rounded(moment(job["finished_at"]) - submitted_at),
        "before_deadline_s": rounded(moment(job["deadline"]) - moment(job["finished_at"])),
        "decisions": [d["rule"] for d in job["decisions"]],
    }


def digits(options):
    """5 folds of the digits in one budget of 60 s on 2 slots."""
    for _ in range(options.rounds):
        with House(slots=2) as house:
            house.data = os.path.abspath("examples/digits")
            house.start()
            at = time.time()
            job = house.json("submit", "-f", os.path.join(house.data, "job.yaml"), "--budget", "60s",
                             "--set", f"output={house.root}/out.csv", "--wait")
            say("digits", budget_s=60, **outcome(job, at))


def adult(options):
    """UCI Adult within budgets, each on a daemon and a state folder of its own."""
    files = [os.path.join(options.data, f"adult_{part}.csv") for part in ("train", "test")]
    if not all(os.path.exists(f) for f in files):
        say("adult", skipped=f"no {files[0]}")
        return
    for budget in options.budgets:
        with House(slots=2) as house:
            for name in files:
                shutil.copy(name, house.data)
            house.start()
            at = time.time()
            job = house.submit({
                "api": "v1", "name": "adult", "task": {"type": "classification", "metric": "accuracy"},
                "data": {"train": "adult_train.csv", "test": "adult_test.csv", "target": "income",
                         "folds": 5, "seed": 7},
                "model": {"mlp": {"hidden": [256, 256], "dropout": 0.1}},
                "train": {"epochs": 20, "patience": 5}, "budget": {"time": f"{budget}s"}}, "--wait")
            say("adult", budget_s=budget, **outcome(job, at))


def warm_rank(house):
    return any(w["warm_ranks"] >= 1 for w in house.json("workers"))


def first_step_s(house, spec):
    """From the start of `trainctl submit` to the first recorded epoch, which is 4 steps long."""
    path = house.write_spec(spec)
    at = time.time()
    job = house.json("submit", "-f", path)
    acknowledged = time.time() - at
    eventually("an epoch", lambda: house.job(job["id"])["folds"][0]["progress"]["done"] >= 1, 30)
    points = house.json("metrics", job["id"])["points"]
    first = min(moment(p["at"]) for p in points if p["name"] == "train_loss")
    house.json("cancel", job["id"])
    eventually("the slot is free", lambda: not any(s.get("job") for s in house.json("workers")[0]["slots"]))
    return acknowledged, first - at


def latency(options):
    """Submit to the first epoch of a small table: Rank not yet loaded, and warm."""
    cold, warm, acknowledged = [], [], []
    for _ in range(options.rounds):
        with House(slots=1) as house:
            spec = house.spec(rows=200, folds=2, epochs=100000, budget="60s", train={
                "epochs": 100000, "batch": 32, "patience": 0})
            house.start()
            cold.append(first_step_s(house, spec)[1])
            for _ in range(5):
                eventually("a warm Rank", lambda: warm_rank(house))
                answer, step = first_step_s(house, spec)
                acknowledged.append(answer)
                warm.append(step)
    say("submit_to_first_epoch", rank="cold (the daemon has just started)", **spread(cold))
    say("submit_to_first_epoch", rank="warm", **spread(warm))
    say("submit_acknowledged", via="trainctl", **spread(acknowledged))


def restart(options):
    """Ready again with 10,000 queued Jobs after kill -9."""
    submitter = os.path.join(os.environ.get("TRAIND_BIN", "bazel-bin"), "tests/bench/submit_bench")
    if not os.path.exists(submitter):
        say("restart", skipped=f"no {submitter}: bazel build //tests/bench:submit_bench")
        return
    submitter = os.path.abspath(submitter)
    for _ in range(options.rounds):
        with House(standalone=False) as house:
            house.start()
            house.spec(rows=200)
            result = subprocess.run([submitter, "--server", house.server, "--jobs", str(options.jobs),
                                     "--train", os.path.join(house.data, "train200.csv"),
                                     "--target", "kind"], capture_output=True, text=True)
            assert result.returncode == 0, result
            print(result.stdout.strip(), flush=True)
            house.kill_daemon()
            at = time.monotonic()
            house.start()
            ready = time.monotonic() - at
            jobs = house.json("list")["jobs"]
            say("restart", queued=options.jobs, ready_s=rounded(ready),
                first_list_s=rounded(time.monotonic() - at), listed=len(jobs))


def footprint(options):
    """traind, idle, with its Worker: CPU over 20 s and memory."""
    with House(slots=2) as house:
        house.start()
        eventually("warm Ranks", lambda: warm_rank(house))
        pids = {"traind": [house.daemon.pid], "trainworker": list(house.processes("trainworker")),
                "trainrank": list(house.processes("trainrank"))}
        before = {name: sum(map(used_ticks, p)) for name, p in pids.items()}
        everyone, at = busy_ticks(), time.monotonic()
        end = at + 20
        eventually("20 s have passed", lambda: time.monotonic() > end, 30)
        passed = time.monotonic() - at
        own = 0
        for name, p in pids.items():
            ticks = sum(map(used_ticks, p)) - before[name]
            own += ticks
            say("idle", process=name, processes=len(p), core_percent=round(100 * ticks / HERTZ / passed, 2),
                rss_mb=round(sum(memory_bytes(i, "Rss") for i in p) / 1e6, 1),
                pss_mb=round(sum(memory_bytes(i, "Pss") for i in p) / 1e6, 1))
        say("idle", process="others", core_percent=round(100 * (busy_ticks() - everyone - own) / HERTZ / passed, 1))


def help_text(options):
    """trainctl --help, from exec to end."""
    program = os.path.join(os.environ.get("TRAIND_BIN", "bazel-bin"), "client/trainctl")
    took = []
    for _ in range(30):
        at = time.monotonic()
        subprocess.run([program, "--help"], stdout=subprocess.DEVNULL, check=True)
        took.append(time.monotonic() - at)
    say("trainctl_help", **spread(took))


PARTS = {"digits": digits, "adult": adult, "latency": latency, "restart": restart, "footprint": footprint,
         "help": help_text}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--data", default=".")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--budgets", default="3,5,10,20,60",
                        type=lambda text: [int(b) for b in text.split(",")])
    options = parser.parse_args()
    unknown = [p for p in options.parts if p not in PARTS]
    if unknown:
        parser.error(f"unknown part {unknown[0]} (known: {', '.join(PARTS)})")
    at, ticks = time.monotonic(), busy_ticks()
    for name in options.parts or PARTS:
        PARTS[name](options)
    say("machine", cores=os.cpu_count(), busy_cores=round(
        (busy_ticks() - ticks) / HERTZ / (time.monotonic() - at), 2), load_1min=os.getloadavg()[0])
    return 0


if __name__ == "__main__":
    sys.exit(main())
