"""Networks that are slow and narrow and break at any moment, between a Worker, traind and trainctl: a proxy makes them."""
import asyncio
import contextlib
import hashlib
import json
import os
import random
import socket
import struct
import threading

from tests.cases import case, main
from tests.e2e.harness import House, moment

LATENCY_S = 0.2
BYTES_PER_S = 64000
SLICE_BYTES = 1400
SENT = """api: v1
task: {type: classification, metric: accuracy}
data: {train: train.csv, test: test.csv, target: kind}
model: {mlp: {hidden: [8]}}
budget: {time: 60s}
"""


class Link:
    """A bad way to `target`, HOST:PORT. Each connection carries 64 kB/s each way, in slices; a slice takes `latency_s`, give
    or take a half. After some seconds, drawn from `lives_s`, the connection is reset, whatever is on its way. Counts what
    it did. Threads: the counts may be read from any."""

    def __init__(self, target, seed, lives_s, latency_s=LATENCY_S):
        self.target, self.seed, self.lives_s, self.latency_s = target, seed, lives_s, latency_s
        self.connections = self.resets = self.slices = self.bytes = 0
        self.address, self.ways = None, set()
        self.ready = threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    def __enter__(self):
        self.thread.start()
        assert self.ready.wait(10)
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.over.set)
        self.thread.join()

    def __str__(self):
        return f"{self.connections} connections, {self.resets} resets, {self.slices} slices, {self.bytes} bytes"

    async def _run(self):
        self.loop, self.over = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.address = "127.0.0.1:%d" % server.sockets[0].getsockname()[1]
        self.ready.set()
        await self.over.wait()
        server.close()
        ways = list(self.ways)
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)

    async def _accept(self, near_in, near_out):
        way = asyncio.ensure_future(self._serve(near_in, near_out))
        self.ways.add(way)
        way.add_done_callback(self.ways.discard)

    async def _serve(self, near_in, near_out):
        chance = random.Random(f"{self.seed} {self.connections}")
        self.connections += 1
        try:
            host, port = self.target.rsplit(":", 1)
            far_in, far_out = await asyncio.open_connection(host, int(port))
        except OSError:
            return near_out.transport.abort()
        ways = [asyncio.ensure_future(self._carry(near_in, far_out, chance)),
                asyncio.ensure_future(self._carry(far_in, near_out, chance))]
        try:
            done, going = await asyncio.wait(ways, timeout=chance.uniform(*self.lives_s),
                                             return_when=asyncio.FIRST_EXCEPTION)
            self.resets += len(going) == 2
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            for out in (near_out, far_out):
                with contextlib.suppress(OSError):  # it is closed already
                    at_once = struct.pack("ii", 1, 0)
                    out.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
                out.transport.abort()

    async def _carry(self, source, target, chance):
        """Until `source` has ended and all of it has arrived."""
        on_the_way = asyncio.Queue()

        async def arrive():
            while True:
                at, data = await on_the_way.get()
                await asyncio.sleep(max(0, at - self.loop.time()))
                if not data:
                    return target.write_eof()
                target.write(data)
                await target.drain()
        arrival = asyncio.ensure_future(arrive())
        try:
            free = at = 0.0
            while True:
                data = await source.read(chance.randint(1, SLICE_BYTES))
                free = max(free, self.loop.time()) + len(data) / BYTES_PER_S
                at = max(at, free + self.latency_s * chance.uniform(0.5, 1.5))  # what was sent first arrives first
                on_the_way.put_nowait((at, data))
                if not data:
                    return await arrival
                self.slices += 1
                self.bytes += len(data)
                await asyncio.sleep(max(0, free - self.loop.time()))
        finally:
            arrival.cancel()


class Owner(threading.Thread):
    """Submits a Job and follows it to its end, over a bad link; begins again under the same id where trainctl gives up."""

    def __init__(self, house, server, key):
        super().__init__(daemon=True)
        self.house, self.server, self.key = house, server, key
        self.spec = house.write_spec(house.spec(rows=150, folds=2, epochs=4, budget="60s", name=key), f"{key}.yaml")
        self.tries, self.job, self.events, self.error = 0, None, [], None

    def ask(self, *arguments):
        for _ in range(20):
            self.tries += 1
            told = self.house.cli(*arguments, server=self.server)
            if told.returncode == 0:
                return told.stdout
        raise AssertionError(told)

    def run(self):
        try:
            submit = ("submit", "-f", self.spec, "--request-id", self.key, "-o", "json")
            self.job = json.loads(self.ask(*submit))["id"]
            self.ask("wait", self.job)
            self.events = json.loads(self.ask("events", self.job, "-o", "json"))
            assert json.loads(self.ask(*submit))["id"] == self.job
        except Exception as e:
            self.error = e


