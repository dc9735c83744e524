"""Workers whose state folder is not traind's, and that do not see the data: files travel."""
import os
import shutil
import subprocess
import tempfile
import time

from tests.cases import Skip, case, main
from tests.e2e.harness import House, eventually, moment
from tests.e2e.links import BYTES_PER_S, Link
from tests.e2e.own_folders import files, hidden, start_alone


def slow(house, epochs, folds=2, **train):
    return house.spec(rows=3000, folds=folds, epochs=epochs, budget="60s",
                      train={"epochs": epochs, "checkpoint_every": "500ms", **train})


def answered(house, job, rows=120):
    house.check_folds_answer(job)
    assert moment(job["finished_at"]) <= moment(job["deadline"]), job
    manifest = house.standing(job["id"])
    house.check_predictions(os.path.join(house.results(job["id"]), "current", "predictions.csv"), rows)
    return manifest


@case("A Worker with a folder of its own reads, trains and predicts; the answer is in traind's folder",
      limit_s=120)
def _():
    with House(standalone=False) as house:
        house.start()
        state = start_alone(house, "w1", slots=2)
        job = house.submit(house.spec(folds=3, epochs=5))
        ended = house.wait(job["id"], 60)
        answered(house, ended)
        assert [f["state"] for f in ended["folds"]] == ["DONE"] * 3, ended["folds"]
        assert len(files(state, "inputs/*/train400.csv")) == 1, files(state, "inputs/**")
        for folder in (state, house.state):
            assert files(folder, "cache/*.table"), folder
            assert files(folder, "jobs/*/attempts/*/oof.npy"), folder
        # A file that was on its way when the Job ended goes when its sender is refused.
        eventually("no part of a file stays", lambda: not files(house.state, "**/*.tmp-*"), 10)
        assert not files(house.state, "probe-*") and not files(state, "probe-*")
        logs = house.cli("logs", job["id"])
        assert logs.returncode == 0 and "rank" in logs.stdout, (logs.stdout[:500], logs.stderr)

        again = house.submit(house.spec(folds=2, epochs=2))  # the data are there already
        answered(house, house.wait(again["id"], 60))
        assert len(files(state, "inputs/*/train400.csv")) == 1, files(state, "inputs/**")


@case("A Worker with a folder of its own is killed; another one goes on from the checkpoint", limit_s=180)
def _():
    with House(standalone=False) as house:
        house.start()
        first = start_alone(house, "w1")
        job = house.submit(slow(house, epochs=100000))
        house.until_saved(job["id"], 40)
        house.kill_all("trainworker")
        eventually("its Ranks are gone with it", lambda: not house.processes("trainrank"), 10)
        os.rename(first, first + ".lost")
        start_alone(house, "w2")
        house.until_again(job["id"], 40)
        house.check_resumed(house.job(job["id"]))
        assert house.cli("finish", job["id"]).returncode == 0
        ended = house.wait(job["id"], 40)
        assert ended["state"] == "SUCCEEDED", ended
        assert house.standing(job["id"]), ended


@case("A Worker that joins removes what a dead program has filled its disk with", limit_s=60)
def _():
    with House(standalone=False) as house:
        house.start()
        state = os.path.join(house.root, "w1")
        os.mkdir(state)
        fold = "jobs/dead/program/fold-0"
        prefix = hidden(house)
        if not prefix:
            raise Skip("mount namespaces are not permitted here")
        fill = (f"mount -t tmpfs -o size=64m none '{state}' && cd '{state}' && mkdir -p {fold}/work && touch {fold}/lock && "
                f"head -c 60M /dev/zero > {fold}/work/big.bin && ")
        house.start_worker(1, state, [*prefix[:-2], fill + prefix[-2], prefix[-1]])
        eventually("the Worker has joined", lambda: house.json("workers"), 20)

        def log():
            with open(os.path.join(house.root, "worker.log")) as f:
                return f.read()
        eventually("it says so", lambda: f"had left in {fold}" in log(), 20)


@case("Boosted trees train in a folder of the Worker's own", limit_s=120)
def _():
    with House(standalone=False) as house:
        house.start()
        start_alone(house, "w1")
        spec = house.spec(folds=2)
        spec["model"] = {"lightgbm": {"num_leaves": 7, "num_iterations": 20}}
        del spec["train"]
        job = house.wait(house.submit(spec)["id"], 60)
        answered(house, job)


