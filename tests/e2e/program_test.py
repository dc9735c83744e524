"""Programs of users, end to end: deadlines, folds, kills, and what they leave behind."""
import glob
import json
import os
import pickle
import signal
import subprocess
import sys
import time

from tests.cases import case, main
from tests.e2e.harness import House, eventually, moment

# Counts to 10 and goes on from where it was.
COUNTS = """
n=0; [ -f "$TRAIND_CHECKPOINTS/state" ] && n=$(cat "$TRAIND_CHECKPOINTS/state")
echo "try $TRAIND_TRY begins at $n" >> "$TRAIND_OUT/begins.txt"
while [ $n -lt 10 ]; do n=$((n+1)); echo "Epoch $n/10 loss=0.$((99-n))"; sleep 0.2; echo $n > "$TRAIND_CHECKPOINTS/state"; done
printf 'id,y\\n1,%s\\n' $n > sub.csv
"""

# Ignores what it can and leaves a process that has left its group.
STUBBORN = """
trap '' TERM USR1 INT HUP
echo here > early.txt
(setsid sh -c 'trap "" TERM HUP; while :; do sleep 0.5; done' &)
while :; do sleep 0.5; done
"""


class Programs(House):
    def __enter__(self):
        super().__enter__()
        self.work = os.path.join(self.root, "work")
        os.mkdir(self.work)
        return self

    def script(self, name, text):
        with open(os.path.join(self.work, name), "w") as f:
            f.write(text)

    def run(self, *arguments, code=0):
        """trainctl run in the folder `work`; the Job."""
        command = [os.path.join(self.bin, "client/trainctl"), "--server", self.server, "run", "-o", "json", *arguments]
        result = subprocess.run(command, capture_output=True, text=True, env=self.environment(), cwd=self.work,
                                timeout=100)
        assert result.returncode == code, (arguments, result.returncode, result.stdout, result.stderr)
        return json.loads(result.stdout) if result.stdout else result.stderr

    def detached(self, *arguments):
        return self.run("--detach", *arguments)

    def left(self, name):
        with open(os.path.join(self.work, name)) as f:
            return f.read()

    def until_epoch(self, job, least=2):
        """The Job, once its program has come so far."""
        def far():
            for path in glob.glob(os.path.join(self.results(job), "program/fold-*/checkpoints/state")):
                with open(path) as f:
                    if int(f.read().strip() or 0) >= least:
                        return True
            return False
        eventually("the program is under way", far)


def in_time(job):
    assert job["state"] == "SUCCEEDED", job
    assert moment(job["finished_at"]) <= moment(job["deadline"]), job


@case("A program runs to its end, and its files are where it was called; nothing of it stays")
def _():
    with Programs() as house:
        house.start("--allow-programs")
        house.script("train.sh", COUNTS)
        job = house.run("--budget", "30s", "--expect", "sub.csv", "--", "sh", "train.sh")
        in_time(job)
        assert job["end_reason"] == "COMPLETED", job
        assert house.left("sub.csv") == "id,y\n1,10\n"
        assert house.left("begins.txt") == "try 0 begins at 0\n"
        assert job["program_results"] == os.path.realpath(house.work), job
        logs = house.cli("logs", job["id"]).stdout
        assert "Epoch 10/10" in logs, logs


@case("Without --allow-programs no program runs, and the refusal says what to do")
def _():
    with Programs() as house:
        house.start()
        refusal = house.run("--budget", "10s", "--", "true", code=4)
        assert "--allow-programs" in refusal, refusal


@case("A killed program, a killed keeper and a killed trainprog go on from their own checkpoint", limit_s=120)
def _():
    with Programs() as house:
        house.start("--allow-programs")
        house.script("train.sh", COUNTS)
        for victim in ("train.sh", "--keep", "trainprog"):
            job = house.detached("--budget", "30s", "--name", "count", "--expect", "sub.csv", "--", "sh", "train.sh")
            house.until_epoch(job["id"])
            found = {p: c for p, c in house.processes().items()
                     if (c == "sh train.sh" if victim == "train.sh" else victim in c)}
            assert found, (victim, house.processes())
            for pid in found:
                house.kill(pid)
            job = house.wait(job["id"])
            in_time(job)
            begins = house.left("begins.txt").splitlines()
            assert len(begins) == 2 and begins[1].startswith("try 1 begins at"), (victim, begins)
            assert int(begins[1].split()[-1]) >= 1, (victim, begins)
            assert house.left("sub.csv") == "id,y\n1,10\n"
            for name in ("sub.csv", "begins.txt"):
                os.remove(os.path.join(house.work, name))


