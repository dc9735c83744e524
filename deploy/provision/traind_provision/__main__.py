"""traind-provision: asks an engine for Workers while traind has work for them."""
from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from typing import List, Optional

from .demand import Traind, TraindError
from .engines import EngineError, Kubernetes, Slurm, Ssh, WorkerCommand
from .plan import Limits, Planner

_ABOUT = """Asks Slurm, Kubernetes or hosts by ssh for Workers while traind has work for them. Workers that have no
work end by themselves (--idle-exit), and requests that are not needed any more are taken back, so nothing that trains
is stopped. traind-provision may be started again at any time: it finds its Workers by their name."""


def parse(arguments: Optional[List[str]] = None) -> argparse.Namespace:
    common = argparse.ArgumentParser(add_help=False)
    ask = common.add_argument_group("traind")
    ask.add_argument("--coordinator", required=True, metavar="HOST:PORT", help="traind, as the Workers reach it")
    ask.add_argument("--server", metavar="HOST:PORT", help="traind, as this machine reaches it (default: the same)")
    ask.add_argument("--tls", metavar="DIR", help="folder with ca.pem, for trainctl")
    ask.add_argument("--token", metavar="FILE", help="a viewer's token, for trainctl")
    ask.add_argument("--trainctl", default="trainctl", metavar="PROGRAM")
    worker = common.add_argument_group("Workers")
    worker.add_argument("--name", default="traind", help="what the engine calls them (default: traind)")
    worker.add_argument("--slots", type=int, default=1, help="of each Worker (default: 1)")
    worker.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="what a slot is (default: cpu)")
    worker.add_argument("--trainworker", default="trainworker", metavar="PROGRAM", help="on their machines")
    worker.add_argument("--worker-tls", metavar="DIR", help="folder with ca.pem, worker.pem and worker.key, there")
    worker.add_argument("--worker-token", metavar="FILE", help="a token of the role worker, there")
    worker.add_argument("--scratch", metavar="DIR", default="${TMPDIR:-/tmp}",
                        help="where their state folders are made, there (default: $TMPDIR, or /tmp); Pods have theirs "
                             "from the manifest")
    worker.add_argument("--idle-exit", type=int, default=300, metavar="SECONDS", help="default: 300")
    worker.add_argument("--grace", type=int, default=60, metavar="SECONDS",
                        help="that a Worker has to save its folds before its end (default: 60)")
    how = common.add_argument_group("how many")
    how.add_argument("--min", type=int, default=0, help="Workers that are kept without any work (default: 0)")
    how.add_argument("--max", type=int, default=8, help="Workers at once (default: 8)")
    how.add_argument("--every", type=float, default=15, metavar="SECONDS", help="between two looks (default: 15)")
    how.add_argument("--patience", type=float, default=60, metavar="SECONDS",
                     help="before a request that is not needed any more is taken back (default: 60)")
    how.add_argument("--once", action="store_true", help="look once, act, and end")
    how.add_argument("--dry-run", action="store_true", help="say what would be done, once")

    parser = argparse.ArgumentParser(prog="traind-provision", description=_ABOUT,
                                     epilog="What follows -- goes to sbatch, kubectl or ssh as it is.")
    engines = parser.add_subparsers(dest="engine", required=True, metavar="slurm | kubernetes | ssh")
    slurm = engines.add_parser("slurm", parents=[common], help="a batch job for each Worker")
    slurm.add_argument("--log", default="trainworker-%j.log", help="their logs, as of sbatch --output")
    kubernetes = engines.add_parser("kubernetes", parents=[common], help="a Pod for each Worker")
    kubernetes.add_argument("--pod", required=True, metavar="FILE",
                            help="a manifest (JSON) of a Pod whose container `worker` runs trainworker")
    ssh = engines.add_parser("ssh", parents=[common], help="a Worker on each of some hosts")
    ssh.add_argument("--hosts", required=True, metavar="HOST,HOST,...")
    arguments = sys.argv[1:] if arguments is None else arguments
    own, further = arguments, []
    if "--" in arguments:
        at = arguments.index("--")
        own, further = arguments[:at], arguments[at + 1:]
    flags = parser.parse_args(own)
    flags.further = further
    if not 1 <= flags.slots <= 4096:
        parser.error("--slots: 1 to 4096")
    if not 0 <= flags.min <= flags.max:
        parser.error("--min: 0 to --max")
    for name in ("idle_exit", "grace"):
        if getattr(flags, name) < 1:
            parser.error(f"--{name.replace('_', '-')}: 1 or more")
    return flags