@case("Old checkpoints go at traind's as they go at the Worker's", limit_s=120)
def _():
    with House(standalone=False) as house:
        house.start()
        state = start_alone(house, "w1")
        job = house.submit(slow(house, epochs=100000, folds=2))
        def steps(folder):
            found = files(folder, f"jobs/{job['id']}/attempts/*/checkpoint-*.json")
            return {os.path.basename(path) for path in found}
        seen = set()
        def four():
            seen.update(steps(house.state))
            return len(seen) >= 4
        eventually("four checkpoints came", four, 40)
        eventually("the old ones are gone", lambda: len(steps(house.state)) <= 3, 40)
        assert house.cli("cancel", job["id"]).returncode == 0
        house.wait(job["id"], 20)


@case("traind is killed while a Worker trains in its own folder; the facts and files come after", limit_s=180)
def _():
    with House(standalone=False) as house:
        house.start(listen="127.0.0.1:0")
        start_alone(house, "w1")
        job = house.submit(house.spec(rows=3000, folds=2, epochs=5000, budget="60s"))
        house.until(job["id"], "a fold trains",
                    lambda j: any(f["state"] == "RUNNING" and f["progress"]["done"] >= 1 for f in j["folds"]), 40)
        address = house.server
        house.kill_daemon()
        time.sleep(2)
        house.start(listen=address)
        answered(house, house.wait(job["id"], 90))


def program(house, files, budget="40s", **run):
    """A Job that runs a program of the user's, whose folder only traind sees."""
    folder = os.path.join(house.data, "program")
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)
        if text.startswith("#!"):
            os.chmod(path, 0o755)
    results = os.path.join(house.data, "results")
    os.makedirs(results, exist_ok=True)
    return house.submit({"api": "v1", "name": "program",
                         "run": {"folder": folder, "results": results, **run}, "budget": {"time": budget}}), results


def text(path):
    with open(path) as f:
        return f.read()


@case("The folder of a program travels to the Worker, and what the program leaves travels back", limit_s=90)
def _():
    with House(standalone=False) as house:
        house.start("--allow-programs")
        state = start_alone(house, "w1", slots=2)
        job, results = program(
            house, {"run.sh": "#!/bin/sh\n. lib/words.sh\nmkdir -p deep\necho $word-$TRAIND_FOLD > deep/answer.txt\n"
                              "echo more > $TRAIND_OUT/more.txt\necho told $TRAIND_FOLD\n",
                    "lib/words.sh": "word=hello\n", "data/big.csv": "x\n" * 600_000, ".git/config": "secret\n"},
            command=["./run.sh"], folds=2, expect=["deep/answer.txt"])
        ended = house.wait(job["id"], 60)
        assert ended["state"] == "SUCCEEDED" and [f["state"] for f in ended["folds"]] == ["DONE"] * 2, ended
        for fold in (0, 1):
            left = os.path.join(results, f"fold-{fold}")
            assert text(os.path.join(left, "deep/answer.txt")) == f"hello-{fold}\n", files(results, "**")
            assert text(os.path.join(left, "more.txt")) == "more\n", files(results, "**")
        inputs = files(state, "inputs/*/folder-program")
        assert len(inputs) == 1, "it came once for both folds"
        assert not os.path.exists(os.path.join(inputs[0], ".git")), "a folder of tools stays where it is"
        assert not files(house.state, "**/*.pack*"), files(house.state, "**/*.pack*")
        prepare = ended["attempts"][0]["transfers"]
        assert prepare["fetched_bytes"] > 1_200_000, prepare
        for fold in (0, 1):
            assert f"told {fold}" in house.cli("logs", job["id"]).stdout, house.cli("logs", job["id"]).stdout


@case("An uploaded program runs on such a Worker when its folder is gone, and its files are fetched after a kill -9 of traind",
      limit_s=120)
def _():
    with House(standalone=False) as house:
        house.start("--allow-programs")
        state = start_alone(house, "w1", slots=2)
        with tempfile.TemporaryDirectory(prefix="traind-user-") as user:
            project = os.path.join(user, "project")
            os.makedirs(os.path.join(project, "lib"))
            for name, content in (("run.sh", ". lib/words.sh\nmkdir -p deep\necho $word-$TRAIND_FOLD > deep/answer.txt\n"),
                                  ("lib/words.sh", "word=hello\n"), ("data.csv", "x\n" * 600_000)):
                with open(os.path.join(project, name), "w") as f:
                    f.write(content)

            def call(folder, *arguments):
                called = subprocess.run([os.path.join(house.bin, "client/trainctl"), "--server", house.server, *arguments],
                                        capture_output=True, text=True, env=house.environment(), cwd=folder, timeout=60)
                assert called.returncode == 0, (called.stdout, called.stderr)
                return called.stdout
            job = call(project, "run", "--upload", "--detach", "--budget", "60s", "--folds", "2", "--expect", "deep/answer.txt",
                       "--", "sh", "run.sh").strip()
            shutil.rmtree(project)
            ended = house.wait(job, 60)
            assert ended["state"] == "SUCCEEDED" and [f["state"] for f in ended["folds"]] == ["DONE"] * 2, ended
            address = house.server
            house.kill_daemon()
            house.start("--allow-programs", listen=address)
            call(user, "fetch", job, "--out", "answer")
            left = sorted(files(user, "answer/**/*.txt"))
            assert left == [os.path.join(user, f"answer/fold-{k}/deep/answer.txt") for k in (0, 1)], left
            assert [text(path) for path in left] == ["hello-0\n", "hello-1\n"]
            assert os.listdir(os.path.join(user, "answer")) and not files(user, "answer/.trainctl*"), os.listdir(user)
        assert len(files(state, "inputs/*/folder-project")) == 1, files(state, "inputs/**")
        assert not files(house.state, "uploads/**/answer.txt") and not files(house.state, "**/*.pack*")


