"""traind-provision over a real Slurm: a controller and three nodes on this machine, each a slurmd of its own.

Run by tests/provision/run.sh. Skipped where slurmctld, slurmd or the right to start them is missing.
"""
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

from tests.cases import case, main
from tests.e2e.harness import House, eventually, moment

_NODES = 3
_SBIN = ":/usr/sbin:/usr/local/sbin"


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Slurm:
    """A cluster of its own in the folder `root`."""

    def __init__(self, root):
        self.root = root
        os.environ["PATH"] += _SBIN
        for folder in ("state", "log", *(f"spool/n{i + 1}" for i in range(_NODES))):
            os.makedirs(os.path.join(root, folder))
        self.ports = free_ports(_NODES + 1)
        host = socket.gethostname().split(".")[0]
        nodes = "".join(f"NodeName=n{i + 1} NodeHostname={host} NodeAddr=127.0.0.1 Port={self.ports[i + 1]} "
                        "CPUs=1 RealMemory=1000\n" for i in range(_NODES))
        conf = os.path.join(root, "slurm.conf")
        with open(conf, "w") as f:
            f.write(f"""ClusterName=drill
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={self.ports[0]}
AuthType=auth/none
CredType=cred/none
SlurmUser=root
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
ReturnToService=2
SlurmctldPidFile={root}/ctld.pid
SlurmdPidFile={root}/d-%n.pid
SlurmdSpoolDir={root}/spool/%n
StateSaveLocation={root}/state
SlurmctldLogFile={root}/log/ctld.log
SlurmdLogFile={root}/log/d-%n.log
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=2,batch_sched_delay=0,bf_interval=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
KillWait=20
MinJobAge=30
{nodes}PartitionName=main Nodes=n[1-{_NODES}] Default=YES MaxTime=60 State=UP
""")
        os.environ["SLURM_CONF"] = conf
        self.processes = [subprocess.Popen(["slurmctld", "-D", "-c"], stdout=subprocess.DEVNULL,
                                           stderr=subprocess.DEVNULL)]
        self.nodes = {}
        for i in range(_NODES):
            self.nodes[f"n{i + 1}"] = subprocess.Popen(["slurmd", "-D", "-N", f"n{i + 1}"], stdout=subprocess.DEVNULL,
                                                       stderr=subprocess.DEVNULL)
        eventually("the nodes are idle", lambda: self.ask("sinfo", "-h", "-N", "-o", "%T").split().count("idle") == _NODES, 30)

    def ask(self, *command):
        return subprocess.run(command, capture_output=True, text=True).stdout

    def queue(self, states="all"):
        """[(id, state, node)]"""
        out = self.ask("squeue", "-h", f"--states={states}", "-o", "%i|%T|%N")
        return [tuple(line.split("|")) for line in out.split()]

    def stop(self):
        subprocess.run(["scancel", "--full", "--signal=KILL", "-u", "root"], capture_output=True)
        time.sleep(1)
        for process in [*self.nodes.values(), *self.processes]:
            process.kill()
            process.wait()
        subprocess.run(["pkill", "-KILL", "-f", f"slurmstepd.*{self.root}"], check=False)


class Cluster(House):
    def __init__(self):
        super().__init__(standalone=False)
        self.slurm = Slurm(os.path.join(self.root, "slurm"))
        self.provisioner = None

    def __exit__(self, *error):
        self.stop_provisioner()
        self.slurm.stop()
        return super().__exit__(*error)

    def provision(self, *arguments, sbatch=("--time=60",)):
        self.provision_log = os.path.join(self.root, "provision.log")
        command = [sys.executable, "deploy/provision/traind-provision", "slurm", "--coordinator", self.server,
                   "--trainctl", os.path.join(self.bin, "client/trainctl"),
                   "--trainworker", os.path.join(self.bin, "worker/trainworker"), "--scratch", self.root,
                   "--log", os.path.join(self.root, "worker-%j.log"), "--every", "1", *arguments, "--", *sbatch]
        with open(self.provision_log, "a") as log:
            self.provisioner = subprocess.Popen(command, stdout=log, stderr=log, env=self.environment())

    def stop_provisioner(self):
        if self.provisioner and self.provisioner.poll() is None:
            self.provisioner.send_signal(signal.SIGTERM)
            assert self.provisioner.wait(10) == 0

    def environment(self):
        return {**super().environment(), "SLURM_CONF": os.environ["SLURM_CONF"], "PATH": os.environ["PATH"]}

    def said(self):
        with open(self.provision_log) as f:
            return f.read()

    def slow(self, folds, budget="90s"):
        return self.spec(rows=3000, folds=folds, epochs=100000, budget=budget,
                         train={"epochs": 100000, "checkpoint_every": "500ms"})

    def moves(self, job):
        return [d for d in self.job(job).get("decisions", []) if d["rule"] == "retry"]


