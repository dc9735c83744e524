"""A restore that fails, or is killed, at any of its operations: the next one makes the whole of it.

    tests/storage/restore_faults.py --sample 3      as in deploy/test.sh
    tests/storage/restore_faults.py --sample 0      every write, sync, rename and open of a restore

What must hold: a restore that did not end left no database, so that nobody takes its part for the
whole; the same command then makes a state folder with the Jobs, their answers and their events.
"""
import argparse
import os
import random
import shutil
import subprocess

from tests.cases import case, main
from tests.storage.storage_faults import KILL, KINDS, StorageHouse, small

TRAIND = "server/traind"


class Restored:
    """A house whose one Job is over, and whose state folder may be made anew."""

    def __init__(self, house, *arguments):
        self.house = house
        house.start(*arguments)
        self.id = house.submit(small(house))["id"]
        job = house.wait(self.id)
        assert job["state"] == "SUCCEEDED", job
        self.told = self.what_is_told()
        self.backup = os.path.join(house.root, "backup")

    def what_is_told(self):
        job = self.house.job(self.id)
        with open(job["predictions"]["path"]) as f:
            return job["state"], f.read(), self.house.json("events", self.id)

    def lose(self):
        self.stop()
        shutil.rmtree(self.house.state)
        self.house.count_anew()

    def stop(self):
        if self.house.daemon is None:
            return
        self.house.daemon.terminate()
        self.house.daemon.wait(20)
        self.house.daemon = None

    def database(self):
        return os.path.join(self.house.state, "traind.db")

    def run(self, *arguments):
        return subprocess.run([os.path.join(self.house.bin, TRAIND), *arguments], capture_output=True, text=True,
                              timeout=60, env=self.house.environment())

    def restore(self):
        return self.run("admin", "restore", "--state", self.house.state, self.backup)


def faults(counts, sample, chance):
    """(kind, number, error) of those to try."""
    every = [(kind, number, error) for kind, many in counts.items() for number in range(1, many + 1)
             for error in (None, KILL)]
    return every if sample == 0 else chance.sample(every, min(sample, len(every)))


def ended(process):
    try:
        process.wait(1)
        return True
    except subprocess.TimeoutExpired:
        return False


def run(options):
    chance = random.Random(options.seed)

    @case("A restore of a backup that fails or is killed is done again as a whole", limit_s=6000)
    def _():
        with StorageHouse(slots=1) as house:
            lost = Restored(house)
            made = lost.run("admin", "backup", "--state", house.state, lost.backup)
            assert made.returncode == 0, made
            lost.lose()
            assert lost.restore().returncode == 0
            counts = dict(zip(KINDS, house.control.counts))
            print("a restore:", counts, flush=True)
            assert all(counts.values()), counts
            for kind, number, error in faults(counts, options.sample, chance):
                lost.lose()
                house.fail(kind, number, error=error)
                broken = lost.restore()
                print(kind, number, "killed" if error else "failed", broken.returncode, broken.stderr.strip(), flush=True)
                assert house.control.failed, (kind, number)
                house.count_anew()
                # What fails after the last rename has restored everything.
                if not os.path.exists(lost.database()):
                    assert broken.returncode != 0, broken
                    again = lost.restore()
                    assert again.returncode == 0, again
                checked = lost.run("admin", "fsck", "--state", house.state)
                assert checked.returncode == 0, checked
                house.start()
                assert lost.what_is_told() == lost.told, (kind, number, error)

    @case("A start with --restore that fails or is killed is done again as a whole", limit_s=6000)
    def _():
        with StorageHouse(slots=1) as house:
            archive = os.path.join(house.root, "archive")
            lost = Restored(house, "--artifacts", archive)
            lost.lose()
            house.start("--restore", archive)
            counts = {kind: min(many, 60) for kind, many in zip(KINDS, house.control.counts)}
            print("a start with --restore, or its first operations:", counts, flush=True)
            assert all(counts.values()), counts
            reached = 0
            for kind, number, error in faults(counts, options.sample, chance):
                lost.lose()
                house.fail(kind, number, error=error)
                try:
                    house.start("--restore", archive)
                    started = True
                except AssertionError:
                    house.daemon.wait(20)
                    started = False
                print(kind, number, "killed" if error else "failed", "started" if started else "ended", flush=True)
                if not house.control.failed:  # one start has somewhat fewer than another
                    print("not reached", flush=True)
                    continue
                reached += 1
                house.count_anew()
                if not started:
                    house.start(*([] if os.path.exists(lost.database()) else ["--restore", archive]))
                elif ended(house.daemon):  # by what failed after the restore
                    house.start()
                assert lost.what_is_told() == lost.told, (kind, number, error)
            assert reached > 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", type=int, default=3, help="so many operations of each restore; 0: every one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("sentences", nargs="*", help="only cases with one of these in their sentence")
    options = parser.parse_args()
    run(options)
    main(options.sentences)
