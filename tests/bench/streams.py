"""Latency of GET requests for a Job while many follow it by its stream of events.

    python3 tests/bench/streams.py HOST:PORT JOB [STREAMS [SECONDS]]

The Job must run all the time. A stream counts as live when it has had an event; a client that is slow to read them
takes its share of the machine, too.
"""

import asyncio
import sys
import time

GETS_PER_S = 50


class Follower:
    def __init__(self):
        self.events = 0

    async def follow(self, host, port, job):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"GET /v1/jobs/{job}/events HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        status = (await reader.readline()).decode()
        if " 200 " not in status:
            raise RuntimeError(f"the stream answers {status.strip()}")
        while True:
            part = await reader.read(1 << 16)
            if not part:
                return
            self.events += part.count(b"\nid: ") + part.startswith(b"id: ")


async def get(host, port, job, seconds, latencies):
    reader, writer = await asyncio.open_connection(host, int(port))
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        sent = time.perf_counter()
        writer.write(f"GET /v1/jobs/{job} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        await reader.readexactly(int(head.split("content-length:")[1].split()[0]))
        latencies.append(time.perf_counter() - sent)
        await asyncio.sleep(1 / GETS_PER_S)


async def run(address, job, streams, seconds):
    host, port = address.rsplit(":", 1)
    followers = [Follower() for _ in range(streams)]
    tasks = [asyncio.create_task(f.follow(host, port, job)) for f in followers]
    await asyncio.sleep(2)
    for task in tasks:
        if task.done() and task.exception():
            raise task.exception()
    before, latencies = sum(f.events for f in followers), []
    await get(host, port, job, seconds, latencies)
    live = sum(f.events > 0 for f in followers)
    events = sum(f.events for f in followers) - before
    for task in tasks:
        task.cancel()
    latencies.sort()
    at = lambda share: 1e3 * latencies[min(len(latencies) - 1, int(share * len(latencies)))]
    print(f"{live} live streams, {events / seconds:.0f} events/s in all; {len(latencies)} GETs beside them: "
          f"p50 {at(0.5):.2f} ms, p90 {at(0.9):.2f} ms, p99 {at(0.99):.2f} ms, most {at(1):.1f} ms")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    try:
        asyncio.run(run(sys.argv[1], sys.argv[2], int((sys.argv[3:] or [200])[0]), float((sys.argv[4:] or [5])[0])))
    except (OSError, RuntimeError) as error:
        sys.exit(str(error))
