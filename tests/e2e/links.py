"""Networks that are slow and narrow and break: a proxy makes them."""
import asyncio
import contextlib
import random
import socket
import struct
import threading

LATENCY_S = 0.2
BYTES_PER_S = 64000
SLICE_BYTES = 1400


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
