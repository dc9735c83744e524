"""Storage that fails under the real programs.

    tests/storage/storage_faults.py --sample 1       as in deploy/test.sh
    tests/storage/storage_faults.py --every 1        every write, sync, rename and open of a small Job
    tests/storage/storage_faults.py --every 1 --parallel 4 --kinds sync,rename --cuts 0
                                                     only these kinds, in four processes side by side
    tests/storage/storage_faults.py --cuts 200       so many power cuts

An operation fails once, wherever it is: in traind, the Worker, PREPARE or a Rank. A process may end;
whoever ended is started again, as a service manager would. What must hold: a Job that was
acknowledged is there and ends with a sound Prediction, and its events stay as they were told.

In a spell several operations of a kind fail one after the other, those of traind's next start among
them. What must hold is the same, but that the Job may fail: its processes may have been tried in vain.

A power cut kills every process and undoes, keeps or tears each write that was not synced, and each
rename whose folder was not.
"""
import argparse
import ctypes
import errno
import json
import mmap
import os
import random
import struct
import subprocess
import sys
import time

from tests.cases import case, main
from tests.e2e.harness import ENDED, House

KINDS = {"write": errno.ENOSPC, "sync": errno.EIO, "rename": errno.EIO, "open": errno.EMFILE}
KILL = -1  # in place of an errno: the process ends there
WRITTEN, CUT, SYNCED, RENAMED, FOLDER_SYNCED = range(1, 6)
LINE = struct.Struct("8Q")
SECTOR = 512


class Control(ctypes.Structure):
    """As in storage_shim.c."""
    _fields_ = [("fail_kind", ctypes.c_int64), ("fail_at", ctypes.c_int64),
                ("fail_more", ctypes.c_int64), ("error", ctypes.c_int64), ("lie", ctypes.c_int64),
                ("counts", ctypes.c_int64 * len(KINDS)), ("failed", ctypes.c_int64),
                ("path", ctypes.c_char * 4096)]


class StorageHouse(House):
    """Its programs reach the state folder through storage_shim.c."""

    def __init__(self, journal=False, **options):
        super().__init__(**options)
        self.library = os.path.realpath(os.path.join(self.bin, "tests/storage/storage_shim.so"))
        path = os.path.join(self.root, "control")
        with open(path, "wb") as f:
            f.write(bytes(ctypes.sizeof(Control)))
        with open(path, "r+b") as f:
            self.control = Control.from_buffer(mmap.mmap(f.fileno(), 0))
        self.control.fail_kind = -1
        self.shim = {"LD_PRELOAD": self.library, "STORAGE_SHIM": path, "STORAGE_ROOT": self.state}
        self.journal = os.path.join(self.root, "journal")
        if journal:
            os.mkdir(self.journal + ".kept")
            self.shim["STORAGE_JOURNAL"] = self.journal

    def environment(self):
        return {**super().environment(), **self.shim}

    def fail(self, kind, at, more=0, error=None):
        self.control.fail_at, self.control.fail_more = at, more
        self.control.error = error or KINDS[kind]
        self.control.fail_kind = list(KINDS).index(kind)

    def count_anew(self):
        self.control.fail_kind = -1
        self.control.failed = 0
        for index in range(len(KINDS)):
            self.control.counts[index] = 0

    def cut_power(self, chance):
        """Kills everything and leaves on the disk what a power cut might."""
        self.kill_all("traind", "trainworker", "trainrank", "trainprep", "traintree")
        self.daemon.wait()
        self.daemon = None  # so that nobody wonders at its end
        self.shim = {}
        undo(self.journal, self.state, chance)


def lines_of(journal):
    """(position, type, inode, offset, size before, begin, text, before, after) of each line."""
    with open(journal, "rb") as f:
        data = f.read()
    at = 0
    while at + LINE.size <= len(data):
        kind, inode, offset, size, begin, text, before, after = LINE.unpack_from(data, at)
        body = at + LINE.size
        ends = (body + text, body + text + before, body + text + before + after)
        if ends[2] > len(data):
            return  # the writer was killed
        yield (at, kind, inode, offset, size, begin, data[body:ends[0]].decode(errors="replace"),
               data[ends[0]:ends[1]], data[ends[1]:ends[2]])
        at = ends[2]


