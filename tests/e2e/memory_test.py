"""Memory that really runs out: traind, its Worker and the Ranks in a control group of their own, in which the kernel kills."""
import contextlib
import os
import uuid

from tests.cases import Skip, case, main
from tests.e2e.harness import House, blobs, eventually, moment

GROUPS = "/sys/fs/cgroup"
MIB = 1 << 20


class Group:
    """A control group (version 1 or 2) with so much memory. Threads: one. Skips where none may be made."""

    def __init__(self, limit):
        with open("/proc/self/cgroup") as f:
            paths = {name: path for _, names, path in (line.strip().split(":", 2) for line in f)
                     for name in names.split(",")}
        self.first = "memory" in paths
        self.own = GROUPS + ("/memory" + paths["memory"] if self.first else paths.get("", "/"))
        if not os.path.isdir(self.own):  # a container sees its own group at the top
            self.own = GROUPS + ("/memory" if self.first else "")
        self.folder = os.path.join(self.own, f"traind-test-{uuid.uuid4().hex[:8]}")
        try:
            os.mkdir(self.folder)
        except OSError as e:
            raise Skip(f"no control group can be made here: {e}")
        try:
            if self.first:
                self.write("memory.limit_in_bytes", limit)
                with contextlib.suppress(OSError):  # without an account of swap
                    self.write("memory.memsw.limit_in_bytes", limit)
            else:
                self.write("memory.max", limit)
                self.write("memory.swap.max", 0)
        except OSError as e:
            os.rmdir(self.folder)
            raise Skip(f"control groups have no limit of memory here: {e}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        eventually("the group is empty", lambda: not self.read("cgroup.procs").split(), 10)
        os.rmdir(self.folder)

    def write(self, name, value, folder=None):
        with open(os.path.join(folder or self.folder, name), "w") as f:
            f.write(str(value))

    def read(self, name):
        with open(os.path.join(self.folder, name)) as f:
            return f.read()

    def kills(self):
        """Of processes, by the kernel, because memory ran out."""
        text = self.read("memory.oom_control" if self.first else "memory.events")
        return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("oom_kill "))

    @contextlib.contextmanager
    def joined(self):
        """What is started meanwhile belongs to the group."""
        self.write("cgroup.procs", os.getpid())
        try:
            yield
        finally:
            self.write("cgroup.procs", os.getpid(), self.own)


@case("The kernel ends Ranks for lack of memory: traind and the Worker live, and the Job is answered in time", limit_s=150)
def _():
    with Group(900 * MIB) as group, House(slots=2) as house:
        house.write("train9000.csv", blobs(9000, seed=1))
        house.write("test9000.csv", blobs(120, seed=2, first_id=9000))
        with group.joined():
            house.start()
        spec = house.spec(rows=9000, folds=2, budget="40s", model={"mlp": {"hidden": [1024] * 6}},
                          train={"epochs": 100000, "batch": 8192, "checkpoint_every": "2s"})
        job = house.submit(spec)["id"]
        house.until(job, "a Rank was ended for lack of memory", lambda j: any(
            a["end_reason"] == "OUT_OF_MEMORY" for a in j["attempts"]), 40)
        ended = house.wait(job, 60)
        workers = list(house.processes("trainworker"))
        print(f"{group.kills()} kills; Attempts: "
              f"{[(a['task'], a['end_reason'], a['first_step']) for a in ended['attempts']]}", flush=True)
        assert group.kills() >= 1
        assert house.daemon.poll() is None and len(workers) == 1, workers
        assert ended["state"] == "SUCCEEDED" and moment(ended["finished_at"]) <= moment(ended["deadline"]), ended
        house.check_predictions(ended["predictions"]["path"])
        reasons = [a["message"] for a in ended["attempts"] if a["end_reason"] == "OUT_OF_MEMORY"]
        assert any("memory ran out" in r for r in reasons), ended["attempts"]


main()
