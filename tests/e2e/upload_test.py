"""A client that has no folder in common with traind: it sends the files that its spec names."""
import hashlib
import http.client
import json
import os
import subprocess
import urllib.error
import urllib.request

from tests.cases import case, main
from tests.e2e.harness import House, blobs, eventually

SPEC = """api: v1
name: sent
task: {type: classification, metric: accuracy}
data: {train: train.csv, test: sub/test rows.csv, target: kind, folds: 2}
model: {mlp: {hidden: [8]}}
train: {epochs: 2}
budget: {time: 60s}
output: predictions.csv
"""


def put(house, path, body, **query):
    connection = http.client.HTTPConnection(house.http, timeout=20)
    try:
        text = "&".join(f"{key}={value}" for key, value in query.items())
        connection.request("PUT", f"/v1/uploads/{path}?{text}", body)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


class Desk:
    """A folder of a user's that traind may not read."""

    def __init__(self, house):
        self.house = house
        self.folder = os.path.join(house.root, "desk")
        os.makedirs(os.path.join(self.folder, "sub"))
        self.write("train.csv", blobs(300, seed=1))
        self.write("sub/test rows.csv", blobs(60, seed=2, first_id=1000))
        self.spec = self.write("job.yaml", SPEC)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as f:
            f.write(text)
        return path


@case("submit --upload sends what traind lacks, once, and the answer comes back")
def _():
    with House() as house:
        desk = Desk(house)
        house.start()
        refused = house.cli("submit", "-f", desk.spec)
        assert refused.returncode != 0, refused
        assert "they are on this machine; --upload sends them to traind" in refused.stderr, refused.stderr
        house.write("train.csv", blobs(300, seed=1))
        refused = house.cli("submit", "-f", desk.spec, "--set", f"data.train={house.data}/train.csv")
        assert "the file is on this machine; --upload sends it to traind" in refused.stderr, refused.stderr
        first = house.cli("submit", "-f", desk.spec, "--upload", "--wait")
        assert first.returncode == 0, first.stderr
        assert "train.csv: " in first.stderr and " sent in " in first.stderr, first.stderr
        with open(os.path.join(desk.folder, "predictions.csv")) as f:
            assert len(f.readlines()) == 61
        second = house.cli("submit", "-f", desk.spec, "--upload", "--set", "train.epochs=1")
        assert second.returncode == 0 and second.stderr.count("there already") == 2, second.stderr
        names = sorted(name for _, _, files in os.walk(os.path.join(house.state, "uploads")) for name in files)
        assert names == ["test_rows.csv", "train.csv"], names
        # A Submit may be on its way: what has just come stays.
        assert house.cli("gc").returncode == 0
        assert len(os.listdir(os.path.join(house.state, "uploads"))) == 2


@case("submit --upload sends the folder of a program that is a model, and the answer comes back")
def _():
    with House() as house:
        desk = Desk(house)
        os.makedirs(os.path.join(desk.folder, "code/.git"))
        desk.write("code/.git/config", "secret")
        desk.write("code/.traindignore", "*.log\n")
        desk.write("code/old.log", "secret")
        desk.write("code/words.py", "WORDS = ('kind', 'id')\n")
        os.chmod(desk.write("code/train.py", """#!/usr/bin/env python3
import csv, os
from words import WORDS
target, id = WORDS
def rows(name):
    with open(os.environ[name], newline="") as f:
        return list(csv.DictReader(f))
kinds = sorted({row[target] for row in rows("TRAIND_TRAIN_CSV")})
def write(path, table):
    with open(path, "w", newline="") as f:
        out = csv.writer(f)
        out.writerow([id, *kinds])
        for row in table:
            out.writerow([row[id], *(1 / len(kinds) for _ in kinds)])
write("oof_predictions.csv", rows("TRAIND_VALID_CSV"))
write("test_predictions.csv", rows("TRAIND_TEST_CSV"))
"""), 0o755)
        spec = desk.write("program.yaml", SPEC.replace("mlp: {hidden: [8]}", "command: {train: [./train.py], code: code}")
                          .replace("train: {epochs: 2}\n", "").replace("folds: 2", "folds: 2, id: id"))
        house.start("--allow-programs")
        refused = house.cli("submit", "-f", spec)
        assert refused.returncode != 0 and "--upload" in refused.stderr, refused.stderr
        sent = house.cli("submit", "-f", spec, "--upload", "--wait")
        assert sent.returncode == 0, sent.stderr
        with open(os.path.join(desk.folder, "predictions.csv")) as f:
            assert len(f.readlines()) == 61
        names = sorted(name for _, _, files in os.walk(os.path.join(house.state, "uploads")) for name in files)
        assert names == [".traindignore", "test_rows.csv", "train.csv", "train.py", "words.py"], names
        # Its folder is needed as long as its Job is there.
        assert house.cli("gc").returncode == 0
        wrong = house.cli("submit", "-f", spec, "--upload", "--set", "model.command.code=/no/such")
        assert wrong.returncode != 0 and "model.command.code: " in wrong.stderr, wrong.stderr
        assert "nothing submitted" in wrong.stderr, wrong.stderr