def undo(journal, root, chance):
    writes, synced, folders, renames = {}, {}, {}, []
    for at, kind, inode, offset, size, begin, text, before, after in lines_of(journal):
        if kind in (WRITTEN, CUT):
            writes.setdefault(inode, []).append((at, kind, offset, size, before, after))
        elif kind == SYNCED:
            synced[inode] = max(begin, synced.get(inode, 0))
        elif kind == FOLDER_SYNCED:
            folders[text.rstrip("/")] = begin
        elif kind == RENAMED:
            renames.append((at, *text.split("\n")))
    settled = set()
    for at, source, target, kept in reversed(renames):
        if target in settled or folders.get(os.path.dirname(target), -1) > at or chance.random() < 0.5:
            settled.add(target)
        elif os.path.lexists(target) and os.path.isdir(os.path.dirname(source)):
            os.rename(target, source)
            if kept:
                os.link(kept, target, follow_symlinks=False)
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            info = os.lstat(path)
            loose = [w for w in writes.get(info.st_ino, []) if w[0] >= synced.get(info.st_ino, 0)]
            if loose and os.path.isfile(path) and not os.path.islink(path):
                undo_writes(path, loose, chance)


def undo_writes(path, loose, chance):
    with open(path, "r+b") as f:
        for _, _, offset, size, before, _ in reversed(loose):
            f.seek(offset)
            f.write(before)
            f.truncate(size)
        for _, kind, offset, _, _, after in loose:
            fate = chance.choice(("keep", "drop", "tear"))
            if fate == "drop":
                continue
            if kind == CUT:
                f.truncate(offset)
                continue
            if fate == "tear":
                after = after[:chance.randrange(0, len(after) + SECTOR, SECTOR)]
            f.seek(offset)
            f.write(after)


# ---- one operation fails

def small(house):
    return house.spec(rows=150, folds=2, epochs=2, budget="40s")


def start_if_dead(house):
    """Starts traind unless it runs. It may end by an error, never by a signal."""
    if house.daemon is not None and house.daemon.poll() is None:
        return True
    if house.daemon is not None:
        assert house.daemon.returncode >= 0, f"traind ended by signal {-house.daemon.returncode}"
    try:
        house.start()
        return True
    except AssertionError:
        house.daemon.wait(20)
        return False


class Client:
    """Submits one Job and remembers what it was told."""

    def __init__(self, house):
        self.house, self.spec = house, house.write_spec(small(house))
        self.id, self.job, self.events = None, None, []

    def ask(self, *arguments):
        result = self.house.cli(*arguments, "--timeout", "3s", "-o", "json")
        if self.id is not None:
            assert "there is no job" not in result.stderr, f"{self.id} was acknowledged and is lost"
        return json.loads(result.stdout) if result.returncode == 0 else None

    def step(self):
        if self.id is None:
            told = self.ask("submit", "-f", self.spec, "--request-id", "r1")
            if told:
                self.id = told["id"]
            return
        self.job = self.ask("get", self.id) or self.job
        events = self.ask("events", self.id)
        if events is not None:
            assert events[:len(self.events)] == self.events, (self.events, events)
            self.events = events

    def ended(self):
        return self.job is not None and self.job["state"] in ENDED


def until_ended(house, client, limit_s=100, may_fail=False):
    end = time.monotonic() + limit_s
    while not client.ended():
        assert time.monotonic() < end, ("the Job has not ended", client.job and client.job["state"])
        if start_if_dead(house):
            client.step()
        time.sleep(0.1)
    job = client.job
    if may_fail and job["state"] == "FAILED":
        return
    assert job["state"] == "SUCCEEDED", (job["state"], job["end_reason"], job["end_message"])
    house.check_predictions(job["predictions"]["path"])
    assert house.standing(job["id"]), job


def fail_one(kind, number):
    """Whether there was such an operation."""
    with StorageHouse(slots=1) as house:
        house.fail(kind, number)
        until_ended(house, Client(house))
        failed = bool(house.control.failed)
        print(f"{kind} {number}: {house.control.path.decode() if failed else 'not reached'}", flush=True)
        start_if_dead(house)
        return failed


def fail_for_a_while(kind, number, more):
    """How many operations failed."""
    with StorageHouse(slots=1) as house:
        house.fail(kind, number, more)
        client = Client(house)
        until_ended(house, client, may_fail=True)
        failed = house.control.failed
        print(f"{kind} {number}, and {more} more: {failed} failed, the last one at {house.control.path.decode()}; "
              f"the Job {client.job['state']}", flush=True)
        start_if_dead(house)
        return failed