@case("A program that is a model has its rows on such a Worker, too", limit_s=120)
def _():
    with House(standalone=False) as house:
        house.start("--allow-programs")
        start_alone(house, "w1", slots=2)
        code = os.path.join(house.data, "code")
        os.makedirs(code)
        with open(os.path.join(code, "train.py"), "w") as f:
            f.write("""import csv, os
def rows(name):
    with open(os.environ[name], newline="") as f:
        return list(csv.DictReader(f))
train = rows("TRAIND_TRAIN_CSV")
target = TARGET
share = {}
for row in train:
    share[row[target]] = share.get(row[target], 0) + 1 / len(train)
def write(path, table):
    with open(path, "w", newline="") as f:
        out = csv.writer(f)
        out.writerow(["id", *share])
        for row in table:
            out.writerow([row["id"], *share.values()])
write("oof_predictions.csv", rows("TRAIND_VALID_CSV"))
write("test_predictions.csv", rows("TRAIND_TEST_CSV"))
""".replace("TARGET", repr(house.spec(folds=2)["data"]["target"])))
        spec = house.spec(folds=2)
        spec["model"] = {"command": {"train": ["python3", "train.py"], "code": code}}
        spec.pop("train", None)
        ended = house.wait(house.submit(spec)["id"], 90)
        assert ended["state"] == "SUCCEEDED", ended
        assert [f["state"] for f in ended["folds"]] == ["DONE"] * 2, ended["folds"]
        house.check_predictions(os.path.join(house.results(ended["id"]), "current", "predictions.csv"), 120)


@case("A program that fails on such a Worker is told of by its own paths", limit_s=60)
def _():
    with House(standalone=False) as house:
        house.start("--allow-programs")
        start_alone(house, "w1")
        job, results = program(house, {"run.sh": "echo broken >&2\nexit 3\n"}, command=["sh", "run.sh"])
        ended = house.wait(job["id"], 40)
        assert ended["state"] == "FAILED" and "exit status 3" in ended["end_message"], ended
        assert "broken" in ended["end_message"] and "/w1/" not in ended["end_message"], ended
        assert not os.listdir(results), os.listdir(results)


@case("A Worker with a program is killed; another one starts it again, and answers", limit_s=120)
def _():
    with House(standalone=False) as house:
        house.start("--allow-programs")
        first = start_alone(house, "w1")
        job, results = program(house, {"run.sh": "sleep 3\necho $TRAIND_JOB > answer.txt\n"},
                               command=["sh", "run.sh"], expect=["answer.txt"])
        eventually("it runs", lambda: files(first, "jobs/*/program/fold-0/work/run.sh"), 20)
        house.kill_all("trainworker")
        os.rename(first, first + ".lost")
        start_alone(house, "w2")
        ended = house.wait(job["id"], 60)
        assert ended["state"] == "SUCCEEDED", ended
        assert text(os.path.join(results, "answer.txt")).strip() == job["id"], files(results, "**")
        assert len([a for a in ended["attempts"] if a["task"] == "fold-0"]) == 2, ended["attempts"]


def going_on(house, way):
    """A program that counts to 100, saves every two seconds, and tells where it began."""
    saves = {"beside itself": ("count.pt", "count.pt"),
             "in TRAIND_CHECKPOINTS": ("$TRAIND_CHECKPOINTS/count", None)}[way]
    script = f"""saved={saves[0]}
mkdir -p "$(dirname "$saved")"
n=0
[ -f "$saved" ] && n=$(cat "$saved")
echo "began at $n, try $TRAIND_TRY" >> "$TRAIND_OUT/began.txt"
while [ "$n" -lt 100 ]; do
  n=$((n + 1))
  [ $((n % 20)) = 0 ] && echo $n > "$saved.new" && mv "$saved.new" "$saved"
  sleep 0.12
done
echo $n > answer.txt
"""
    # A set-up is made anew on each Worker; what comes from another one is put into its place behind it.
    more = {"checkpoints": [saves[1]], "setup": ["mkdir", "made"]} if saves[1] else {}
    return program(house, {"run.sh": script}, command=["sh", "run.sh"], expect=["answer.txt"], budget="120s", **more)