def check_attempts(job):
    """A task has another Attempt only where the one before had ended, for a reason."""
    last = {}
    for attempt in sorted(job["attempts"], key=lambda a: a["id"]):
        before = last.get(attempt["task"])
        if before:
            print(f"{job['name']}: {before['task']} again: {before['end_reason']}, {before['message']}", flush=True)
            assert before["end_reason"] in ("WORKER_LOST", "RANK_DIED", "COLLECTIVE_TIMEOUT", "HUNG"), job["attempts"]
            assert moment(before["ended_at"]) <= moment(attempt["started_at"]), job["attempts"]
        last[attempt["task"]] = attempt
    return len(job["attempts"]) - len(last)


@case("trainctl connects over a link that takes 800 ms there and back, at the first try")
def _():
    with House(standalone=False) as house:
        house.start()
        with Link(house.server, "far", (60, 60), latency_s=0.4) as link:
            told = house.cli("list", server=link.address)
            print(link, flush=True)
            assert told.returncode == 0, told
            assert link.connections == 1, str(link)


@case("A file of 600 kB arrives over a link of 64 kB/s that breaks every few seconds")
def _():
    with House(standalone=False) as house:
        house.start()
        text = "a,b,kind\n" + "".join(f"{i},{i * i},{'xy'[i % 2]}\n" for i in range(40000))
        spec = os.path.join(house.root, "desk", "job.yaml")
        os.mkdir(os.path.dirname(spec))
        for name, content in (("train.csv", text), ("test.csv", "a,b\n1,2\n"), ("job.yaml", SENT)):
            with open(os.path.join(os.path.dirname(spec), name), "w", encoding="utf-8") as f:
                f.write(content)
        with Link(house.server, "upload", (3, 6)) as link:
            told = house.cli("plan", "-f", spec, "--upload", server=link.address)
            print(link, told.stderr, flush=True)
            assert told.returncode == 0, told
            assert link.resets >= 1, str(link)
            assert link.bytes < 2.5 * len(text), f"what came was sent again: {link}"
        digest = hashlib.sha256(text.encode()).hexdigest()
        with open(os.path.join(house.state, "uploads", digest, "train.csv"), encoding="utf-8") as f:
            assert f.read() == text


@case("Over a link of 200 ms and 64 kB/s that breaks every few seconds, Jobs are answered in time and nothing is done twice",
      limit_s=150)
def _():
    with House(standalone=False) as house:
        house.start()
        direct = house.server
        with Link(direct, "worker", (1.5, 6)) as of_worker, Link(direct, "trainctl", (1, 4)) as of_client:
            house.server = of_worker.address
            house.start_worker(2, os.path.join(house.root, "worker"))  # files travel, too
            house.server = direct
            owners = [Owner(house, of_client.address, f"job-{i}") for i in range(2)]
            for owner in owners:
                owner.start()
            for owner in owners:
                owner.join()
            print(f"the Worker's link: {of_worker}\ntrainctl's link: {of_client}\n"
                  f"{sum(o.tries for o in owners)} calls of trainctl", flush=True)
            assert [o.error for o in owners] == [None] * 2, [o.error for o in owners]
            # A run in which nothing broke proves nothing.
            assert of_worker.resets >= 3 and of_client.resets >= 1, (str(of_worker), str(of_client))
            assert of_worker.bytes > 50000 and of_worker.slices > 200, str(of_worker)
            again = 0
            assert sorted(j["id"] for j in house.json("list")["jobs"]) == sorted(o.job for o in owners)
            for owner in owners:
                job = house.job(owner.job)
                assert job["state"] == "SUCCEEDED" and job["name"] == owner.key, job
                assert moment(job["finished_at"]) <= moment(job["deadline"]), job
                assert job["predictions"]["folds"], job  # models answer, not the floor
                house.check_predictions(job["predictions"]["path"])
                assert house.standing(job["id"])["quality"] == job["quality"], job
                again += check_attempts(job)
                assert owner.events == house.json("events", job["id"])
                took = moment(job["finished_at"]) - moment(job["accepted_at"])
                print(f"{owner.key} took {took:.1f} s, its quality is {job['quality']}", flush=True)
            print(f"{again} Attempts were tried again", flush=True)


main()
