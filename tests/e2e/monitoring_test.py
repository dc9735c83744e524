"""What operators watch: /metrics of a real traind with a Job that runs and with GPUs, beside the dashboard and the alerts."""
import importlib.util
import os
import re
import shutil
import subprocess
import urllib.request

from tests.cases import case, main
from tests.e2e.harness import House, eventually

# Under Bazel this file is a link into the workspace.
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
FAKES = os.path.join(os.getcwd(), "tests/worker/daemon")


def expressions():
    spec = importlib.util.spec_from_file_location("monitoring", os.path.join(ROOT, "deploy/monitoring.py"))
    monitoring = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(monitoring)
    return list(monitoring.expressions())


def read(house, path):
    with urllib.request.urlopen(f"http://{house.http}{path}", timeout=10) as answer:
        return answer.read().decode()


def metrics(house):
    return read(house, "/metrics")


def samples(text):
    return dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))


class GpuHouse(House):
    """Its Workers find two GPUs, with a driver's library and Ranks that only act so."""

    def environment(self):
        return {**super().environment(), "LD_LIBRARY_PATH": FAKES}

    def start_gpu_worker(self):
        # A name that tells whose process it is.
        rank = os.path.join(self.root, "rank")
        os.symlink(os.path.join(FAKES, "fake_rank"), rank)
        state = os.path.join(self.root, "gpus")
        os.mkdir(state)
        return self.start_worker(slots=2, state=state, arguments=["--trainrank", rank])


def gpus(text):
    """Name of the metric -> GPU -> value, of those of GPUs."""
    found = {}
    for key, value in samples(text).items():
        match = re.fullmatch(r'traind_gpu_(\w+)\{worker="([^"]+)",gpu="(\d)",uuid="GPU-(\d)",name="Fake GPU"\}', key)
        assert match or not key.startswith("traind_gpu_"), key
        if match:
            assert match[3] == match[4], key
            found.setdefault(match[1], {})[int(match[3])] = float(value)
    return found


@case("The GPUs of a Worker are told by /metrics, by trainctl and as JSON, idle ones too, and no more once it is gone")
def _():
    with GpuHouse(standalone=False) as house:
        house.start("--http", "127.0.0.1:0")
        worker = house.start_gpu_worker()
        eventually("the GPUs are told", lambda: len(gpus(metrics(house))) == 6)
        text = metrics(house)
        found = gpus(text)
        energy = found.pop("energy_joules_total")
        assert found == {"utilization_ratio": {0: 0.72, 1: 0.72}, "memory_used_bytes": {0: 3 << 30, 1: 3 << 30},
                         "memory_total_bytes": {0: 8 << 30, 1: 8 << 30}, "power_watts": {0: 250, 1: 250},
                         "temperature_celsius": {0: 61, 1: 61}}, found
        assert list(energy) == [0] and energy[0] > 0, energy  # GPU-1 does not tell it
        assert "# TYPE traind_gpu_energy_joules_total counter" in text
        slots = house.json("workers")[0]["slots"]
        assert slots[0]["figures"]["utilisation"] == 0.72 and slots[1]["figures"]["power_watts"] == 250, slots
        assert "72 %, 3.0 GiB, 250 W, 61 C" in house.cli("workers", "-o", "wide").stdout
        if shutil.which("promtool"):
            checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
            assert checked.returncode == 0, (checked.stdout, checked.stderr)
        worker.terminate()
        worker.wait(20)
        eventually("the GPUs are gone", lambda: not gpus(metrics(house)))


@case("Every series that the dashboard and the alerts ask for is served by a traind with Jobs and Workers")
def _():
    asked = {name for expression in expressions() for name in re.findall(r"\b(?:traind|process)_\w+", expression)}
    assert len(asked) > 20, asked
    with GpuHouse(standalone=False) as house:
        house.start("--http", "127.0.0.1:0")
        house.start_gpu_worker()
        [gpu] = eventually("the GPUs are there", lambda: house.json("workers"))
        # Its Ranks only act so: nothing shall come to them.
        house.json("workers", "cordon", gpu["id"])
        house.start_worker(slots=1, arguments=["--device", "cpu"])
        ended = house.submit(house.spec(folds=2, epochs=1))["id"]
        house.wait(ended)
        running = house.submit(house.spec(folds=2, epochs=100000, budget="300s"))["id"]
        house.until(running, "a fold trains", lambda j: any(f["state"] == "RUNNING" for f in j["folds"]))
        waiting = house.submit(house.spec(folds=2, epochs=100000, budget="300s"))["id"]
        house.until(waiting, "the second Job waits", lambda j: j["pending_reason"])

        read(house, "/v1/jobs")  # a call over HTTP, which is counted

        def missing():
            return asked - {key.split("{")[0] for key in samples(metrics(house))}
        try:
            eventually("all are served", lambda: not missing())
        except AssertionError as late:
            raise AssertionError(f"not served: {missing()}") from late
        assert samples(metrics(house))['traind_jobs{state="RUNNING"}'] == "1"
        for job in (running, waiting):
            house.json("cancel", job)


main()
