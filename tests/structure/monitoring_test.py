"""The dashboard and the alerts are made from one file, and name only what /metrics has."""
import importlib.util
import json
import os
import re
import shutil
import subprocess

from tests.cases import Skip, case, main

# Under Bazel this file is a link into the workspace.
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))


def load(path):
    spec = importlib.util.spec_from_file_location("monitoring", os.path.join(ROOT, path))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


monitoring = load("deploy/monitoring.py")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def exported():
    """The names of the series that server/http/metrics_page.cc writes."""
    source = read("server/http/metrics_page.cc")
    kinds = re.findall(r'page\.(?:Metric|One)\(\s*"(\w+)",\s*"(\w+)"', source)
    for name, kind in re.findall(r'page\.Metric\(\s*absl::StrCat\("traind_", transport, "(\w+)"\),\s*"(\w+)"', source):
        kinds += [(f"traind_{transport}{name}", kind) for transport in re.findall(r'WriteCalls\("(\w+)"', source)]
    kinds += re.findall(r'\{"(traind_gpu_\w+)",\s*"(gauge|counter)"', source)
    assert len(kinds) > 26, kinds
    for name, kind in kinds:
        yield from [f"{name}_{part}" for part in ("bucket", "sum", "count")] if kind == "histogram" else [name]


def unknown(expression):
    return set(re.findall(r"\b(?:traind|process)_\w+", expression)) - set(exported())


@case("Every metric of the alerts and of the dashboard is one that traind exports")
def _():
    for expression in monitoring.expressions():
        assert not unknown(expression), f"{expression}: {unknown(expression)}"
    assert unknown("traind_jobs + rate(traind_gone_total[5m])") == {"traind_gone_total"}
    assert unknown("traind_store_commit_seconds") == {"traind_store_commit_seconds"}


@case("States and reasons that alerts ask for are words of traind")
def _():
    words = set(re.findall(r"^  (?:JOB_STATE|JOB_END_REASON|TASK_STATE)_(\w+) = ", read("proto/job.proto"), re.MULTILINE))
    for expression in monitoring.expressions():
        asked = set(re.findall(r'\b(?:state|reason)="(\w+)"', expression))
        assert asked <= words, f"{expression}: {asked - words}"


@case("The files of deploy/ are what deploy/monitoring.py makes, and are read as JSON where they are JSON")
def _():
    for path, make in monitoring.FILES.items():
        assert read(f"deploy/{path}") == make(), f"deploy/{path}: run python3 deploy/monitoring.py"
    panels = json.loads(read("deploy/grafana/traind.json"))["panels"]
    assert len({panel["id"] for panel in panels}) == len(monitoring.PANELS)


@case("promtool takes the alerts, and each scene raises the alerts that it must and no other")
def _():
    if not shutil.which("promtool"):
        raise Skip("promtool is not installed (apt-get install prometheus)")
    folder = os.path.join(ROOT, "deploy/prometheus")
    for command in (["check", "rules", "alerts.yml"], ["test", "rules", "alerts_test.yml"]):
        run = subprocess.run(["promtool", *command], cwd=folder, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stdout + run.stderr


main()