@case("traind is killed while a program runs, and comes back to its answer", limit_s=120)
def _():
    with Programs() as house:
        house.start("--allow-programs")
        house.script("train.sh", COUNTS)
        job = house.detached("--budget", "40s", "--expect", "sub.csv", "--", "sh", "train.sh")
        house.until_epoch(job["id"])
        house.kill_daemon(signal.SIGKILL)
        house.start("--allow-programs")
        in_time(house.wait(job["id"]))
        assert house.left("begins.txt") == "try 0 begins at 0\n"


@case("A program that ignores all signals is ended in time, with all that it started; what it left counts")
def _():
    with Programs() as house:
        house.start("--allow-programs")
        house.script("stubborn.sh", STUBBORN)
        job = house.run("--budget", "6s", "--out", "out", "--", "sh", "stubborn.sh")
        in_time(job)
        assert job["end_reason"] == "BUDGET_REACHED", job
        assert house.left("out/early.txt") == "here\n"
        assert any(d["rule"] == "B8" for d in job["decisions"]), job["decisions"]
        # The case's own end finds whatever is left.


@case("Where the time is over before the answer is there, the Job says what is missing")
def _():
    with Programs() as house:
        house.start("--allow-programs")
        house.script("slow.sh", "sleep 60\n")
        job = house.run("--budget", "4s", "--expect", "answer.csv", "--", "sh", "slow.sh", code=1)
        assert job["state"] == "FAILED" and job["end_reason"] == "BUDGET_REACHED", job
        assert "fold-0: " in job["end_message"] and "'answer.csv'" in job["end_message"], job["end_message"]


@case("A program that catches SIGUSR1 answers with what it has; one that reads the stop file, too")
def _():
    with Programs(slots=2) as house:
        house.start("--allow-programs")
        house.script("asks.py", """
import os, signal, sys, time
stop = []
if sys.argv[1] == "signal":
    signal.signal(signal.SIGUSR1, lambda *_: stop.append(1))
asked = lambda: stop or (sys.argv[1] == "file" and os.path.exists(os.environ["TRAIND_STOP_FILE"]))
n = 0
while not asked():
    n += 1
    os.write(3, b'{"epoch": %d, "epochs": 1000000, "loss": 0.5, "metric": 0.9}\\n' % n)
    time.sleep(0.05)
left = float(os.environ["TRAIND_DEADLINE"]) - time.time()
open("answer.csv", "w").write(f"{n},{left > 0}\\n")
""")
        for how in ("signal", "file"):
            job = house.run("--budget", "6s", "--expect", "answer.csv", "--", sys.executable, "asks.py", how)
            in_time(job)
            count, had_time = house.left("answer.csv").strip().split(",")
            assert int(count) > 20 and had_time == "True", (how, count)


@case("Folds run side by side, each in a folder of its own; those that fail leave the others' answers", limit_s=90)
def _():
    with Programs(slots=2) as house:
        house.start("--allow-programs")
        job = house.run("--budget", "20s", "--folds", "4", "--out", "out", "--seed", "9", "--", "sh", "-c",
                        "test {fold} -ne 2 && echo $TRAIND_FOLD of {folds} seed {seed} > $TRAIND_OUT/f.txt")
        assert job["state"] == "SUCCEEDED", job
        assert sorted(os.listdir(os.path.join(house.work, "out"))) == ["fold-0", "fold-1", "fold-3"]
        assert house.left("out/fold-3/f.txt") == "3 of 4 seed 9\n"


@case("A gang runs a program with ranks as torchrun numbers them")
def _():
    with Programs(slots=2) as house:
        house.start("--allow-programs")
        job = house.run("--budget", "20s", "--slots", "2", "--out", "out", "--", "sh", "-c",
                        'echo "$RANK $LOCAL_RANK $WORLD_SIZE" > $TRAIND_OUT/rank$RANK.txt; '
                        'test $RANK -eq 1 || sleep 1; test $MASTER_PORT -gt 0; '
                        'echo "$NCCL_TIMEOUT" > $TRAIND_OUT/timeout.txt')
        in_time(job)
        assert [house.left(f"out/rank{r}.txt") for r in (0, 1)] == ["0 0 2\n", "1 1 2\n"]
        assert 0 < int(house.left("out/timeout.txt")) < 20, "nobody waits beyond the deadline"
        assert len(job["attempts"]) == 2, job["attempts"]  # PREPARE, and one for the fold


