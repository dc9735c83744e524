"""Kills the traind that has an archive, again and again, while clients submit and cancel; another one takes over.

    bazel build //server:traind //tests/bench:submit_bench && PYTHONPATH=$PWD python3 tests/cluster/standby_drill.py --kills 100

Two trainds with state folders of their own share nothing but --artifacts. In turn, whichever has the archive is killed
(or, each --pause-every-th time, stopped by SIGSTOP until the other one serves, and then woken). What was acknowledged by
either is looked for at the end. Prints a JSON line for each strike, and a last one that sums up; exits 1 if something was
lost, or a takeover took longer than --limit seconds.
"""
import argparse
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid

from tests.e2e.harness import House
from tests.e2e.hosts import Host, free_port

SPEC = """api: v1
name: tiny
task: {type: classification, metric: accuracy}
data: {train: train.csv, test: test.csv, target: y}
model: {mlp: {hidden: [8]}}
budget: {time: 20h}
"""
TRAIN = "a,b,y\n" + "".join(f"{i},{i % 7},{'no' if i % 2 else 'yes'}\n" for i in range(60))


class Caller(threading.Thread):
    """Submits a Job, cancels it, and so on; repeats what had no answer, at either host."""

    def __init__(self, addresses, pause_s):
        super().__init__(daemon=True)
        self.addresses, self.pause_s = addresses, pause_s
        self.at = 0
        self.over = threading.Event()
        self.acknowledged = {}  # request id -> Job's id
        self.cancelled = set()  # Jobs
        self.acks = []          # times
        self.unanswered = 0
        self.wrong = []

    def call(self, method, path, body, request=None):
        """The JSON of an answer with 200; repeated until there is one, or the drill is over."""
        headers, repeated = ({"Idempotency-Key": request} if request else {}), False
        while not self.over.is_set():
            connection = http.client.HTTPConnection(self.addresses[self.at], timeout=3)
            try:
                connection.request(method, path, body, headers)
                answer = connection.getresponse()
                text = answer.read()
                if repeated and path.endswith(":cancel") and answer.status in (400, 409, 412):
                    return None  # the first one was heard
                if answer.status == 200:
                    self.acks.append(time.monotonic())
                    return json.loads(text)
                if answer.status not in (503, 504):
                    self.wrong.append((method, path, answer.status, text.decode(errors="replace")[:300]))
                    return None
            except (OSError, http.client.HTTPException):
                pass
            finally:
                connection.close()
            repeated = True
            self.unanswered += 1
            self.at = (self.at + 1) % len(self.addresses)
            time.sleep(0.02)
        return None

    def run(self):
        while not self.over.is_set():
            request = uuid.uuid4().hex
            job = self.call("POST", "/v1/jobs", SPEC, request)
            if job is None:
                continue
            job = job["job"]["id"]
            self.acknowledged[request] = job
            if self.call("POST", f"/v1/jobs/{job}:cancel", "{}") is not None:
                self.cancelled.add(job)
            time.sleep(self.pause_s)


def lost_of(callers, address):
    """What was acknowledged and is not there."""
    lost = []
    for caller in callers:
        for request, job in list(caller.acknowledged.items()):
            connection = http.client.HTTPConnection(address, timeout=20)
            connection.request("GET", f"/v1/jobs/{job}")
            answer = connection.getresponse()
            text = answer.read()
            connection.close()
            state = json.loads(text)["state"] if answer.status == 200 else answer.status
            if answer.status != 200 or (job in caller.cancelled and state != "CANCELLED"):
                lost.append((request, job, state))
    return lost


