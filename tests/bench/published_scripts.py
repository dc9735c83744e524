"""Training scripts as people publish them, under budgets that are too short by half, each killed once.

    PYTHONPATH=. python3 tests/bench/published_scripts.py --scripts DIR [--only NAME]... [--unchanged NAME]...

DIR holds a folder for each script, with what it reads and a file `job.json`:

    {"title": "PyTorch MNIST", "command": ["python", "main.py", "--save-model"], "expect": ["mnist_cnn.pt"],
     "environment": {}, "script": "main.py", "original": "main.original.py", "options": ["--epochs", "14"]}

Each script runs bare to its end first. Then it runs by `trainctl run` with half of that time, and is killed by signal 9
after KILL_AT of the budget: with the lines that were changed or added for traind, and those of --unchanged without them, too.
A line of a Markdown table for each: the times, whether the answer was there in time, whether the second start
went on where the first one was, and how many lines differ.
"""
import argparse
import difflib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from tests.e2e.harness import House, moment

KILL_AT = 0.35  # of the budget


def changed_lines(before, after):
    """Lines of `after` that are not in `before`."""
    with open(before) as a, open(after) as b:
        return sum(line.startswith("+ ") for line in difflib.ndiff(a.readlines(), b.readlines()))


class Script:
    def __init__(self, folder):
        self.folder = folder
        with open(os.path.join(folder, "job.json")) as f:
            self.job = json.load(f)
        self.changed = 0
        if "original" in self.job:
            self.changed = changed_lines(*(os.path.join(folder, self.job[key]) for key in ("original", "script")))

    def copy_to(self, folder, changed=True):
        shutil.copytree(self.folder, folder, symlinks=True)
        if not changed:
            os.replace(*(os.path.join(folder, self.job[key]) for key in ("original", "script")))
        return folder

    def environment(self, house):
        return {**house.environment(), **self.job.get("environment", {})}

    def bare(self, house):
        """Seconds of the script alone."""
        folder = self.copy_to(os.path.join(house.root, "bare"))
        began = time.monotonic()
        with open(os.path.join(house.root, "bare.log"), "w") as log:
            ended = subprocess.run(self.job["command"], cwd=folder, env=self.environment(house), stdout=log, stderr=log)
        took = time.monotonic() - began
        if ended.returncode != 0:
            with open(os.path.join(house.root, "bare.log")) as log:
                raise SystemExit(f"{self.folder}: status {ended.returncode}\n{log.read()[-2000:]}")
        shutil.rmtree(folder)
        return took

    def submit(self, house, folder, budget):
        words = [os.path.join(house.bin, "client/trainctl"), "--server", house.server, "run", "-o", "json", "--detach",
                 "--budget", f"{budget:.1f}s"]
        for name, value in self.job.get("environment", {}).items():
            words += ["--env", f"{name}={value}"]
        for name in self.job.get("expect", []):
            words += ["--expect", name]
        words += [*self.job.get("options", []), "--", *self.job["command"]]
        made = subprocess.run(words, cwd=folder, env=house.environment(), capture_output=True, text=True)
        if made.returncode != 0:
            raise SystemExit(f"{self.folder}: {made.stderr}")
        return json.loads(made.stdout)


def bare(script):
    with House() as house:
        return script.bare(house)


def measure(script, took, slots, changed):
    with House(slots=slots) as house:
        house.start("--allow-programs")
        budget = took / 2
        folder = script.copy_to(os.path.join(house.root, "job"), changed)
        job = script.submit(house, folder, budget)
        accepted = time.monotonic()
        time.sleep(max(0.0, KILL_AT * budget - (time.monotonic() - accepted)))
        victims = [pid for pid, command in house.processes().items()
                   if "--keep" not in command and not os.path.basename(command.split()[0]).startswith(("train", "sh"))]
        for pid in victims:
            house.kill(pid, signal.SIGKILL)
        job = house.wait(job["id"], limit_s=2 * budget + 60)
        logs = house.cli("logs", job["id"]).stdout
        on_time = moment(job["finished_at"]) <= moment(job["deadline"])
        answered = job["state"] == "SUCCEEDED"
        starts = sorted(set(int(n) for n in re.findall(r"program:(\d+)", logs)))
        gone_on = re.findall(script.job["gone_on"], logs) if "gone_on" in script.job else []
        print(f"| {script.job['title']} | {took:.1f} s | {budget:.1f} s | {'yes' if on_time else 'NO'} | "
              f"{'yes' if answered else 'NO'} | {'yes' if gone_on else 'begins again' if len(starts) > 1 else 'NO'} | "
              f"{script.changed if changed else 0} |", flush=True)
        if not (on_time and answered and victims):
            print(job["end_message"], "\n", logs[-3000:], file=sys.stderr)
        return on_time and answered and bool(victims)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--scripts", required=True)
    parser.add_argument("--only", action="append")
    parser.add_argument("--unchanged", action="append", default=[])
    parser.add_argument("--slots", type=int, default=1)
    asked = parser.parse_args()
    names = sorted(n for n in os.listdir(asked.scripts) if os.path.exists(os.path.join(asked.scripts, n, "job.json")))
    print("| script | bare | budget | on time | answer | after kill -9 | lines changed |")
    print("| --- | --- | --- | --- | --- | --- | --- |", flush=True)
    good = True
    for name in names:
        if asked.only and name not in asked.only:
            continue
        script = Script(os.path.join(asked.scripts, name))
        took = bare(script)
        good = measure(script, took, asked.slots, changed=True) and good
        if name in asked.unchanged:
            good = measure(script, took, asked.slots, changed=False) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
