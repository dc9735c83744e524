"""Nothing in the product waits on the wall clock, and few places read it.

    findings(root) -> list of "file:line: what is wrong"
    python3 tests/structure/waits.py [ROOT]    prints them
"""
import os
import re
import sys

_TREES = ("client", "common", "server", "worker")

# Abseil's timed waits count on CLOCK_REALTIME, as do those below with a point of system_clock.
_WAIT = re.compile(
    r"\b(AwaitWith(?:Timeout|Deadline)|LockWhenWith(?:Timeout|Deadline)|ReaderLockWhenWith(?:Timeout|Deadline)|"
    r"WaitWith(?:Timeout|Deadline)|WaitForNotificationWith(?:Timeout|Deadline)|wait_until|sleep_until|"
    r"sem_timedwait|pthread_cond_timedwait|pthread_mutex_timedlock|CLOCK_REALTIME)\b")
# The wall clock is for times that people read; Clock::WallNow() tells it.
_NOW = re.compile(r"\babsl::Now\(\)|\btime\((?:nullptr|NULL|0)\)|\bgettimeofday\b")

# It sets the clock of its condition variables to CLOCK_MONOTONIC.
_WAITS_HERE = {"common/base/timed_wait.cc"}
_READS_HERE = {"common/base/clock.cc", "common/base/log.cc"}


def sources(root):
    """The C++ files of the product, from the root on."""
    for tree in _TREES:
        for folder, folders, files in os.walk(os.path.join(root, tree)):
            folders[:] = sorted(d for d in folders if not d.startswith((".", "bazel-")))
            for name in sorted(f for f in files if f.endswith((".h", ".cc"))):
                yield os.path.relpath(os.path.join(folder, name), root)


def findings(root):
    found = []
    for path in sources(root):
        with open(os.path.join(root, path), encoding="utf-8") as f:
            lines = f.read().splitlines()
        for number, line in enumerate(lines, 1):
            code = line.partition("//")[0]
            wait = _WAIT.search(code)
            if wait and path not in _WAITS_HERE:
                found.append(f"{path}:{number}: {wait.group(1)} counts on the wall clock: use TimedCondVar (common/base/timed_wait.h)")
            if not path.startswith("client/") and path not in _READS_HERE and _NOW.search(code):
                found.append(f"{path}:{number}: use SystemClock() (common/base/clock.h)")
    return found


if __name__ == "__main__":
    result = findings(sys.argv[1] if len(sys.argv) > 1 else ".")
    print("\n".join(result) or "every wait counts on a clock that nobody sets")
    sys.exit(1 if result else 0)
