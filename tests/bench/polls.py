"""Latency of GET requests that come at a fixed rate over a few connections: dashboards that poll.

    python3 tests/bench/polls.py HOST:PORT PATH [RATE [SECONDS]]

Start traind first, and let a Job end; PATH is /v1/jobs/JOB. A request that is late is sent at once, and its latency
counts from then, so a rate that traind cannot keep shows in the number of requests.
"""

import asyncio
import sys
import time

CONNECTIONS = 20


async def poll(index, host, port, path, rate, seconds, latencies):
    reader, writer = await asyncio.open_connection(host, int(port))
    request = f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode()
    began = time.perf_counter()
    due = began + index / rate
    while due < began + seconds:
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        sent = time.perf_counter()
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        if " 200 " not in head.split("\r\n")[0]:
            raise RuntimeError(f"{path}: {head.splitlines()[0]}")
        await reader.readexactly(int(head.split("content-length:")[1].split()[0]))
        latencies.append(time.perf_counter() - sent)
        due += CONNECTIONS / rate


async def run(address, path, rate, seconds):
    host, port = address.rsplit(":", 1)
    latencies = []
    await asyncio.gather(*[poll(i, host, port, path, rate, seconds, latencies) for i in range(CONNECTIONS)])
    latencies.sort()
    at = lambda share: 1e3 * latencies[min(len(latencies) - 1, int(share * len(latencies)))]
    print(f"{len(latencies) / seconds:.0f} requests/s, p50 {at(0.5):.2f} ms, p99 {at(0.99):.2f} ms, most {at(1):.1f} ms")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    try:
        asyncio.run(run(sys.argv[1], sys.argv[2], float((sys.argv[3:] or [1000])[0]), float((sys.argv[4:] or [5])[0])))
    except (OSError, RuntimeError) as error:
        sys.exit(str(error))