def strike(holder, other, callers, pause):
    """Ends the holder; the seconds until the other one has acknowledged a call."""
    begin = time.monotonic()
    holder.process.send_signal(signal.SIGSTOP if pause else signal.SIGKILL)
    other.until("ready", limit_s=60)
    ready = time.monotonic()
    while not any(ack > ready for caller in callers for ack in caller.acks[-20:]):
        if time.monotonic() - ready > 30:
            raise AssertionError("nothing is acknowledged any more")
        time.sleep(0.005)
    done = time.monotonic()
    code = None
    if pause:
        holder.process.send_signal(signal.SIGCONT)
        code = holder.process.wait(30)
    else:
        holder.process.wait(30)
    return {"kind": "pause" if pause else "kill", "ready_s": round(ready - begin, 3),
            "acknowledges_s": round(done - begin, 3), **({"exit": code} if pause else {})}


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100, help="strikes, pauses included")
    parser.add_argument("--pause-every", type=int, default=5, help="0: never")
    parser.add_argument("--takeover-after", default="6s")
    parser.add_argument("--limit", type=float, default=10.0, help="seconds that a takeover may take")
    parser.add_argument("--clients", type=int, default=2)
    parser.add_argument("--queued", type=int, default=0, help="Jobs that wait from the beginning on")
    options = parser.parse_args()
    begin, strikes = time.monotonic(), []
    with House(standalone=False) as house:
        house.write("train.csv", TRAIN)
        house.write("test.csv", "a,b\n1,2\n3,4\n")
        hosts = [Host(house, name) for name in ("one", "two")]
        web = [f"127.0.0.1:{free_port()}" for _ in hosts]
        flags = ["--artifacts", os.path.join(house.root, "artifacts"), "--standby", "--keep-jobs", "1000000",
                 "--takeover-after", options.takeover_after, "--log-level", "warning", "--submit-rate", "0"]

        def start(n):
            return hosts[n].start(*flags, "--http", web[n])
        holder = 0
        start(0).until("ready")
        start(1).until("standby")
        if options.queued > 0:
            subprocess.run([os.path.join(house.bin, "tests/bench/submit_bench"), "--server", hosts[0].address, "--target", "y",
                            "--train", os.path.join(house.data, "train.csv"), "--jobs", str(options.queued), "--batch", "100"],
                           check=True)
        callers = [Caller(web, 0.1) for _ in range(options.clients)]
        for caller in callers:
            caller.start()
        for number in range(options.kills):
            time.sleep(0.3 + 0.7 * ((number * 37) % 10) / 10)  # not always at the same moment of a renewal
            pause = options.pause_every > 0 and number % options.pause_every == options.pause_every - 1
            strikes.append(strike(hosts[holder], hosts[1 - holder], callers, pause))
            print(json.dumps(strikes[-1]), flush=True)
            start(holder).until("standby", limit_s=20 + options.queued / 1000)
            holder = 1 - holder
        for caller in callers:
            caller.over.set()
        for caller in callers:
            caller.join()
        lost = lost_of(callers, web[holder])
        for host in (hosts[1 - holder], hosts[holder]):
            host.end(signal.SIGTERM)
    took = [s["acknowledges_s"] for s in strikes]
    wrong = [w for caller in callers for w in caller.wrong]
    awake = [s["exit"] for s in strikes if s["kind"] == "pause"]
    summary = {"strikes": len(strikes), "pauses": len(awake), "submits": sum(len(c.acknowledged) for c in callers),
               "cancels": sum(len(c.cancelled) for c in callers), "repeated": sum(c.unanswered for c in callers),
               "lost": len(lost), "wrong": len(wrong), "takeover_p50_s": quantile(took, 0.5),
               "takeover_p99_s": quantile(took, 0.99), "takeover_max_s": max(took),
               "over_the_limit": sum(t > options.limit for t in took), "woken_that_did_not_end": sum(e != 1 for e in awake),
               "seconds": round(time.monotonic() - begin, 1), "load_1min": round(os.getloadavg()[0], 2)}
    for what in lost[:5] + wrong[:5]:
        print(json.dumps(what))
    print(json.dumps(summary), flush=True)
    failed = lost or wrong or summary["over_the_limit"] or summary["woken_that_did_not_end"] or not summary["submits"]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
