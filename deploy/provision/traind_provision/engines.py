"""Where Workers come from: Slurm, Kubernetes, or hosts that ssh reaches. Each knows its Workers by the name that was
given to them, so a provisioner that is started again goes on with those that there are.
"""
from __future__ import annotations

import getpass
import json
import re
import shlex
import subprocess
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence

from .plan import RUNNING, WAITING, Lent

LABEL = "traind/provision"


class EngineError(Exception):
    """The engine refused, or could not be asked."""


@dataclass(frozen=True)
class WorkerCommand:
    """How a Worker is started. Its state folder is gone with it."""
    name: str
    program: str
    arguments: Sequence[str]
    scratch: str  # folder in which the state folders are made; may use variables of the machine
    grace: int    # seconds that it has after a SIGTERM

    def script(self, id: str) -> str:
        """For sh. A SIGTERM of the script is one of the Worker. id: as the engine calls it; may use variables."""
        command = " ".join(shlex.quote(a) for a in [self.program, *self.arguments])
        return f"""#!/bin/sh
state=$(mktemp -d "{self.scratch}/{self.name}-XXXXXX") || exit 1
trap 'rm -rf "$state"' EXIT
{command} --state "$state" --lent-as "{self.name}/{id}" &
worker=$!
trap 'kill -TERM $worker 2>/dev/null' TERM INT
# wait ends early where a signal comes.
while :; do
  wait $worker
  code=$?
  kill -0 $worker 2>/dev/null || exit $code
done
"""


def run(command: Sequence[str], text: Optional[str] = None) -> str:
    try:
        ran = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineError(str(error)) from error
    if ran.returncode != 0:
        raise EngineError(f"{command[0]}: {ran.stderr.strip() or f'ended with {ran.returncode}'}")
    return ran.stdout


class Slurm:
    """A batch job for each Worker. `arguments` go to sbatch as they are."""

    # Of squeue. What is not here (COMPLETING, FAILED, ...) holds no Worker any more.
    _STATES = {"PENDING": WAITING, "CONFIGURING": WAITING, "REQUEUED": WAITING, "REQUEUE_HOLD": WAITING,
               "RESV_DEL_HOLD": WAITING, "SPECIAL_EXIT": WAITING, "RUNNING": RUNNING, "SUSPENDED": RUNNING,
               "STOPPED": RUNNING, "SIGNALING": RUNNING, "RESIZING": RUNNING}

    def __init__(self, worker: WorkerCommand, log: str, arguments: Sequence[str]):
        self._worker = worker
        self._log = log
        self._arguments = list(arguments)

    def list(self) -> List[Lent]:
        out = run(["squeue", "--noheader", f"--user={getpass.getuser()}", f"--name={self._worker.name}",
                   "--format=%i|%T"])
        found = []
        for line in out.split():
            id, _, state = line.partition("|")
            if state in self._STATES:
                found.append(Lent(id, self._STATES[state]))
        return found

    def submit(self) -> str:
        # The signal may come up to a minute early, never late; --no-requeue: an id is one Worker.
        out = run(["sbatch", "--parsable", f"--job-name={self._worker.name}", "--no-requeue", "--open-mode=append",
                   f"--output={self._log}", f"--signal=B:TERM@{self._worker.grace}", *self._arguments],
                  self._worker.script("$SLURM_JOB_ID"))
        return out.strip().split(";")[0]

    def cancel(self, ids: Sequence[str]) -> None:
        # One that has started meanwhile goes on.
        run(["scancel", "--state=PENDING", *ids])


class Kubernetes:
    """A Pod for each Worker, made from a manifest in which the container `worker` runs trainworker; the arguments that
    the manifest or the image gives it stay."""

    _STATES = {"Pending": WAITING, "Running": RUNNING, "Unknown": RUNNING}

    def __init__(self, worker: WorkerCommand, manifest: Dict[str, Any], arguments: Sequence[str]):
        self._worker = worker
        self._kubectl = ["kubectl", *arguments]
        self._manifest = manifest

    def manifest(self) -> Dict[str, Any]:
        pod = json.loads(json.dumps(self._manifest))
        meta = pod.setdefault("metadata", {})
        meta.pop("name", None)
        meta["generateName"] = self._worker.name + "-"
        meta.setdefault("labels", {})[LABEL] = self._worker.name
        spec = pod["spec"]
        spec["restartPolicy"] = "Never"
        spec["terminationGracePeriodSeconds"] = self._worker.grace + 10
        container = next((c for c in spec["containers"] if c["name"] == "worker"), None)
        if container is None:
            raise EngineError("the manifest has no container called worker")
        container.setdefault("env", []).extend([
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "TRAIND_LENT_AS", "value": f"{self._worker.name}/$(POD_NAME)"}])
        container["args"] = [*container.get("args", []), *self._worker.arguments]
        return pod

    def list(self) -> List[Lent]:
        pods = json.loads(run([*self._kubectl, "get", "pods", "-l", f"{LABEL}={self._worker.name}", "-o", "json"]))
        found, over = [], []
        for pod in pods["items"]:
            name, phase = pod["metadata"]["name"], pod.get("status", {}).get("phase", "Pending")
            if phase not in self._STATES:
                over.append(name)
            elif not pod["metadata"].get("deletionTimestamp"):
                found.append(Lent(name, self._STATES[phase]))
        if over:
            run([*self._kubectl, "delete", "pod", "--ignore-not-found", "--wait=false", *over])
        return found

    def submit(self) -> str:
        out = run([*self._kubectl, "create", "-o", "name", "-f", "-"], json.dumps(self.manifest()))
        return out.strip().rpartition("/")[2]

    def cancel(self, ids: Sequence[str]) -> None:
        # A Worker that has started meanwhile saves what it has.
        run([*self._kubectl, "delete", "pod", "--ignore-not-found", "--wait=false", *ids])


class Ssh:
    """One Worker on each of some hosts. An id is a host."""

    def __init__(self, worker: WorkerCommand, hosts: Sequence[str], arguments: Sequence[str]):
        self._worker = worker
        self._hosts = list(hosts)
        self._ssh = ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", *arguments]
        # The name of a process that runs its script; a plain word, so that no shell changes it.
        self._mark = re.sub(r"[^A-Za-z0-9_.-]", "-", f"traind-provision-{worker.name}")

    def _on(self, host: str, command: str, text: Optional[str] = None) -> str:
        return run([*self._ssh, host, command], text)

    def list(self) -> List[Lent]:
        found = []
        for host in self._hosts:
            alive = self._on(host, f"p=$(cat /tmp/{self._mark}.pid 2>/dev/null) && kill -0 $p 2>/dev/null && echo yes; true")
            if alive.strip() == "yes":
                found.append(Lent(host, RUNNING))
        return found

    def submit(self) -> str:
        taken = {lent.id for lent in self.list()}
        free = next((host for host in self._hosts if host not in taken), None)
        if free is None:
            raise EngineError("no host is free")
        script = f"/tmp/{self._mark}.sh"
        self._on(free, f"cat > {script} && {{ setsid nohup sh {script} > /tmp/{self._mark}.log 2>&1 < /dev/null & "
                       f"echo $! > /tmp/{self._mark}.pid; }}", self._worker.script(free))
        return free

    def cancel(self, ids: Sequence[str]) -> None:
        pass  # nothing waits
