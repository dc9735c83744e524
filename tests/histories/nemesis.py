"""Faults of real processes, each written into the history with how many processes it struck."""
import signal
import time

from tests.e2e.harness import eventually

FAULTS = ("kill traind", "kill trainworker", "kill trainrank", "kill trainprep", "stop traind", "stop trainworker",
          "stop trainrank", "kill all")


class Nemesis:
    """Strikes a house. One thread; the clients go on meanwhile."""

    def __init__(self, house, history, chance, arguments=()):
        """arguments: with which traind is started again."""
        self.house, self.history, self.chance, self.arguments = house, history, chance, arguments
        self.struck = {}  # fault -> how often it struck

    def strike(self, fault):
        """How many processes were struck. traind runs again when it returns, and nobody is stopped."""
        verb, program = fault.split()
        struck = [0]
        stopped = []

        def blow():
            victims = self.victims(program)
            for pid in victims:
                self.house.kill(pid, signal.SIGKILL if verb == "kill" else signal.SIGSTOP)
            struck[0] = len(victims)
            if verb == "stop":
                stopped.extend(victims)
            return {"struck": len(victims)}
        self.history.record("nemesis", "fault", None, {"fault": fault}, blow)
        if verb == "stop":
            time.sleep(self.chance.uniform(0.1, 2.5))
            for pid in stopped:
                self.house.kill(pid, signal.SIGCONT)
        elif program in ("traind", "all"):
            self.house.daemon.wait()
            time.sleep(self.chance.choice((0, 0, self.chance.uniform(0, 1.5))))
            self.start()
        return struck[0]

    def victims(self, program):
        house = self.house
        if program == "traind":
            return [house.daemon.pid] if house.daemon.poll() is None else []
        if program == "all":
            return list(house.processes())
        found = sorted(house.processes(program))
        return [self.chance.choice(found)] if found else []

    def start(self):
        """Starts traind; the history tells how long it took until a call was answered."""
        def start():
            self.house.start(*self.arguments, limit_s=60)
            return {"pid": self.house.daemon.pid}
        self.history.record("nemesis", "start", None, {}, start)

    def run(self, pause, faults=FAULTS, seconds=None, strikes=None):
        """For so many seconds, or until so many faults struck; between two of them is a pause of (least, most)."""
        end, struck = time.monotonic() + (seconds or 10 * strikes), 0
        while time.monotonic() < end and (strikes is None or struck < strikes):
            time.sleep(self.chance.uniform(*pause))
            fault = self.chance.choice(faults)
            if self.strike(fault) > 0:
                struck += 1
                self.struck[fault] = self.struck.get(fault, 0) + 1

    def over(self):
        """Faults are over: traind and a Worker run."""
        for pid in self.house.processes():
            self.house.kill(pid, signal.SIGCONT)
        if self.house.daemon.poll() is not None:
            self.start()
        if self.house.standalone:
            eventually("a Worker runs", lambda: self.house.processes("trainworker"), 30)