def worker_of(flags: argparse.Namespace) -> WorkerCommand:
    arguments = ["--coordinator", flags.coordinator, "--slots", str(flags.slots), "--device", flags.device,
                 "--idle-exit", f"{flags.idle_exit}s", "--stop-grace", f"{max(1, flags.grace - 5)}s"]
    if flags.worker_tls:
        arguments += ["--tls", flags.worker_tls]
    if flags.worker_token:
        arguments += ["--token", flags.worker_token]
    return WorkerCommand(flags.name, flags.trainworker, arguments, flags.scratch, flags.grace)


def engine_of(flags: argparse.Namespace):
    worker = worker_of(flags)
    if flags.engine == "slurm":
        return Slurm(worker, flags.log, flags.further)
    if flags.engine == "kubernetes":
        with open(flags.pod) as f:
            return Kubernetes(worker, json.load(f), flags.further)
    hosts = [host for host in flags.hosts.split(",") if host]
    flags.max = min(flags.max, len(hosts))
    return Ssh(worker, hosts, flags.further)


def say(text: str) -> None:
    print(time.strftime("%Y-%m-%dT%H:%M:%SZ ", time.gmtime()) + text, file=sys.stderr, flush=True)


class Provisioner:
    def __init__(self, flags: argparse.Namespace, engine, traind: Traind, clock=time.monotonic):
        self._engine = engine
        self._traind = traind
        self._clock = clock
        self._dry_run = flags.dry_run
        self._planner = Planner(Limits(least=flags.min, most=flags.max, slots=flags.slots, patience=flags.patience,
                                       lived=min(60, flags.idle_exit)))
        self._said = ""

    def look(self) -> bool:
        """One round. False: it could not be done, and nothing was changed but what it says."""
        try:
            seen = self._traind.seen()
            lent = self._engine.list()
        except (EngineError, TraindError) as error:
            self._say_once(f"{type(error).__name__}: {error}")
            return False
        plan = self._planner.round(seen, lent, self._clock())
        if self._dry_run:
            say(f"{plan.why}: would ask for {plan.submit}, and take back {len(plan.cancel)}")
            return True
        try:
            if plan.cancel:
                self._engine.cancel(plan.cancel)
                say(f"{plan.why}: took back {', '.join(plan.cancel)}")
            for _ in range(plan.submit):
                say(f"{plan.why}: asked for {self._engine.submit()}")
        except EngineError as error:
            self._planner.failed(self._clock())
            say(str(error))
            return False
        if not plan.cancel and not plan.submit:
            self._say_once(plan.why)
        return True

    def _say_once(self, text: str) -> None:
        if text != self._said:
            say(text)
        self._said = text


def main(arguments: Optional[List[str]] = None) -> int:
    flags = parse(arguments)
    further = ["--server", flags.server or flags.coordinator]
    further += ["--tls", flags.tls] if flags.tls else []
    further += ["--token", flags.token] if flags.token else []
    try:
        engine = engine_of(flags)
    except (OSError, ValueError) as error:
        print(f"traind-provision: error: {getattr(flags, 'pod', '')}: {error}", file=sys.stderr)
        return 2
    provisioner = Provisioner(flags, engine, Traind(flags.trainctl, further, flags.device, flags.name))
    if flags.once or flags.dry_run:
        return 0 if provisioner.look() else 1
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))  # the Workers go on
    while True:
        provisioner.look()
        time.sleep(flags.every)


if __name__ == "__main__":
    sys.exit(main())
