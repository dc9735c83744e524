"""Many odd programs at once: are all deadlines kept, and is nothing left behind?

    PYTHONPATH=. python3 tests/e2e/odd_programs.py [--count 200] [--seed 1] [--at-once 8] [--no-kills]

Programs that ignore signals, leave processes, fill a small disk, print a gigabyte, sleep, end without an answer, crash,
or write half a file. Meanwhile processes of traind are killed at random. A line for each kind, and a last line
'N kept, N missed, N left behind'. Exit status 1 where one was missed or left behind.
"""
import argparse
import collections
import json
import os
import random
import subprocess
import sys
import threading
import time

from tests.e2e.harness import House, eventually, moment

# Retention would delete Jobs of a full disk before this has seen their end.
FLAGS = ("--allow-programs", "--keep-disk", "1GiB")
# traind has another port after each restart: a call to the earlier one is given up and made again.
PATIENCE_S = 5
ANSWERS, FAILS, EITHER = "answers", "fails", "either"
# kind -> (shell script, what becomes of it without kills)
KINDS = {
    "well behaved": ("sleep 0.5; echo 1 > sub.csv", ANSWERS),
    "ignores signals": ("trap '' TERM USR1 INT HUP; echo 1 > sub.csv; while :; do sleep 0.3; done", ANSWERS),
    "leaves processes": ("for i in 1 2 3 4 5; do (setsid sh -c 'trap \"\" TERM; sleep 300' &); done; echo 1 > sub.csv",
                         ANSWERS),
    "forks without end": ("f() { sleep 0.2; (f &); sleep 300; }; echo 1 > sub.csv; (f &); sleep 300", ANSWERS),
    "prints without end": ("echo 1 > sub.csv; yes 'nothing worth reading, again and again'", ANSWERS),
    "prints a gigabyte": ("head -c 1000000000 /dev/zero | tr '\\0' x; echo 1 > sub.csv", EITHER),
    "reports without end": ("echo 1 > sub.csv; yes '{\"epoch\": 1, \"loss\": 0.1}' >&3", ANSWERS),
    "sleeps": ("sleep 300", FAILS),
    "ends without an answer": ("exit 0", FAILS),
    "crashes": ("echo 1 > sub.tmp; kill -SEGV $$", FAILS),
    "fails": ("echo no such thing >&2; exit 3", FAILS),
    "writes half a file": ("printf '1,2\\n3,' > sub.csv; sleep 300", ANSWERS),
    "writes an empty file": ("> sub.csv; sleep 300", FAILS),
    "ends its own group": ("echo 1 > sub.csv; trap '' TERM; kill 0; exit 0", ANSWERS),
    "stops itself": ("echo 1 > sub.csv; kill -STOP $$", ANSWERS),
    "fills the disk": ("echo 1 > sub.csv; cat /dev/zero > big.bin; sleep 300", EITHER),
    "makes many files": ("i=0; while [ $i -lt 12000 ]; do i=$((i+1)); echo $i > f$i; done; echo 1 > sub.csv", EITHER),
    "removes its folder": ("echo 1 > sub.csv; rm -rf ./* \"$TRAIND_OUT\"; sleep 300", FAILS),
    "answers late": ("trap 'sleep 0.2; echo 1 > sub.csv; exit 0' TERM; while :; do sleep 0.1; done", ANSWERS),
}


class OddPrograms(House):
    def on_small_disk(self):
        """The state folder and the results on a file system of 600 MB, where that is permitted."""
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600m", "tmpfs", self.state], capture_output=True)
        self.mounted = made.returncode == 0
        return self.mounted

    def __exit__(self, *error):
        try:
            super().__exit__(*error)
        finally:
            if getattr(self, "mounted", False):
                subprocess.run(["umount", "-l", self.state], capture_output=True)