@case("A Job tells which code it ran; what .traindignore names is not there")
def _():
    with Programs() as house:
        house.start("--allow-programs")
        codes = []
        for text in ("one", "one", "two"):
            house.script("a.txt", text)
            house.script("secret.key", str(len(codes)))  # ignored, so it changes no digest
            house.script(".traindignore", "*.key\nout/\n")
            job = house.run("--budget", "20s", "--out", "out", "--", "sh", "-c", "ls -A > $TRAIND_OUT/ls.txt")
            in_time(job)
            assert house.left("out/ls.txt").split() == [".traindignore", "a.txt"], house.left("out/ls.txt")
            words = job["attempts"][1]["resources"]["summary"].split()
            codes += [w for w in words if w.startswith("code=")]
            attempt = f"attempts/{job['attempts'][1]['id']}"
            with open(os.path.join(house.results(job["id"]), attempt, "results.json")) as f:
                assert json.load(f)["code_sha256"].startswith(codes[-1][5:])
        assert len(codes) == 3 and codes[0] == codes[1] != codes[2], codes


@case("An expected file is an interim answer: it outlives the loss of everything")
def _():
    with Programs() as house:
        house.start("--allow-programs")
        job = house.detached("--budget", "12s", "--expect", "best.csv", "--", "sh", "-c",
                             "echo 1 > best.csv; sleep 60")
        path = os.path.join(house.work, "best.csv")
        eventually("the interim answer is there", lambda: os.path.exists(path), 8)
        assert house.job(job["id"])["state"] == "RUNNING"
        for _ in range(3):  # its restarts, too
            house.kill_running("trainprog", "sleep")
            time.sleep(0.5)
        in_time(house.wait(job["id"]))


@case("A killed program goes on though what is expected is there")
def _():
    with Programs() as house:
        house.start("--allow-programs")
        house.script("train.sh", "echo early > sub.csv\n" + COUNTS)
        job = house.detached("--budget", "25s", "--expect", "sub.csv", "--", "sh", "train.sh")
        house.until_epoch(job["id"])
        # A shell that is about to start a command looks like its parent, which is older.
        house.kill(min(p for p, command in house.processes().items() if command == "sh train.sh"))
        in_time(house.wait(job["id"]))
        assert house.left("sub.csv") == "id,y\n1,10\n", house.left("sub.csv")
        assert len(house.left("begins.txt").splitlines()) == 2


@case("What is wrong with a command is said at once, and by name")
def _():
    with Programs() as house:
        house.start("--allow-programs")
        house.script("imports.py", "import os, no_such_module\n")
        for words, arguments in [
                ("no program 'nosuch'", ["--", "nosuch"]),
                ("no file 'none.py'", ["--", sys.executable, "none.py"]),
                ("no_such_module", ["--", sys.executable, "imports.py"]),
                ("exit status 3; its last lines: it is wrong", ["--", "sh", "-c", "echo it is wrong; exit 3"]),
                ("matches 'never.csv'", ["--expect", "never.csv", "--", "true"])]:
            job = house.run("--budget", "10s", *arguments, code=1)
            assert words in job["end_message"], (words, job["end_message"])
        assert "{lr}" in house.run("--budget", "10s", "--", "echo", "{lr}", code=2)
        assert "leads out" in house.run("--budget", "10s", "--expect", "../x", "--", "true", code=2)
        assert "needs a command" in house.run("--budget", "10s", code=2)


@case("A spec that asks for a GPU is refused where its PyTorch knows none, before anything waits for a GPU")
def _():
    with Programs() as house:
        house.start("--allow-programs")
        os.mkdir(os.path.join(house.work, "torch"))
        house.script("torch/__init__.py", "")
        house.script("gpu.py", "import torch\n")
        spec = {"run": {"command": [sys.executable, "gpu.py"], "folder": house.work}, "budget": {"time": "60s"},
                "resources": {"device": "cuda"}}
        for cuda, refused in (("None", True), ("'13.0'", False)):
            house.script("torch/version.py", f"__version__ = '2.11.0'\ncuda: Optional[str] = {cuda}\nhip: str = None\n")
            job = house.submit(spec)
            if refused:
                job = house.wait(job["id"], 30)
                assert job["end_reason"] == "USER_ERROR", job
                assert "built for CPUs alone; install one with CUDA" in job["end_message"], job["end_message"]
            else:
                eventually("it waits for a GPU",
                           lambda: house.job(job["id"])["pending_reason"] == "NO_MATCHING_WORKER")
                house.cli("cancel", job["id"])