def fail_each(kind, many, options):
    """How many of them failed, until a whole Job had none left. What breaks does not stop the others."""
    shard, shards = options.shard
    reached, broken = 0, []
    # A Job may have somewhat more than the one in which they were counted.
    for number in range(1 + shard * options.every, 2 * many, shards * options.every):
        try:
            if not fail_one(kind, number):
                break
        except AssertionError as error:
            print(f"BROKEN {kind} {number}: {error}", flush=True)
            broken.append(number)
        reached += 1
    print(f"{kind}: {reached} failed", flush=True)
    assert not broken, f"{kind}: {broken}"
    return reached


def run_shards(options):
    """The same command once for each shard, side by side."""
    base = [sys.executable, os.path.abspath(__file__), "--every", str(options.every), "--kinds", options.kinds,
            "--cuts", "0", "An operation"]
    running = [subprocess.Popen(base + ["--shard", f"{k}/{options.parallel}"]) for k in range(options.parallel)]
    assert all([process.wait() == 0 for process in running]), "a shard failed"


# ---- power cuts

def acknowledged_jobs_survive(seed, lie):
    """False: an acknowledged Job is lost, or traind says that something is."""
    chance = random.Random(seed)
    with StorageHouse(journal=True, standalone=False) as house:
        house.control.lie = lie
        house.start()
        spec = house.write_spec(house.spec(rows=150, folds=2))
        told = {house.json("submit", "-f", spec)["id"] for _ in range(chance.randrange(2, 6))}
        house.cut_power(chance)
        try:
            house.start()
        except AssertionError:
            house.daemon.wait(20)
            return False
        return told <= {job["id"] for job in house.json("list")["jobs"]}


def cut_in_a_job(seed):
    chance = random.Random(seed)
    with StorageHouse(journal=True, slots=1) as house:
        client = Client(house)
        house.start()
        end = time.monotonic() + chance.uniform(0.5, 6)
        while client.id is None or time.monotonic() < end:
            client.step()
        house.cut_power(chance)
        until_ended(house, client)


def run(options):
    @case("An operation that fails ends a process at most: the Job ends with a sound Prediction",
          limit_s=20000)
    def _():
        with StorageHouse(slots=1) as house:
            until_ended(house, Client(house))
            counts = dict(zip(KINDS, house.control.counts))
            print("a small Job:", counts, flush=True)
        assert all(counts.values()), counts
        if options.parallel > 1:
            return run_shards(options)
        for kind, many in counts.items():
            if kind not in options.kinds.split(","):
                continue
            if options.every:
                reached = fail_each(kind, many, options)
            else:  # a Job may have somewhat fewer than the one before
                chance = random.Random(f"{options.seed} {kind}")
                numbers = [chance.randrange(1, many * 3 // 4) for _ in range(options.sample)]
                reached = sum(fail_one(kind, number) for number in numbers)
                print(f"{kind}: {reached} failed", flush=True)
            assert reached > 0, kind

    @case("Operations that fail for a while, also in traind's next start, lose nothing that was acknowledged",
          limit_s=6000)
    def _():
        chance = random.Random(f"{options.seed} spells")
        for kind in options.kinds.split(","):
            for _ in range(options.spells):
                assert fail_for_a_while(kind, chance.randrange(1, 20), chance.randrange(5, 40)) > 0, kind

    @case("Power cuts lose nothing that was acknowledged", limit_s=6000)
    def _():
        for seed in range(options.seed, options.seed + options.cuts):
            assert acknowledged_jobs_survive(seed, lie=0), f"seed {seed}"

    @case("Power cuts in a Job: it ends with a sound Prediction", limit_s=6000)
    def _():
        for seed in range(options.seed, options.seed + max(1, options.cuts // 4)):
            print(f"seed {seed}", flush=True)
            cut_in_a_job(seed)

    @case("Syncs that are none are caught", limit_s=1000)
    def _():
        for seed in range(options.seed, options.seed + 50):
            if not acknowledged_jobs_survive(seed, lie=1):
                print(f"caught by seed {seed}", flush=True)
                return
        raise AssertionError("50 power cuts without any sync lost nothing")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=0, help="fail every so many-th operation")
    parser.add_argument("--kinds", default=",".join(KINDS), help="only these kinds of operation")
    parser.add_argument("--parallel", type=int, default=1, help="processes that share them, with --every")
    parser.add_argument("--shard", type=lambda text: tuple(map(int, text.split("/"))), default=(0, 1),
                        help="K/N: the part K, from 0 on, of N")
    parser.add_argument("--sample", type=int, default=2, help="so many of each kind")
    parser.add_argument("--spells", type=int, default=1, help="so many of each kind")
    parser.add_argument("--cuts", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("sentences", nargs="*", help="only cases with one of these in their sentence")
    options = parser.parse_args()
    run(options)
    main(options.sentences)
