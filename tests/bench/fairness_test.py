"""The benchmarks beside peers measure both sides alike."""
import argparse
import os
import stat
import subprocess
import sys
import tempfile
import time

from tests.bench import engine, worth
from tests.cases import case, main

# The second thread burns CPU time and ends; the first one only waits.
TWO_THREADS = """
import threading, time
def burn():
    end = time.thread_time() + 0.3
    while time.thread_time() < end: pass
thread = threading.Thread(target=burn)
thread.start(); thread.join()
print(flush=True)
time.sleep(60)
"""


@case("CPU time counts all threads of a process, also those that have ended")
def _():
    with subprocess.Popen([sys.executable, "-c", TWO_THREADS], stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        used = engine.cpu_s(child.pid)
        child.kill()
    assert used >= 0.3, used


@case("A rate is the mean over the whole window, with its stalls")
def _():
    # Ten steps of 0.1 s, then one that stands still for a second and costs no CPU time.
    samples = [(0.1 * k, 0.1 * k, k) for k in range(11)] + [(2.0, 1.0, 11)]
    by_cpu, by_clock = engine.mean_rates(4, samples, [])
    assert abs(by_clock - 4 * 11 / 2) < 1e-9 and abs(by_cpu - 4 * 11 / 1) < 1e-9, (by_cpu, by_clock)
    assert engine.mean_rates(4, [(0, 0, 5), (1, 1, 5)], []) is None


@case("Validation is taken out by its share of the window, and only where it lies in it")
def _():
    samples = [(10.0, 1.0, 0), (14.0, 3.0, 100)]
    by_cpu, by_clock = engine.mean_rates(2, samples, [(9.0, 1.0), (12.0, 1.0)])
    assert abs(by_clock - 200 / 3) < 1e-9, by_clock
    assert abs(by_cpu - 200 / 1.5) < 1e-9, by_cpu  # a quarter of 2 s of CPU time


# Stands for a Python: its third argument is the variant.
FAKE_PEER = """#!%s
import json, sys, time
variant = sys.argv[3]
while variant == "hopeless": pass
if variant == "unable":
    print(json.dumps({"ready": False, "why": "no such instructions"}), flush=True)
    sys.exit()
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    if variant == "slower later": time.sleep(60)
    print(json.dumps({"samples": 100, "seconds": 2, "cpu_seconds": 1}), flush=True)
""" % sys.executable


def fake_python(folder):
    path = os.path.join(folder, "python")
    with open(path, "w", encoding="utf-8") as f:
        f.write(FAKE_PEER)
    os.chmod(path, stat.S_IRWXU)
    return path


def peer_options(folder, **more):
    return argparse.Namespace(python=fake_python(folder), data=folder, ranks=1, cores=None, no_compile=True, **more)


@case("A variant that does not come on is given up after a time, and named; the others are timed")
def _():
    with tempfile.TemporaryDirectory() as folder:
        options = peer_options(folder, give_up=2, device="cpu")
        began = time.monotonic()
        peer = engine.Peer({"peer": "mlp", "batch": 8, "variants": ["hopeless", "unable", "slower later"]}, options)
        try:
            rates = {v: peer.train(v, 0.1) for v in peer.variants}
        finally:
            peer.close()
        assert rates == {engine.IDIOM: (100, 50), "hopeless": None, "unable": None, "slower later": None}, rates
        assert set(peer.given_up) == {"hopeless", "unable", "slower later"}, peer.given_up
        # On a busy machine the limit by the clock comes first.
        assert peer.given_up["hopeless"] in ("not within 2 s of CPU time", "not within 6 s"), peer.given_up
        assert peer.given_up["unable"] == "no such instructions" and "not within 6 s" in peer.given_up["slower later"]
        assert time.monotonic() - began < 60


@case("On a GPU both sides are judged by the clock alone, and no loader takes its rows one by one")
def _():
    with tempfile.TemporaryDirectory() as folder:
        options = peer_options(folder, give_up=20, device="cuda")
        peer = engine.Peer({"peer": "mlp", "batch": 8, "variants": ["plain"]}, options)
        try:
            assert peer.variants == ["plain"] and peer.train("plain", 0.1) == (50, 50)
        finally:
            peer.close()
        assert engine.judged((100, 50), options) == (50, 50)


@case("The summary compares with the fastest variant, by CPU time and by the clock apart, and names the compiled one")
def _():
    compiled = engine.COMPILED[0]
    ours = [(30, 30), (40, 20)]
    theirs = {engine.IDIOM: [(5, 5), (5, 5)], "a": [(20, 5), (20, 5)], "b": [(10, 10), (10, 10)],
              compiled: [(15, 8), (15, 8)], "given up": [(90, 90)]}
    told = engine.summary(ours, theirs)
    assert told["peer"] == "a" and told["peer_samples_s"] == 20 and told["compiled_samples_s"] == 15, told
    assert told["ratio"] == 1.75 and told["ratio_range"] == [1.5, 2.0] and told["wall_ratio"] == 2.5, told
    assert told["idiom_ratio"] == 7.0 and "given up" not in told["variants"], told


@case("Without any variant of the peer there is no ratio")
def _():
    told = engine.summary([(30, 30)], {"a": []})
    assert told["ours_samples_s"] == 30 and told["peer"] is None and told["ratio"] is None, told


@case("A late answer is late, and its score is not that of the deadline")
def _():
    told = worth.outcome(100, 107, 5, None, 0.9)
    assert told == {"score_at_deadline": None, "score": 0.9, "late": True, "wall_s": 7, "over": 1.4}, told
    assert not worth.outcome(100, 104, 5, 0.9, 0.9)["late"]
    assert worth.outcome(100, None, 5, None, None)["late"]


@case("What a peer writes after the deadline does not count for the deadline")
def _():
    with tempfile.TemporaryDirectory() as folder:
        python = os.path.join(folder, "python")
        with open(python, "w", encoding="utf-8") as f:  # writes its answer after 2 s
            f.write(f"#!{sys.executable}\nimport sys, time\ntime.sleep(2)\n"
                    "open(sys.argv[8], 'w').write('income\\nyes\\nno\\n')\nprint('{}')\n")
        os.chmod(python, stat.S_IRWXU)
        with open(os.path.join(folder, "train.csv"), "w", encoding="utf-8") as f:
            f.write("income\nyes\nno\n")
        options = argparse.Namespace(peer_python=python, peer_preset="medium_quality")
        late = worth.autogluon("adult", folder, ["yes", "no"], 1, options)
        assert late["late"] and late["score_at_deadline"] is None and late["score"] == 1, late
        in_time = worth.autogluon("adult", folder, ["yes", "yes"], 60, options)
        assert not in_time["late"] and in_time["score_at_deadline"] == in_time["score"] == 0.5, in_time


@case("Ours is level with a peer within the standard error of its own test score, and not beyond")
def _():
    def line(metric, mine, peer, error=0.01):
        return {"metric": metric, "ours": {"score_at_deadline": mine, "standard_error": error},
                "autogluon": {"score_at_deadline": peer}}
    assert worth.is_level(line("accuracy", 0.9, 0.905)) and not worth.is_level(line("accuracy", 0.9, 0.92))
    assert worth.is_level(line("rmse", 0.62, 0.615)) and not worth.is_level(line("rmse", 0.62, 0.6))
    assert worth.is_level(line("rmse", 0.5, 0.6)) and not worth.is_level(line("accuracy", None, 0.1))


@case("The standard error of a score follows from the answers")
def _():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "answers.csv")
        with open(path, "w", encoding="utf-8") as f:
            f.write("row,y\n" + "".join(f"{i},{i % 2}\n" for i in range(100)))
        truth = [str(i % 2 if i < 90 else 2) for i in range(100)]
        assert abs(worth.standard_error(path, truth, "y", "accuracy") - 0.03) < 1e-9
        truth = [str(i % 2 + (2 if i < 50 else 0)) for i in range(100)]  # squares: 50 times 4, else 0
        told = worth.standard_error(path, truth, "y", "rmse")
        assert abs(told - (400 / 99) ** 0.5 / 10 / (2 * 2 ** 0.5)) < 1e-9, told


@case("Every fifth row of a whole file is a test row, and what names rows or the target is no feature")
def _():
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "titanic.csv"), "w", encoding="utf-8") as f:
            f.write("survived,alive,id,age\n" + "".join(f"{i % 2},x,{i},{i}\n" for i in range(10)))
        train, test = worth.tables_of("titanic", folder)
        assert train[0] == test[0] == ["survived", "age"] and len(train) == 9, train
        assert test[1:] == [["0", "4"], ["1", "9"]], test
        assert worth.tables_of("adult", folder) is None


main()
