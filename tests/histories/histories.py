"""Records histories of real processes under faults, and judges them; tests/histories/run.sh tells how it is called."""
import argparse
import glob
import json
import os
import random
import shutil
import sys
import tempfile
import time

from tests.e2e.harness import House
from tests.histories.checker import check, read, summary
from tests.histories.load import KINDS, Board, Caller, wind_up
from tests.histories.nemesis import FAULTS, Nemesis
from tests.histories.recorder import History


def run_once(path, seed, seconds=None, strikes=None, pause=(0.3, 1.5), clients=3, faults=FAULTS, kinds=tuple(KINDS),
             most_open=4):
    """Writes a history to `path`: of so many seconds of faults, or of so many faults. The logs go beside it."""
    chance = random.Random(seed)
    history, board = History(path), Board(most_open)
    with House(slots=2) as house:
        keep = ("--keep-jobs", "1000000")  # to be deleted for good is no loss that the checker could tell from others
        house.start(*keep)
        callers = [Caller(house, history, board, n, f"{seed} {n}", kinds) for n in range(clients)]
        for caller in callers:
            caller.start()
        nemesis = Nemesis(house, history, chance, keep)
        nemesis.run(pause, faults, seconds, strikes)
        for caller in callers:
            caller.stop()
        nemesis.over()
        wind_up(house, history, board, limit_s=90)
        history.close()
        for log in glob.glob(os.path.join(house.root, "*.log")) + glob.glob(os.path.join(house.state, "*.log")):
            shutil.copy(log, f"{path}.{os.path.basename(log)}")


def judge(path, seed, least_calls):
    lines = read(path)
    violations = check(lines, least_calls)
    for violation in violations[:20]:
        print(json.dumps({"seed": seed, **violation}), flush=True)
    return {"seed": seed, "violations": len(violations), **summary(lines)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20, help="of faults in each run")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", default=",".join(FAULTS), type=lambda text: text.split(","))
    parser.add_argument("--kinds", default=",".join(KINDS), type=lambda text: text.split(","))
    parser.add_argument("--kills", type=int, help="instead: so many kills of traind while clients submit short Jobs")
    parser.add_argument("--keep", help="the folder for histories; without it only those with violations are kept")
    options = parser.parse_args()
    folder = options.keep or tempfile.mkdtemp(prefix="traind-histories-")
    os.makedirs(folder, exist_ok=True)
    wrong, begin = 0, time.monotonic()
    for seed in range(options.seed, options.seed + options.runs):
        path = os.path.join(folder, f"history-{seed}.jsonl")
        if options.kills:
            run_once(path, seed, strikes=options.kills, pause=(0, 0.25), faults=["kill traind"], kinds=["short"],
                     most_open=20)
        else:
            run_once(path, seed, options.seconds, faults=options.faults, kinds=options.kinds)
        found = judge(path, seed, least_calls=2 * options.kills if options.kills else int(5 * options.seconds))
        wrong += found["violations"] > 0
        print(json.dumps({**found, **({"history": path} if found["violations"] or options.keep else {})}), flush=True)
    print(json.dumps({"runs": options.runs, "with_violations": wrong, "seconds": round(time.monotonic() - begin, 1),
                      "load_1min": round(os.getloadavg()[0], 2)}), flush=True)
    if not wrong and not options.keep:
        shutil.rmtree(folder)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
