"""traind_run, which training programs import under `trainctl run`."""
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from run_fixture import Fold, text_of, traind_run
from tests.cases import case, main


def python(fold, program, **options):
    """Runs a program with the module beside it, as traind would."""
    environment = {**{n: v for n, v in os.environ.items() if not n.startswith("TRAIND_")}, "PYTHONPATH": os.path.dirname(HERE),
                   **(fold.environment() if fold else {})}
    return subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True,
                            pass_fds=[fold.writer] if fold else [], **options)


def answer(process):
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, (process.returncode, out)
    return out.strip()


def warned(function):
    """(answer, texts of the warnings)"""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        return function(), [str(w.message) for w in found]


@case("Without traind every call does nothing, also where the file is copied alone")
def _():
    folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
    shutil.copy(traind_run.__file__, folder)
    program = """
import signal, sys
from traind_run import run
assert run.resume() is None and run.resumed == 0 and not run.should_stop() and run.time_left() == float("inf")
assert (run.fold, run.folds, run.seed, run.out, run.deadline, run.active) == (0, 1, 0, ".", None, False)
for epoch in run.epochs(3):
    run.report(loss=1.0)
    assert run.checkpoint("no file") is None
assert epoch == 2 and signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL
print(*sorted({"numpy", "torch", "keras", "xgboost", "traind"} & set(sys.modules)))
"""
    result = subprocess.run([sys.executable, "-I", "-W", "error", "-c", f"import sys; sys.path.insert(0, {folder!r})\n{program}"],
                            env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, cwd=folder)
    assert (result.returncode, result.stdout, result.stderr) == (0, "\n", ""), result
    assert set(os.listdir(folder)) <= {"traind_run.py", "__pycache__"}


@case("The fold, the folder for results and the deadline are those of the variables")
def _():
    fold = Fold()
    run = fold.start(TRAIND_DEADLINE="1800000000.25")
    assert (run.fold, run.folds, run.seed, run.out, run.deadline) == (2, 5, 7, fold.out, 1800000000.25)
    assert run.time_left() == math.inf and run.active
    try:
        fold.start(TRAIND_FOLD="two")
    except ValueError as e:
        assert "TRAIND_FOLD" in str(e) and "'two'" in str(e), e
    else:
        raise AssertionError("a fold that is no number was taken")


@case("The loop reports its epochs, and takes figures with them")
def _():
    fold = Fold()
    run = fold.start()
    for epoch in run.epochs(3):
        if epoch == 1:
            run.report(loss=0.5, metric=0.75, lr=1e-3)
    assert fold.reports() == [{"epoch": 0, "epochs": 3}, {"epoch": 1, "epochs": 3},
                              {"epoch": 2, "epochs": 3, "loss": 0.5, "metric": 0.75, "lr": 1e-3}, {"epoch": 3, "epochs": 3}]
    run.report(loss=0.25)
    assert fold.reports() == [{"loss": 0.25}]


@case("An epoch that is broken off is not reported as done")
def _():
    fold = Fold()
    run = fold.start()
    for _ in run.epochs(3):
        fold.reports()
        break
    assert fold.reports() == []


@case("The plan may shorten the loop, never prolong it; a resumed loop goes on")
def _():
    assert list(Fold().start(TRAIND_EPOCHS="4").epochs(20)) == [0, 1, 2, 3]
    assert list(Fold().start(TRAIND_EPOCHS="40").epochs(3)) == [0, 1, 2]
    assert list(Fold().start(TRAIND_EPOCHS="4").epochs(20, start=2)) == [2, 3]
    assert list(Fold().start(TRAIND_EPOCHS="4").epochs(20, start=6)) == []
    assert Fold().start(TRAIND_EPOCHS="4").most_epochs(9) == 4 and Fold().start().most_epochs(9) == 9


@case("The file, the moment or the signal stop the program and its loop")
def _():
    fold = Fold()
    run = fold.start()
    done = []
    for epoch in run.epochs(10):
        done.append(epoch)
        if epoch == 1:
            fold.stop()
    assert done == [0, 1] and run.should_stop() and run.time_left() == 0.0
    run = Fold().start(TRAIND_STOP_AT=repr(time.time() + 0.2))
    assert not run.should_stop() and 0.0 < run.time_left() <= 0.2
    time.sleep(0.25)
    assert run.should_stop() and run.time_left() == 0.0


