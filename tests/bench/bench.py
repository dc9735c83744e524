"""The numbers that docs/BENCHMARKS.md quotes, each printed as one JSON line.

    tests/python_test.sh tests/bench/bench.py [PART...] [--data DIR] [--rounds N] [--budgets 3,5,10]

Parts: digits, adult, latency, floor, restart, footprint, help; without one, all of them.
Build with bazel build //server/... //worker/... //client/... //tests/bench/... first.
DIR holds adult_train.csv and adult_test.csv of the UCI Adult set, both with a header
and the target `income`; without them that part is one 'skipped' line.
Times depend on what else the machine does; the last line says how busy it was.
"""
import argparse
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from random import Random

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
                             "--set", f"output={house.root}/out.csv", "--set", "cache=off", "--wait")
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
                "api": "v1", "name": "adult", "cache": "off", "task": {"type": "classification", "metric": "accuracy"},
                "data": {"train": "adult_train.csv", "test": "adult_test.csv", "target": "income",
                         "folds": 5, "seed": 7},
                "model": {"mlp": {"hidden": [256, 256], "dropout": 0.1}},
                "train": {"epochs": 20, "patience": 5}, "budget": {"time": f"{budget}s"}}, "--wait")
            say("adult", budget_s=budget, **outcome(job, at))


def warm_rank(house):
    return any(w["warm_ranks"] >= 1 for w in house.json("workers"))


def events(house, job):
    """(seconds since 1970, kind, detail) of the Job's history, as traind has stored it."""
    with sqlite3.connect(f"file:{house.state}/traind.db?mode=ro", uri=True) as store:
        rows = store.execute("SELECT at_ms, kind, detail FROM job_events JOIN jobs ON job_events.job = jobs.number "
                             "WHERE jobs.id = ? ORDER BY position", (job,))
        return [(at_ms / 1e3, kind, detail) for at_ms, kind, detail in rows]


def timed_steps_s(house, spec):
    """From the start of `trainctl submit` to its answer, and until a fold's first ten steps have been timed and
    the Plan was made from them (revision 2), all in traind's own record."""
    path = house.write_spec(spec)
    at = time.time()
    job = house.json("submit", "-f", path)["id"]
    acknowledged = time.time() - at

    def planned():
        return [e for e in events(house, job) if e[1] == "plan" and not e[2].startswith("revision 1:")]

    eventually("a Plan made from timed steps", planned, 30)
    house.json("cancel", job)
    eventually("the slot is free", lambda: not any(s.get("job") for s in house.json("workers")[0]["slots"]))
    return acknowledged, planned()[0][0] - at


def latency(options):
    """Submit to the tenth optimizer step of a small table: Rank not yet loaded, and warm."""
    cold, warm, acknowledged = [], [], []
    for _ in range(options.rounds):
        with House(slots=1) as house:
            spec = house.spec(rows=2000, folds=2, epochs=100000, budget="60s", train={
                "epochs": 100000, "batch": 32, "patience": 0})
            house.start()
            cold.append(timed_steps_s(house, spec)[1])
            for _ in range(5):
                time.sleep(2)  # what `workers` tells is up to a heartbeat old
                eventually("a warm Rank", lambda: warm_rank(house))
                answer, step = timed_steps_s(house, spec)
                acknowledged.append(answer)
                warm.append(step)
    say("submit_to_tenth_step", rank="cold (the daemon has just started)", **spread(cold))
    say("submit_to_tenth_step", rank="warm", **spread(warm))
    say("submit_acknowledged", via="trainctl", **spread(acknowledged))


def write_wide_table(path, mebibytes, seed):
    """Ten columns of numbers, one of words, and classes that depend on them."""
    random = Random(seed)
    with open(path, "w", encoding="utf-8") as f:
        f.write(",".join(f"x{i}" for i in range(10)) + ",word,kind\n")
        while f.tell() < mebibytes << 20:
            rows = []
            for _ in range(1000):
                x = [random.gauss(0, 1) for _ in range(10)]
                word = random.choice("north south east west".split())
                rows.append(",".join(f"{v:.6f}" for v in x) + f",{word},{'ab'[x[0] + x[1] > 0]}\n")
            f.writelines(rows)


def floor(options):
    """Eight submits at once, 16 MiB of CSV each: acceptance to the first prediction."""
    with House(slots=2) as house:
        for k in range(8):
            write_wide_table(os.path.join(house.data, f"wide{k}.csv"), 16, k)
        with open(os.path.join(house.data, "wide0.csv"), encoding="utf-8") as f:
            test = [next(f) for _ in range(1001)]
        house.write("wide_test.csv", "".join(test))
        specs = [house.write_spec({
            "api": "v1", "name": f"wide{k}", "cache": "off", "task": {"type": "classification"},
            "data": {"train": f"wide{k}.csv", "test": "wide_test.csv", "target": "kind"},
            "model": {"mlp": {}}, "train": {"epochs": 5}, "budget": {"time": "60s"}}, f"wide{k}.json") for k in range(8)]
        house.start()
        for _ in range(options.rounds):
            shutil.rmtree(os.path.join(house.state, "cache"), ignore_errors=True)
            with ThreadPoolExecutor(8) as pool:
                jobs = [j["id"] for j in pool.map(lambda s: house.json("submit", "-f", s), specs)]

            def first(job):
                return [e[0] for e in events(house, job) if e[1] == "prediction"][:1]

            eventually("eight predictions", lambda: all(map(first, jobs)), 60)
            accepted = {j: moment(house.job(j)["accepted_at"]) for j in jobs}
            say("floor_of_8", mebibytes_each=16, **spread([first(j)[0] - accepted[j] for j in jobs]))
            for job in jobs:
                house.json("cancel", job)
                house.wait(job)


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


PARTS = {"digits": digits, "adult": adult, "latency": latency, "floor": floor, "restart": restart, "footprint": footprint,
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
