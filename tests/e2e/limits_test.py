"""Descriptors that run out, connections that say nothing, and many Jobs with one deadline."""
import datetime
import os
import resource
import socket
import time

from tests.cases import case, main
from tests.e2e.harness import House, eventually, moment


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def processor_s(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def connect(address, count):
    """Connections on which nothing is said."""
    host, port = address.rsplit(":", 1)
    found = []
    for _ in range(count):
        found.append(socket.create_connection((host, int(port)), timeout=5))
    return found


@case("Clients that use up traind's descriptors cost no deadline, and it answers when they are gone")
def _():
    with House(slots=1) as house:
        house.start()
        job = house.submit(house.spec(rows=300, folds=2, budget="8s", train={"epochs": 100000}))
        house.until(job["id"], "it trains", lambda j: j["state"] == "RUNNING")
        pid = house.daemon.pid
        most = descriptors(pid) + 24
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, most))
        idle = connect(house.server, 100) + connect(house.http, 100)
        begin, before = time.monotonic(), processor_s(pid)
        print(f"{descriptors(pid)} of {most} descriptors are in use", flush=True)
        while time.time() < moment(job["deadline"]) + 1:
            time.sleep(0.2)
        share = (processor_s(pid) - before) / (time.monotonic() - begin)
        print(f"traind used {share:.2f} of a core meanwhile", flush=True)
        current = os.path.join(house.state, "jobs", job["id"], "current", "predictions.csv")
        assert os.path.exists(current)
        for connection in idle:
            connection.close()
        eventually("it answers", lambda: house.cli("get", job["id"]).returncode == 0, 30)
        ended = house.wait(job["id"], 10)
        assert ended["state"] == "SUCCEEDED" and moment(ended["finished_at"]) <= moment(ended["deadline"]), ended
        assert house.cli("list").returncode == 0
        assert share < 0.5, share


@case("A connection that says nothing is closed after 10 s", limit_s=60)
def _():
    with House(standalone=False) as house:
        house.start()
        [silent] = connect(house.server, 1)
        silent.settimeout(40)
        begin = time.monotonic()
        try:
            while silent.recv(4096):  # traind says its settings first
                pass
        except ConnectionResetError:
            pass
        after = time.monotonic() - begin
        assert 8 < after < 20, after


@case("Of many Jobs with one deadline each has its answer")
def _():
    with House(slots=2) as house:
        house.start()
        count = int(os.environ.get("TRAIND_MANY_JOBS", "60"))
        deadline = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=10 + count / 4)
        spec = house.spec(rows=300, folds=2, train={"epochs": 100000})
        spec["budget"] = {"deadline": deadline.isoformat()}
        jobs = [house.submit({**spec, "name": f"n{n}"})["id"] for n in range(count)]
        ended = [house.wait(job, 120) for job in jobs]
        late = [j["id"] for j in ended if moment(j["finished_at"]) > moment(j["deadline"])]
        answered = [j for j in ended if j["state"] == "SUCCEEDED" and j["predictions"]]
        kinds = {}
        for j in answered:
            kinds[j["predictions"]["quality"]] = kinds.get(j["predictions"]["quality"], 0) + 1
        print(kinds, flush=True)
        assert not late and len(answered) == count, (late, len(answered))
        # Each of them could use all of the time.
        assert count - kinds.get("FLOOR", 0) >= count / 4, kinds


main()
