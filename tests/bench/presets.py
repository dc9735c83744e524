"""Measures the cost and the score of each preset.

    tests/bench/presets.sh [SET...] --data DIR

For each data set (adult and wine: UCI, in DIR; digits: examples/digits) it runs one Job per preset, without a budget, on
two slots, and prints a JSON line with the score on the test file, the slot-seconds of the folds and the wall-clock time.
The presets of a set run one after the other, so their slot-seconds compare.
"""
import argparse
import json
import os
import shutil
import tempfile

from tests.bench.worth import SETS, prepare
from tests.e2e.harness import House, moment


def run(name, folder, preset):
    target, kind, metric = SETS[name]
    with House(slots=2) as house:
        for part in ("train", "test"):
            shutil.copy(os.path.join(folder, f"{part}.csv"), house.data)
        house.start()
        spec = house.write_spec({
            "api": "v1", "name": name, "cache": "off", "preset": preset, "task": {"type": kind, "metric": metric},
            "data": {"train": "train.csv", "test": "test.csv", "target": target}, "model": {"mlp": {}}})
        job = house.json("submit", "-f", spec)
        job = house.wait(job["id"], 900)
        report = house.job(job["id"])["report"]
        return {"set": name, "preset": preset, "metric": metric, "test": job["scores"]["test"], "oof": job["scores"]["oof"],
                "slot_s": round(report["device_s"], 1), "epochs": report["epochs_done"], "quality": job["quality"],
                "wall_s": round(moment(job["finished_at"]) - moment(job["accepted_at"]), 1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET")
    parser.add_argument("--data", default=".")
    options = parser.parse_args()
    for name in options.sets or SETS:
        with tempfile.TemporaryDirectory() as folder:
            if not prepare(name, options, folder):
                print(json.dumps({"set": name, "skipped": "its files are not in --data"}), flush=True)
                continue
            for preset in ("fast", "balanced", "best"):
                print(json.dumps(run(name, folder, preset)), flush=True)


main()