def submit(house, kind, folder, budget):
    os.makedirs(folder, exist_ok=True)
    result = subprocess.run(
        [os.path.join(house.bin, "client/trainctl"), "--server", house.server, "run", "-o", "json", "--detach",
         "--budget", f"{budget}s", "--expect", "sub.csv", "--", "sh", "-c", KINDS[kind][0]],
        capture_output=True, text=True, cwd=folder, env=house.environment(), timeout=PATIENCE_S)
    assert result.returncode == 0, (kind, result.stderr)
    return json.loads(result.stdout)["id"]


class Killer(threading.Thread):
    """kill -9 of a random process of ours now and then; traind is started again."""

    def __init__(self, house, chance):
        super().__init__(daemon=True)
        self.house, self.chance, self.over, self.kills = house, chance, threading.Event(), collections.Counter()

    def starts(self):
        """Whether traind has started: it cannot while a program has the disk filled."""
        try:
            self.house.start(*FLAGS)
            return True
        except AssertionError:
            return False

    def run(self):
        while not self.over.wait(self.chance.uniform(0.3, 1.5)):
            program = self.chance.choice(["trainprog", "trainprog", "sh", "trainworker", "traind"])
            victims = [p for p in self.house.processes(program)]
            if not victims:
                continue
            self.kills[program] += 1
            if program == "traind":
                self.house.kill_daemon()
                eventually("traind starts", self.starts, 60)
            else:
                self.house.kill(self.chance.choice(victims))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=8)
    parser.add_argument("--no-kills", action="store_true")
    asked = parser.parse_args()
    chance = random.Random(asked.seed)
    outcomes = collections.defaultdict(collections.Counter)
    missed = []
    left = 0
    try:
        with OddPrograms(slots=asked.at_once) as house:
            small = house.on_small_disk()
            house.start(*FLAGS)
            killer = Killer(house, chance)
            if not asked.no_kills:
                killer.start()
            kinds = [k for k in KINDS if small or k != "fills the disk"]
            running = {}
            begun = 0
            over = time.monotonic() + 60 + 30 * asked.count / asked.at_once
            while begun < asked.count or running:
                assert time.monotonic() < over, f"stuck: {running}"
                while begun < asked.count and len(running) < asked.at_once and time.monotonic() < over:
                    kind = kinds[begun % len(kinds)]
                    try:
                        job = submit(house, kind, os.path.join(house.root, f"work-{begun}"), chance.choice([5, 6, 8]))
                    except (AssertionError, subprocess.TimeoutExpired):
                        time.sleep(0.2)  # traind is being started
                        continue
                    running[job] = kind
                    begun += 1
                for job, kind in list(running.items()):
                    result = house.cli("get", job, "-o", "json")
                    if result.returncode != 0:
                        continue
                    told = json.loads(result.stdout)
                    if told["state"] not in ("SUCCEEDED", "FAILED"):
                        continue
                    del running[job]
                    expected = KINDS[kind][1]
                    late = moment(told["finished_at"]) > moment(told["deadline"])
                    if "STORAGE_FULL" in told["end_message"]:
                        expected = EITHER  # one that fills the disk harms its neighbours on it
                    wrong = (expected == FAILS and told["state"] == "SUCCEEDED") or (
                        asked.no_kills and expected == ANSWERS and told["state"] == "FAILED")
                    outcomes[kind]["late" if late else "WRONG" if wrong else told["state"]] += 1
                    if late or wrong:
                        missed.append((kind, told["state"], told["end_message"]))
                time.sleep(0.1)
            killer.over.set()
            if killer.is_alive():
                killer.join()
            left = len(house.processes("sleep")) + len(house.processes("yes"))
    except AssertionError as error:
        print(error, flush=True)
        left = max(left, 1)
    for kind, counts in sorted(outcomes.items()):
        print(f"{kind:24} " + ", ".join(f"{n} {what}" for what, n in sorted(counts.items())))
    for one in missed:
        print("missed:", *one)
    total = sum(sum(c.values()) for c in outcomes.values())
    print(f"killed: {dict(killer.kills)}")
    print(f"{total - len(missed)} kept, {len(missed)} missed, {left} left behind")
    return 1 if missed or left else 0


if __name__ == "__main__":
    sys.exit(main())
