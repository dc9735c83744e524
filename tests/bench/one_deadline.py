"""How many Jobs get a model when they are submitted together, have the same budget, and could each use all of it.

    PYTHONPATH=$PWD python3 tests/bench/one_deadline.py [--jobs 8] [--budget 20s] [--slots 2]

Run from the root after `bazel build //server:traind //client:trainctl //worker/...`; TRAIND_BIN names other binaries. Prints
a line of JSON: how many Jobs answered with models, and how many with the floor.
"""
import argparse
import json
import os

from tests.e2e.harness import House, moment


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--budget", default="20s")
    parser.add_argument("--slots", type=int, default=2)
    options = parser.parse_args()
    with House(slots=options.slots) as house:
        house.start()
        spec = house.spec(rows=2000, folds=3, epochs=100000, budget=options.budget)
        jobs = [house.submit({**spec, "name": f"n{i}"})["id"] for i in range(options.jobs)]
        ended = [house.wait(job, 600) for job in jobs]
        models = sum(job["predictions"]["quality"] != "FLOOR" for job in ended)
        late = sum(moment(job["finished_at"]) > moment(job["deadline"]) for job in ended)
    print(json.dumps({"jobs": len(ended), "with_models": models, "with_the_floor": len(ended) - models, "late": late,
                      "load_1min": round(os.getloadavg()[0], 2)}), flush=True)


if __name__ == "__main__":
    main()
