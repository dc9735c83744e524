"""The operator's program that is told when a Job has ended (--on-end)."""
import json
import os
import stat
import subprocess

from tests.cases import case, main
from tests.e2e.harness import House, eventually


class Told(House):
    """A House with a program that notes its arguments and the Job's file in `told`, after `begin`."""

    def hook(self, begin=""):
        self.notes = os.path.join(self.root, "told")
        path = os.path.join(self.root, "hook.sh")
        with open(path, "w") as f:
            f.write(f'#!/bin/sh\n{begin}\necho "$1 $2 $(tr -d "\\n" <"$3")" >>"{self.notes}"\n')
        os.chmod(path, 0o755)
        return path

    def marked(self, *jobs):
        """Waits until traind knows that the ends of these Jobs were told."""
        for job in jobs:
            mark = os.path.join(self.results(job["id"]), "end-told")
            eventually("its end is marked as told", lambda: os.path.exists(mark))

    def told(self):
        """[(id, state, Job)]"""
        if not os.path.exists(self.notes):
            return []
        with open(self.notes) as f:
            lines = [line.split(" ", 2) for line in f.read().splitlines()]
        return [(id, state, json.loads(text)) for id, state, text in lines]


def runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@case("The end of each Job is told once, with the Job as JSON; earlier ones and a restart tell nothing")
def _():
    with Told(slots=1) as house:
        house.start()
        house.submit(house.spec(folds=2, epochs=1), "--wait")  # before there was a program
        house.kill_daemon()
        house.start("--on-end", house.hook())
        done = house.submit(house.spec(folds=2, epochs=1), "--wait")
        live = house.submit(house.spec(folds=2, epochs=100000))
        house.json("cancel", live["id"])
        told = eventually("both are told", lambda: len(house.told()) >= 2 and house.told())
        assert [t[:2] for t in told] == [(done["id"], "SUCCEEDED"), (live["id"], "CANCELLED")], told
        assert told[0][2]["predictions"]["path"] == done["predictions"]["path"], told[0]
        house.marked(done, live)
        house.kill_daemon()
        house.start("--on-end", house.hook())
        last = house.submit(house.spec(folds=2, epochs=1), "--wait")
        told = eventually("the third is told", lambda: len(house.told()) >= 3 and house.told())
        assert [t[0] for t in told] == [done["id"], live["id"], last["id"]], told


@case("A program that fails is tried again, and one that runs when traind is killed tells again")
def _():
    with Told(slots=1) as house:
        tries = os.path.join(house.root, "tries")
        house.start("--on-end", house.hook(f'echo x >>"{tries}"; [ $(wc -l <"{tries}") -ge 3 ] || exit 1'))
        job = house.submit(house.spec(folds=2, epochs=1), "--wait")
        told = eventually("it is told", house.told, 20)
        assert [t[0] for t in told] == [job["id"]], told
        house.marked(job)
        house.kill_daemon()
        os.remove(house.notes)
        # The program hangs: a stop does not wait for it, and it is told again.
        child = os.path.join(house.root, "child")
        house.start("--on-end", house.hook(f'sleep 100 & echo $! >"{child}.part"; mv "{child}.part" "{child}"; wait'))
        job = house.submit(house.spec(folds=2, epochs=1), "--wait")
        eventually("its program runs", lambda: os.path.exists(child))
        house.kill_daemon(15)
        with open(child) as f:
            sleeps = f.read().strip()
        eventually("what it started is killed, too", lambda: not runs(sleeps))
        house.start("--on-end", house.hook())
        told = eventually("it is told", house.told)
        assert [t[:2] for t in told] == [(job["id"], "SUCCEEDED")], told


@case("A program that is not there, or that nobody may run, is a wrong flag")
def _():
    with Told(slots=1) as house:
        path = house.hook()
        os.chmod(path, stat.S_IRUSR)
        for program, why in ((path, "is not executable"), ("/no/such", "/no/such")):
            command = [os.path.join(house.bin, "server/traind"), "--state", house.state, "--data-root", house.data,
                       "--on-end", program]
            ran = subprocess.run(command, capture_output=True, text=True, timeout=20)
            assert ran.returncode == 2 and "--on-end" in ran.stderr and why in ran.stderr, ran


main()
