"""No wait counts on the wall clock, and the check sees one that does."""
import os
import tempfile

from tests.cases import case, main
from tests.structure import waits

# Under Bazel this file is a link into the workspace.
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

GOOD = {
    "server/loop/a.cc": "changed_.Await(mutex_, timeout, ready);  // not AwaitWithTimeout\nabsl::SleepFor(pause);\n",
    "common/base/clock.cc": "return absl::Now();\n",
    "common/base/timed_wait.cc": "pthread_cond_timedwait(&changed_, &guard_, &until);\n",
    "client/a.cc": "const absl::Time now = absl::Now();\n",
}

# A file that is planted -> its place in the complaint that must follow.
BAD = [
    ("server/a.cc", "\nmutex_.AwaitWithTimeout(absl::Condition(&ready), left);\n", "server/a.cc:2: AwaitWithTimeout"),
    ("worker/a.h", "done.WaitForNotificationWithDeadline(end);\n", "worker/a.h:1: WaitForNotificationWithDeadline"),
    ("client/a.cc", "changed.wait_until(lock, end);\n", "client/a.cc:1: wait_until"),
    ("common/a.cc", "clock_gettime(CLOCK_REALTIME, &now);\n", "common/a.cc:1: CLOCK_REALTIME"),
    ("worker/a.cc", "const absl::Time end = absl::Now() + patience;\n", "worker/a.cc:1: use SystemClock()"),
]


def findings_of(files):
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w") as f:
                f.write(text)
        return waits.findings(root)


@case("No wait of the product counts on the wall clock")
def _():
    found = waits.findings(ROOT)
    assert not found, "\n".join(found)


@case("Good waits get no findings")
def _():
    assert findings_of(GOOD) == []


@case("Each planted wait on the wall clock is found, at its line, and nothing else")
def _():
    for path, text, complaint in BAD:
        found = findings_of({**GOOD, path: text})
        assert len(found) == 1 and found[0].startswith(complaint), (path, found)


main()