for way in ("beside itself", "in TRAIND_CHECKPOINTS"):
    @case(f"A Worker with a program is lost, that saves {way}; on another Worker it goes on from its checkpoint",
          limit_s=200)
    def _(way=way):
        with House(standalone=False) as house:
            house.start("--allow-programs")
            first = start_alone(house, "w1")
            job, results = going_on(house, way)
            pattern = f"jobs/{job['id']}/program/*.pack"
            eventually("a checkpoint is at traind's", lambda: files(house.state, pattern), 40)
            house.kill_all("trainworker")
            os.rename(first, first + ".lost")
            start_alone(house, "w2")
            ended = house.wait(job["id"], 130)
            assert ended["state"] == "SUCCEEDED", ended
            assert text(os.path.join(results, "answer.txt")) == "100\n", files(results, "**")
            began = text(os.path.join(results, "began.txt")).split("\n")[-2]
            assert int(began.split()[2].rstrip(",")) >= 20 and began.endswith("try 1"), began
            logs = house.cli("logs", job["id"]).stdout
            assert "goes on with what attempt" in logs, logs
            eventually("they go when the Job is over", lambda: not files(house.state, pattern), 10)


@case("What a program saves when its Job is paused comes to the Worker on which it is resumed", limit_s=200)
def _():
    with House(standalone=False) as house:
        house.start("--allow-programs")
        first = start_alone(house, "w1")
        script = """cd "$TRAIND_CHECKPOINTS"
[ -f saved ] && cp saved "$TRAIND_OUT/answer.txt" && exit 0
while [ ! -f "$TRAIND_STOP_FILE" ]; do sleep 0.1; done
echo "by try $TRAIND_TRY" > saved
"""
        job, results = program(house, {"run.sh": script}, command=["sh", "run.sh"], expect=["answer.txt"], budget="120s")
        house.until(job["id"], "it runs", lambda j: j["state"] == "RUNNING", 30)
        assert house.cli("pause", job["id"]).returncode == 0
        pattern = f"jobs/{job['id']}/program/*.pack"
        eventually("what it saved is at traind's", lambda: files(house.state, pattern), 40)
        house.kill_all("trainworker")
        os.rename(first, first + ".lost")
        start_alone(house, "w2")
        assert house.cli("resume", job["id"]).returncode == 0
        ended = house.wait(job["id"], 100)
        assert ended["state"] == "SUCCEEDED", ended
        assert text(os.path.join(results, "answer.txt")) == "by try 0\n", files(results, "**")


@case("Over a slow link a Job keeps time for its results to travel, ends before its deadline, and tells what travelled",
      limit_s=150)
def _():
    with House(standalone=False) as house:
        house.start()
        # It never resets a connection.
        with Link(house.server, "slow", (1e6, 1e6), latency_s=0.02) as link:
            state = os.path.join(house.root, "w1")
            house.start_worker(1, state, hidden(house, house.state, house.data), server=link.address)
            # The file, which becomes half as large on its way, takes 8 s to the Worker, and each checkpoint some seconds back.
            job = house.submit(house.spec(rows=24000, folds=2, epochs=100000, budget="60s", model={"mlp": {"hidden": [128, 128]}}))
            ended = house.wait(job["id"], 90)
        assert ended["state"] == "SUCCEEDED" and ended["predictions"]["folds"], ended
        assert moment(ended["finished_at"]) <= moment(ended["deadline"]), ended
        prepare = ended["attempts"][0]["transfers"]
        data = os.path.getsize(os.path.join(house.data, "train24000.csv"))
        assert prepare["fetched_bytes"] > data and prepare["sent_bytes"] > 0, prepare
        assert prepare["fetch_s"] > 0.9 * data / BYTES_PER_S / 3, (prepare, data)
        folds = [a["transfers"] for a in ended["attempts"] if a["task"].startswith("fold-")]
        assert any(t and t["sent_bytes"] > 0 and t["send_s"] > 0 for t in folds), ended["attempts"]
        assert all(not t or t["fetched_bytes"] < data for t in folds), "the table was there"
        reserve = float(ended["plan"]["reserve"].rstrip("s"))
        assert reserve > 3, ended["plan"]  # without transfers it would be the least, 0.4 s and what publishing takes
        told = house.cli("get", job["id"], "--verbose").stdout
        assert "transfers   fetched " in told and "prepare on " in told, told


main()
