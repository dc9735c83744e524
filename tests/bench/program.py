"""What `trainctl run` adds to a program: the same program bare and as a Job, in turn.

    PYTHONPATH=. python3 tests/bench/program.py [--rounds 10]

Prints for each program the medians in ms, their difference, and the difference in percent.
"""
import argparse
import os
import statistics
import subprocess
import sys
import time

from tests.e2e.harness import House

WORK = "import sys\nn = 0\nfor i in range(12):\n    n += sum(k * k for k in range(400000))\n    print('Epoch %d/12 loss=0.5' % (i + 1))\nopen('sub.csv', 'w').write(str(n))\n"
PROGRAMS = {"true": ["true"], "sleep 1": ["sleep", "1"], "python, 12 epochs": [sys.executable, "work.py"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    with House(slots=1) as house:
        house.start("--allow-programs")
        folder = os.path.join(house.root, "work")
        os.mkdir(folder)
        with open(os.path.join(folder, "work.py"), "w") as f:
            f.write(WORK)
        run = [os.path.join(house.bin, "client/trainctl"), "--server", house.server, "-q", "run", "--budget", "60s", "--"]
        for name, command in PROGRAMS.items():
            times = {"bare": [], "job": []}
            for _ in range(rounds):
                for how, words in (("bare", command), ("job", run + command)):
                    began = time.monotonic()
                    subprocess.run(words, cwd=folder, env=house.environment(), check=True, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
                    times[how].append(1000 * (time.monotonic() - began))
            bare, job = statistics.median(times["bare"]), statistics.median(times["job"])
            print(f"{name:20} bare {bare:8.1f} ms   job {job:8.1f} ms   {job - bare:+7.1f} ms  {100 * (job - bare) / bare:+6.1f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