class Project(Desk):
    """The folder of a program, in which its user calls trainctl."""

    def __init__(self, house, script):
        super().__init__(house)
        self.project = os.path.join(self.folder, "project")
        os.mkdir(self.project)
        self.write("project/run.sh", script)

    def call(self, *arguments, code=0):
        called = subprocess.run([os.path.join(self.house.bin, "client/trainctl"), "--server", self.house.server, *arguments],
                                capture_output=True, text=True, env=self.house.environment(), cwd=self.project, timeout=100)
        assert called.returncode == code, (arguments, called.returncode, called.stdout, called.stderr)
        return called

    def files(self, below="."):
        root = os.path.join(self.project, below)
        return sorted(os.path.relpath(os.path.join(at, name), root) for at, _, names in os.walk(root) for name in names)

    def text(self, name):
        with open(os.path.join(self.project, name)) as f:
            return f.read()


def below(folder):
    return sorted(os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names)


@case("run --upload sends the folder of the call, and what the program leaves comes back to it")
def _():
    with House(slots=2) as house:
        desk = Project(house, "mkdir -p deep\necho $word-$TRAIND_FOLD > deep/answer.txt\necho more > $TRAIND_OUT/more.txt\n")
        house.start("--allow-programs", "--http", "127.0.0.1:0")
        ran = desk.call("run", "--upload", "--budget", "40s", "--folds", "2", "--env", "word=hello", "--expect",
                        "deep/answer.txt", "-o", "json", "--", "sh", "run.sh")
        job = json.loads(ran.stdout)
        assert job["state"] == "SUCCEEDED", job
        left = ["fold-0/deep/answer.txt", "fold-0/more.txt", "fold-1/deep/answer.txt", "fold-1/more.txt"]
        assert desk.files() == [*left, "run.sh"], desk.files()
        assert desk.text("fold-1/deep/answer.txt") == "hello-1\n"
        kept = os.path.join(house.results(job["id"]), "results")
        assert job["program_results"] == os.path.realpath(kept) and below(kept) == left, (job, below(kept))
        assert [os.path.basename(name) for name in below(os.path.join(house.state, "uploads"))] == ["run.sh"]
        with urllib.request.urlopen(f"http://{house.http}/v1/jobs/{job['id']}") as answer:
            assert json.load(answer)["program_results"] == job["program_results"]
        try:
            urllib.request.urlopen(f"http://{house.http}/v1/jobs/{job['id']}/artifacts/results.pack")
            raise AssertionError("HTTP answers with files, which have one descriptor")
        except urllib.error.HTTPError as refused:
            assert refused.code == 400 and "trainctl fetch" in refused.read().decode(), refused
        # The same again brings the files to a folder of the Job's name; a second time it wants a word.
        fetched = json.loads(desk.call("fetch", job["id"], "-o", "json").stdout)
        assert fetched["files"] == 4 and desk.files(job["id"]) == left, fetched
        assert "exists here" in desk.call("fetch", job["id"], code=2).stderr
        desk.write(f"project/{job['id']}/more.txt", "mine")
        desk.call("fetch", job["id"], "--out", job["id"])
        assert desk.files(job["id"]) == [*left, "more.txt"] and desk.text(f"{job['id']}/more.txt") == "mine"
        assert "name a folder" in desk.call("fetch", job["id"], "--out", "-", code=2).stderr
        # They go with the Job.
        assert house.cli("delete", job["id"]).returncode == 0
        assert not os.path.exists(house.results(job["id"]))
        desk.call("fetch", job["id"], "--out", "again", code=5)
        assert not os.path.exists(os.path.join(desk.project, "again"))