@case("SIGUSR1 stops the program, and an earlier handler is called, too")
def _():
    fold = Fold()
    program = python(fold, """
import os, signal, time
called = []
signal.signal(signal.SIGUSR1, lambda number, frame: called.append(number))
from traind_run import run
assert not run.should_stop()
print("ready", flush=True)
while not run.should_stop():
    time.sleep(0.01)
print(called == [signal.SIGUSR1])
""")
    assert program.stdout.readline() == "ready\n"
    program.send_signal(signal.SIGUSR1)
    assert answer(program) == "True"


@case("Imported in a thread, the module leaves signals alone")
def _():
    assert answer(python(Fold(), """
import signal, threading
def use():
    from traind_run import run
    assert run.active and not run.should_stop()
thread = threading.Thread(target=use)
thread.start()
thread.join()
print(signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL)
""")) == "True"


class Scalar:
    """Like a scalar of numpy or torch."""

    def __float__(self):
        return 0.125


@case("Scalars are numbers; infinite ones and NaN are null; what is no number is left out with a warning")
def _():
    fold = Fold()
    run = fold.start()
    run.report(epoch=1.5, loss=Scalar(), metric=float("nan"), top=float("inf"), steps=12, lr=None)
    assert fold.reports() == [{"epoch": 1.5, "loss": 0.125, "metric": None, "top": None, "steps": 12}]
    _, texts = warned(lambda: run.report(loss=0.5, name="resnet", values=[1, 2]))
    assert fold.reports() == [{"loss": 0.5}] and len(texts) == 2 and "name" in texts[0], texts