@case("What a program does before its first epoch, and what an earlier start did, is no epoch's time", limit_s=120)
def _():
    with Programs() as house:
        house.start("--allow-programs")
        house.script("slow.sh", "sleep 4\n" + COUNTS.replace("while", "echo Epoch $((n+1))/10; while"))
        job = house.detached("--budget", "25s", "--epochs", "10", "--expect", "sub.csv", "--", "sh", "slow.sh")
        house.until_epoch(job["id"])
        [program] = [p for p, command in house.processes().items() if command == "sh slow.sh"]
        house.kill(program)
        job = house.wait(job["id"])
        in_time(job)
        assert [d["rule"] for d in job["decisions"]] == ["retry"], job["decisions"]
        assert job["folds"][0]["progress"] == {"unit": "EPOCH", "planned": 10, "done": 10}, job["folds"]


@case("An answer that was there before does not count, and half a file never comes back")
def _():
    with Programs() as house:
        house.start("--allow-programs")
        house.script("sub.csv", "old\n")
        job = house.run("--budget", "10s", "--expect", "sub.csv", "--", "true", code=1)
        assert "matches 'sub.csv'" in job["end_message"], job
        assert house.left("sub.csv") == "old\n"


@case("A program that prints without end harms nobody", limit_s=90)
def _():
    with Programs() as house:
        house.start("--allow-programs")
        job = house.run("--budget", "8s", "--", "sh", "-c", "echo x > a.txt; yes 'a line that says nothing'")
        in_time(job)
        assert house.left("a.txt") == "x\n"
        log = glob.glob(os.path.join(house.results(job["id"]), "attempts/*/rank0.log"))
        assert sum(os.path.getsize(p) for p in log) < 200e6, log


@case("A Job that is cancelled ends its program at once; one that is paused goes on where it was", limit_s=90)
def _():
    with Programs() as house:
        house.start("--allow-programs")
        house.script("train.sh", COUNTS)
        job = house.detached("--budget", "60s", "--", "sh", "train.sh")
        house.until_epoch(job["id"])
        assert house.cli("pause", job["id"]).returncode == 0
        eventually("nothing runs", lambda: not house.processes("trainprog"), 20)
        assert house.cli("resume", job["id"]).returncode == 0
        in_time(house.wait(job["id"]))
        assert len(house.left("begins.txt").splitlines()) == 2
        job = house.detached("--budget", "60s", "--", "sleep", "50")
        house.until(job["id"], "it runs", lambda j: j["state"] == "RUNNING" and house.processes("sleep"))
        assert house.cli("cancel", job["id"]).returncode == 0
        eventually("nothing runs", lambda: not house.processes("sleep"), 10)


@case("A program that tells no metric has no score, and one that tells 0 has")
def _():
    with Programs() as house:
        house.start("--allow-programs")
        for script, score in (("echo x > sub.csv", None), ("echo '{\"epoch\": 1, \"epochs\": 1, \"metric\": 0}' >&3", 0)):
            job = house.run("--budget", "20s", "--epochs", "1", "--", "sh", "-c", script)
            in_time(job)
            assert job["folds"][0]["score"] == score, job["folds"]
            table = house.cli("get", job["id"]).stdout
            row = next(line for line in table.splitlines() if "DONE" in line)
            assert ("-" if score is None else "0") in row.split(), table


@case("An answer that is not as the sample wants it does not count; the last that was is the answer")
def _():
    with Programs() as house:
        house.start("--allow-programs")
        house.script("sample.csv", "id,y\n1,0\n2,0\n3,0\n")
        turns = "printf 'id,y\\n1,5\\n2,6\\n3,7\\n' > sub.csv; sleep 3; printf 'id,y\\n1,8\\n2,' > sub.csv; {}"
        for end in ("sleep 100", "exit 0"):
            job = house.run("--budget", "8s", "--expect", "sub.csv", "--sample", "sample.csv", "--out", "out", "--",
                            "sh", "-c", turns.format(end))
            in_time(job)
            assert house.left("out/sub.csv") == "id,y\n1,5\n2,6\n3,7\n", house.left("out/sub.csv")
        assert "sub.csv" in job["end_message"] and "missing" in job["end_message"], job["end_message"]
        job = house.run("--budget", "8s", "--expect", "sub.csv", "--sample", "sample.csv", "--", "sh", "-c",
                        "printf 'id,y\\n1,5\\n1,6\\n3,7\\n' > sub.csv", code=1)
        assert "'1' is there twice" in job["end_message"], job["end_message"]
        assert not os.path.exists(os.path.join(house.work, "sub.csv"))
        assert "no such" in house.run("--budget", "8s", "--expect", "a", "--sample", "none.csv", "--", "true", code=2).lower()