@case("No Worker without work; one for each fold while there is; none a while after", limit_s=180)
def _():
    with Cluster() as house:
        house.start()
        house.provision("--max", "2", "--idle-exit", "8")
        time.sleep(3)
        assert house.slurm.queue() == [], house.slurm.queue()
        began = time.monotonic()
        job = house.submit(house.spec(folds=4, epochs=3, budget="60s"))
        eventually("two Workers are asked for", lambda: len(house.slurm.queue()) == 2, 20)
        ended = house.wait(job["id"], 60)
        print(f"from submit to the answer {time.monotonic() - began:.1f} s, no Worker there at first", flush=True)
        assert ended["state"] == "SUCCEEDED", ended
        assert moment(ended["finished_at"]) <= moment(ended["deadline"])
        assert {f["state"] for f in ended["folds"]} == {"DONE"}, ended["folds"]
        eventually("the Workers have given themselves back", lambda: not house.slurm.queue("pending,running"), 40)
        eventually("traind lists none that left", lambda: house.json("workers") == [], 10)
        assert "asked for" in house.said() and "Error" not in house.said(), house.said()


@case("A Worker whose time is up saves its fold; the next one goes on with it", limit_s=240)
def _():
    with Cluster() as house:
        house.start()
        # The limit of a batch job is whole minutes; its signal comes so much earlier, or up to a minute more.
        house.provision("--max", "1", "--grace", "50", sbatch=("--time=1",))
        job = house.submit(house.slow(folds=2, budget="100s"))
        house.until_saved(job["id"], 40)
        first = house.slurm.queue("running")[0][0]
        eventually("its time is up, and another one is there", lambda: [
            q for q in house.slurm.queue("running") if q[0] != first], 100)
        house.until_again(job["id"], 60)
        house.check_resumed(house.job(job["id"]), all_told=False)
        assert "its worker was told to stop" in house.moves(job["id"])[0]["cause"], house.moves(job["id"])
        ended = house.wait(job["id"], 110)
        assert ended["state"] == "SUCCEEDED", ended
        assert moment(ended["finished_at"]) <= moment(ended["deadline"])
        assert house.standing(job["id"])


@case("A node that dies is replaced, and a provisioner that is started again finds its Workers", limit_s=240)
def _():
    with Cluster() as house:
        house.start()
        house.provision("--max", "2", "--idle-exit", "8")
        job = house.submit(house.slow(folds=2))
        house.until_saved(job["id"], 60)
        eventually("two run", lambda: len(house.slurm.queue("running")) == 2, 30)
        house.stop_provisioner()
        lost, _state, node = house.slurm.queue("running")[0]
        house.slurm.nodes[node].kill()
        subprocess.run(["scancel", "--full", "--signal=KILL", lost], check=False)
        for process in house.processes("trainworker"):
            with open(f"/proc/{process}/environ", "rb") as f:
                if f"SLURM_JOB_ID={lost}\0".encode() in f.read():
                    os.kill(process, signal.SIGKILL)
        subprocess.run(["scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=drill"], check=True)
        house.provision("--max", "2", "--idle-exit", "8")
        eventually("another one is there", lambda: len(
            [q for q in house.slurm.queue("running") if q[0] != lost]) == 2, 60)
        house.until_again(job["id"], 60)
        ended = house.wait(job["id"], 100)
        assert ended["state"] == "SUCCEEDED" and moment(ended["finished_at"]) <= moment(ended["deadline"]), ended
        eventually("the Workers have given themselves back", lambda: not house.slurm.queue("pending,running"), 60)


@case("Requests that wait in the queue are taken back when nothing needs them", limit_s=120)
def _():
    with Cluster() as house:
        house.start()
        house.provision("--max", "3", "--patience", "2", sbatch=("--time=60", "--begin=now+1hour"))
        job = house.submit(house.slow(folds=3))
        eventually("three wait", lambda: len(house.slurm.queue("pending")) == 3, 20)
        house.json("cancel", job["id"])
        eventually("none waits", lambda: house.slurm.queue("pending") == [], 30)
        assert house.said().count("took back") == 1, house.said()


if __name__ == "__main__":
    os.environ["PATH"] += _SBIN
    missing = [p for p in ("slurmctld", "slurmd", "sbatch") if not shutil.which(p)]
    if missing or os.geteuid() != 0:
        print(f"skipped: {', '.join(missing) + ' not installed' if missing else 'root is needed to start nodes'}")
        sys.exit(0)
    main()