@case("A line is one line, whole, and too long a one is left out")
def _():
    fold = Fold()
    run = fold.start()
    run.report(**{"a\nb": 1, "é": 2})
    assert fold.text() == '{"a\\nb": 1, "\\u00e9": 2}\n'
    _, texts = warned(lambda: run.report(**{f"metric_{i}": i for i in range(1000)}))
    assert fold.text() == "" and "4096" in texts[0], texts
    threads = [threading.Thread(target=lambda: [run.report(loss=0.5, **{"x" * 500: 1}) for _ in range(20)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    lines = []
    while len(lines) < 80:
        lines += fold.reports()
    assert len(lines) == 80 and all(line == {"loss": 0.5, "x" * 500: 1} for line in lines)


@case("A reader that hangs costs a part of a second, once, and one that is gone costs nothing")
def _():
    fold = Fold()
    run = fold.start()
    began = time.monotonic()
    for _ in range(20000):
        run.report(loss=0.5)
    assert time.monotonic() - began < 5, time.monotonic() - began
    lines = fold.text()
    assert lines.endswith("}\n") and 1000 < len(lines.splitlines()) < 20000
    run.report(loss=0.75)
    assert fold.reports() == [{"loss": 0.75}]
    os.close(fold.reader)
    run.report(loss=0.5)
    run.report(loss=0.5)
    os.close(fold.writer)
    run.report(loss=0.5)


@case("Nothing is written to a file that has taken the number of the pipe")
def _():
    fold = Fold()
    run = fold.start()
    table = fold.path("table.csv", "")
    with open(table, "w") as f:
        os.dup2(f.fileno(), fold.writer)
    run.report(loss=0.5)
    fold.start().report(loss=0.5)  # of a child that did not inherit the pipe
    assert os.path.getsize(table) == 0


@case("A restarted program finds the newest checkpoint, with the epochs behind it")
def _():
    fold = Fold()
    run = fold.start()
    for epoch in run.epochs(4):
        copy = run.checkpoint(fold.path("model.pt", f"epoch {epoch}"))
        assert text_of(copy) == f"epoch {epoch}" and copy.startswith(fold.checkpoints)
        if epoch == 2:
            break
    assert len(os.listdir(fold.checkpoints)) == 2, os.listdir(fold.checkpoints)
    again = fold.start(TRAIND_TRY="1")
    assert text_of(again.resume()) == "epoch 2" and os.path.basename(again.resume()) == "model.pt"
    assert list(again.epochs(5, start=again.resumed)) == [3, 4]
    again.checkpoint(fold.path("last.pt", "after the loop"))
    assert text_of(again.resume()) == "after the loop" and again.resumed == 5
    again.checkpoint(fold.path("model.pt", "told"), epoch=9)
    assert text_of(fold.start().resume()) == "told"


@case("A folder may be a checkpoint")
def _():
    fold = Fold()
    os.makedirs(os.path.join(fold.folder, "state/deep"))
    fold.path("state/deep/weights", "w")
    run = fold.start()
    run.checkpoint(os.path.join(fold.folder, "state") + "/", epoch=3)
    path = run.resume()
    assert os.path.basename(path) == "state" and text_of(os.path.join(path, "deep/weights")) == "w" and run.resumed == 3


@case("A checkpoint that is cut off or damaged is passed over for the one before")
def _():
    fold = Fold()
    run = fold.start()
    run.checkpoint(fold.path("model.pt", "first"), epoch=1)
    newest = run.checkpoint(fold.path("model.pt", "second"), epoch=2)
    os.makedirs(os.path.join(fold.checkpoints, ".traind-left"))
    with open(newest, "w") as f:
        f.write("sec")
    assert text_of(run.resume()) == "first" and run.resumed == 1
    os.unlink(os.path.join(os.path.dirname(newest), "traind.json"))
    assert text_of(run.resume()) == "first"
    run.checkpoint(fold.path("model.pt", "third"), epoch=3)
    assert text_of(run.resume()) == "third"
    assert ".traind-left" not in os.listdir(fold.checkpoints)


@case("A program that is killed while it saves leaves a whole checkpoint")
def _():
    fold = Fold()
    for delay in (0.0, 0.01, 0.03, 0.06):
        program = python(fold, """
from traind_run import run
print("ready", flush=True)
for i in range(100000):
    with open(run.out + "/model", "w") as f:
        f.write(str(i) * 100000)
    run.checkpoint(run.out + "/model", epoch=i)
    if i == 0:
        print("saved", flush=True)
""")
        assert [program.stdout.readline() for _ in range(2)] == ["ready\n", "saved\n"]
        time.sleep(delay)
        program.kill()
        program.communicate()
        run = fold.start()
        text = text_of(run.resume())
        assert text == str(run.resumed) * 100000, (len(text), run.resumed)


@case("A file that changes while it is copied, is missing, or finds no room is no checkpoint; training goes on")
def _():
    fold = Fold()
    run = fold.start()
    run.checkpoint(fold.path("model.pt", "whole"), epoch=1)
    path = fold.path("model.pt", "x")
    true_copy = shutil.copyfile

    def growing(source, target):
        true_copy(source, target)
        with open(source, "a") as f:
            f.write("x")
    shutil.copyfile = growing
    try:
        saved, texts = warned(lambda: run.checkpoint(path))
    finally:
        shutil.copyfile = true_copy
    assert saved is None and "changes while it is copied" in texts[0], texts
    saved, texts = warned(lambda: run.checkpoint(os.path.join(fold.folder, "missing")))
    assert saved is None and "missing" in texts[0], texts
    assert text_of(run.resume()) == "whole" and os.listdir(fold.checkpoints) == ["traind-00000001"]
    shutil.rmtree(fold.checkpoints)
    saved, texts = warned(lambda: run.checkpoint(path))
    assert saved is None and len(texts) == 1 and run.resume() is None


@case("Of several processes the first one reports and saves; all of them stop and resume")
def _():
    fold = Fold()
    fold.start().checkpoint(fold.path("model.pt", "of the first"), epoch=1)
    second = fold.start(RANK="1")
    assert list(second.epochs(2)) == [0, 1] and fold.reports() == []
    assert second.checkpoint(fold.path("model.pt", "of the second")) is None
    assert text_of(second.resume()) == "of the first"
    fold.stop()
    assert second.should_stop()


@case("The shell example reports, goes on after it was killed, keeps to the plan's epochs, and stops when it should")
def _():
    script = os.path.join(os.path.dirname(HERE), "../../examples/own_program/train.sh")
    fold = Fold()

    def start(epochs, seconds, **more):
        return subprocess.Popen(["sh", os.path.abspath(script), str(epochs), str(seconds)], cwd=fold.out, text=True,
                                env={"PATH": os.environ["PATH"], **fold.environment(**more)}, pass_fds=[fold.writer],
                                stdout=subprocess.PIPE)
    program = start(50, 0.1)
    assert program.stdout.readline() == "epoch 1/50\n"
    program.kill()
    program.communicate()
    epochs = [r["epoch"] for r in fold.reports()]
    assert answer(start(50, 0, TRAIND_EPOCHS="4")).splitlines()[-1] == "epoch 4/50"
    epochs += [r["epoch"] for r in fold.reports()]
    assert epochs in ([1, 2, 3, 4], [2, 3, 4]), epochs  # killed before its first report
    assert text_of(os.path.join(fold.out, "answer.csv")) == "id,value\n0,4\n"
    fold.stop()
    assert answer(start(50, 0)) == ""


@case("Asking whether to stop costs microseconds")
def _():
    run = Fold().start()
    began = time.process_time()
    for _ in range(10000):
        run.should_stop()
    assert time.process_time() - began < 1.0


main()
