"""Several trainds of one House, each with a state folder and an address of its own, as on machines of their own."""
import os
import socket
import subprocess

from tests.e2e.harness import eventually


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Host:
    def __init__(self, house, name):
        self.house, self.name = house, name
        self.state = os.path.join(house.root, f"state-{name}")
        self.address = f"127.0.0.1:{free_port()}"
        self.out = os.path.join(house.root, f"{name}.out")
        self.process = None

    def start(self, *arguments):
        with open(self.out, "w") as out, open(os.path.join(self.house.root, f"{self.name}.log"), "a") as log:
            self.process = subprocess.Popen(
                [os.path.join(self.house.bin, "server/traind"), "--state", self.state, "--listen", self.address,
                 "--data-root", self.house.data, *arguments],
                stdout=out, stderr=log, env=self.house.environment(), cwd=self.house.root, start_new_session=True)
        return self

    def said(self, word):
        """Whether it has printed `traind <word> ...`."""
        with open(self.out) as f:
            return f"traind {word} " in f.read()

    def until(self, word, limit_s=20):
        """Waits for that line; calls of the House go to this host from then on."""
        eventually(f"{self.name} is {word}", lambda: self.said(word) or self.process.poll() is not None, limit_s)
        assert self.said(word), (self.name, self.process.poll())
        self.house.server = self.address
        return self

    def end(self, number):
        self.process.send_signal(number)
        return self.process.wait(20)