@case("A program whose folder was uploaded may leave nothing, or something while it runs; what a Job keeps elsewhere is named")
def _():
    with House() as house:
        desk = Project(house, "echo early > early.txt\nwhile [ ! -f \"$TRAIND_STOP_FILE\" ]; do sleep 0.1; done\necho late > late.txt\n")
        house.start("--allow-programs")
        nothing = desk.call("run", "--upload", "--out", "out", "--budget", "20s", "--", "true")
        assert "has left no files" in nothing.stderr and desk.files() == ["run.sh"], (nothing.stderr, desk.files())
        with open(desk.write("project/job.yaml", "api: v1\nname: early\nrun: {command: [sh, run.sh], folder: ., expect: [early.txt]}\n"
                             "budget: {time: 60s}\n")):
            pass
        job = json.loads(desk.call("submit", "-f", "job.yaml", "--upload", "-o", "json").stdout)
        assert "has left no files (yet)" in desk.call("fetch", job["id"], "--out", "now", code=5).stderr
        eventually("a copy of what is there", lambda: below(os.path.join(house.results(job["id"]), "results")), 20)
        desk.call("fetch", job["id"], "--out", "now")
        assert desk.text("now/early.txt") == "early\n"
        house.finish(job["id"])
        desk.call("fetch", job["id"], "--out", "now")
        assert desk.files("now") == ["early.txt", "late.txt"], desk.files("now")
        local = json.loads(desk.call("run", "--budget", "20s", "--out", "own", "-o", "json", "--", "sh", "-c", "echo x > x.txt").stdout)
        refused = desk.call("fetch", local["id"], "--out", "there", code=1)
        assert f"are in the folder {os.path.realpath(desk.project)}/own on traind's machine" in refused.stderr, refused.stderr
        assert not os.path.exists(os.path.join(desk.project, "there"))


@case("Wrong files are named by their place in the spec, and nothing is submitted")
def _():
    with House(standalone=False) as house:
        desk = Desk(house)
        house.start()
        for setting, words in (("data.train=/no/such.csv", "data.train: cannot read"),
                               (f"data.test={desk.folder}", "is a folder, not a file")):
            wrong = house.cli("submit", "-f", desk.spec, "--upload", "--set", setting)
            assert wrong.returncode != 0 and words in wrong.stderr, wrong.stderr
            assert "nothing submitted" in wrong.stderr, wrong.stderr
        program = house.cli("submit", "--upload", desk.write(
            "program.yaml", "api: v1\nname: p\nrun: {command: [sh, x], folder: ., results: out}\nbudget: {time: 60s}\n"))
        assert program.returncode != 0 and "run.results: must be empty" in program.stderr, program.stderr
        assert house.json("list")["jobs"] == []


@case("Parts may come again or after a break; other bytes than promised are all dropped")
def _():
    with House(standalone=False) as house:
        house.start("--http", "127.0.0.1:0")
        text = b"a,b\n" + b"1,2\n" * 100_000
        digest = hashlib.sha256(text).hexdigest()
        whole = {"size_bytes": len(text)}
        status, answer = put(house, f"{digest}/x.csv", b"", **whole)
        assert (status, answer["offset"], answer["present"]) == (200, 0, False), (status, answer)
        half = len(text) // 2
        for _ in range(2):  # the answer to the first was lost
            status, answer = put(house, f"{digest}/x.csv", text[:half], offset=0, **whole)
            assert (status, answer["offset"], answer["present"]) == (200, half, False), (status, answer)
        status, answer = put(house, f"{digest}/x.csv", text[half:], offset=half, **whole)
        assert (status, answer["present"]) == (200, True), (status, answer)
        with open(answer["path"], "rb") as f:
            assert f.read() == text
        other = hashlib.sha256(b"other").hexdigest()
        status, answer = put(house, f"{other}/x.csv", b"wrong", size_bytes=5)
        assert status >= 400 and "other bytes came" in json.dumps(answer), (status, answer)
        assert put(house, f"{other}/x.csv", b"", size_bytes=5)[1]["offset"] == 0
        for path in (f"{digest}/.hidden", f"{digest[:-1]}/x.csv", f"{digest.upper()}/x.csv", f"{digest}/a%20b"):
            assert put(house, path, b"", size_bytes=1)[0] == 400, path
        status, answer = put(house, f"{other}/x.csv", b"", size_bytes=1 << 60)
        assert status == 429 and "has room for" in json.dumps(answer), (status, answer)


main()