@case("A checkpoint that a kill has left half is set aside once, and the one before it is used", limit_s=90)
def _():
    with Programs() as house:
        house.start("--allow-programs")
        # Once it has been kept, half a state is written, and the program is killed with it.
        house.script("torn.py", """
import json, os, signal, sys, time
path = "state.json" if sys.argv[1] == "work" else os.path.join(os.environ["TRAIND_CHECKPOINTS"], "state.json")
n = json.load(open(path))["n"] if os.path.exists(path) else 0
with open(os.path.join(os.environ["TRAIND_OUT"], "begins.txt"), "a") as f:
    f.write(f"{os.environ['TRAIND_TRY']} {n}\\n")
if n == 0:
    json.dump({"n": 7}, open(path, "w"))
    kept = os.path.join("..", "kept-1")
    while not os.path.exists(kept):
        time.sleep(0.1)
    open(path, "w").write('{"n":')
    os.kill(os.getpid(), signal.SIGKILL)
""")
        for where, more in (("work", ["--checkpoint", "state.json"]), ("checkpoints", [])):
            job = house.run("--budget", "40s", *more, "--out", where, "--", sys.executable, "torn.py", where)
            in_time(job)
            begins = house.left(f"{where}/begins.txt")
            assert begins == "0 0\n2 7\n", begins
            assert "set aside" in house.cli("logs", job["id"]).stdout, house.cli("logs", job["id"]).stdout


@case("A folder is set up once; what that leaves is no result; where it fails, so does the fold")
def _():
    with Programs() as house:
        house.start("--allow-programs")
        spec = {"name": "set-up", "budget": {"time": "20s"},
                "run": {"command": ["sh", "-c", "cat made.txt > answer.txt; test $TRAIND_TRY = 1 || kill -9 $$"],
                        "setup": ["sh", "-c", "echo made >> made.txt"], "folder": house.work,
                        "results": os.path.join(house.work, "out")}}
        job = house.wait(house.submit(spec)["id"])
        in_time(job)
        assert os.listdir(os.path.join(house.work, "out")) == ["answer.txt"]
        assert house.left("out/answer.txt") == "made\n"
        spec["run"]["setup"] = ["sh", "-c", "echo no compiler; exit 3"]
        job = house.wait(house.submit(spec)["id"])
        assert job["state"] == "FAILED" and "run.setup" in job["end_message"], job
        assert "exit status 3" in job["end_message"] and "no compiler" in job["end_message"], job["end_message"]


@case("A path that leads out of the folder is said before anything runs")
def _():
    with Programs() as house:
        house.start("--allow-programs")
        with open(os.path.join(house.root, "beside.py"), "w") as f:
            f.write("print(1)\n")
        job = house.run("--budget", "10s", "--", sys.executable, "../beside.py", code=1)
        assert "leads out of" in job["end_message"], job["end_message"]
        assert os.path.join(os.path.realpath(house.root), "beside.py") in job["end_message"], job["end_message"]


@case("A pattern that matches more than 10,000 files is refused by its name", limit_s=90)
def _():
    with Programs() as house:
        house.start("--allow-programs")
        many = "import os\nfor i in range(10050): os.close(os.open('f%d' % i, os.O_CREAT | os.O_WRONLY))"
        job = house.run("--budget", "60s", "--expect", "f*", "--", sys.executable, "-c", many, code=1)
        assert "more than 10000 files match 'f*'" in job["end_message"], job["end_message"]


# Whoever reads what it writes by pickle makes the file `read`. It ends by signal once, and goes on from its own.
PICKLES = """
import os, pickle, signal
class Evil:
    def __reduce__(self):
        return (os.mknod, (os.environ["READ"],))
again = os.path.exists("state.pkl")
for name in ("state.pkl", "model.pkl"):
    with open(name, "wb") as f:
        pickle.dump(Evil(), f)
if not again:
    os.kill(os.getpid(), signal.SIGKILL)
"""


@case("A pickle is kept and copied as bytes: nobody but the program reads it", limit_s=60)
def _():
    with Programs() as house:
        house.start("--allow-programs")
        house.script("train.py", PICKLES)
        read = os.path.join(house.root, "read")
        job = house.run("--budget", "20s", "--expect", "*.pkl", "--checkpoint", "state.pkl", "--env", f"READ={read}",
                        "--", sys.executable, "train.py")
        in_time(job)
        assert len(job["attempts"]) >= 3, job["attempts"]  # PREPARE, and two of the fold
        assert not os.path.exists(read)
        with open(os.path.join(house.work, "model.pkl"), "rb") as f:
            made = f.read()
        try:
            pickle.loads(made)  # what would have happened
        finally:
            assert os.path.exists(read)


main()
