"""The Python package, installed by pip, against the real daemon."""
import importlib.util
import os
import subprocess
import sys
import tempfile
import textwrap

from tests.cases import case, main
from tests.e2e.harness import House, binaries, eventually

FOLDER = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
PACKAGE = os.path.realpath("clients/python/pyproject.toml").rpartition("/")[0]


def installed():
    """The Python of a new environment that has the package."""
    python = os.path.join(FOLDER, "venv/bin/python")
    pip = [sys.executable, "-m", "pip"] if importlib.util.find_spec("pip") else None
    subprocess.run([sys.executable, "-m", "venv", *(["--without-pip"] if pip else []), os.path.join(FOLDER, "venv")],
                   check=True)
    pip = [*pip, "--python", python] if pip else [python, "-m", "pip"]
    subprocess.run([*pip, "--disable-pip-version-check", "install", "--quiet", "--no-index", PACKAGE], check=True)
    return python


PYTHON = installed()
# Three classes by the product of two numbers.
TABLES = """
    import random, sys
    import traind
    chance = random.Random(1)
    def table(rows):
        x, y = ([round(chance.uniform(-2, 2), 4) for _ in range(rows)] for _ in "xy")
        return {"x": x, "y": y, "colour": [chance.choice(["red", "a, b", None]) for _ in range(rows)],
                "large": [a * b > 0.5 for a, b in zip(x, y)]}
    train, test = table(300), table(60)
    answers = test.pop("large")
    MLP = {"model": {"mlp": {"hidden": [32, 32]}}, "train": {"epochs": 30, "patience": 0, "batch": 32, "learning_rate": 0.02}}
"""


def script(house, text, *arguments, environment=None, background=False):
    """Runs Python lines in the environment that has the package; what they print."""
    path = os.path.join(house.root, f"script{len(os.listdir(house.root))}.py")
    with open(path, "w", encoding="utf-8") as f:
        f.write(textwrap.dedent(TABLES) + textwrap.dedent(text))
    process = subprocess.Popen([PYTHON, "-I", path, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               cwd=house.data, env={**house.environment(), **(environment or {})})
    if background:
        return process
    out, err = process.communicate(timeout=80)
    assert process.returncode == 0, (out, err)
    return out


def url(house):
    return "http://" + house.http


@case("A table is trained on and answered; later rows and single rows are predicted; figures are exported")
def _():
    with House(slots=2) as house:
        house.start()
        out = script(house, """
            client = traind.connect(sys.argv[1], data_folder="tables")
            answer = client.train(train, target="large", test=test, budget="30s", metric="accuracy", data={"folds": 2},
                                  progress=False, **MLP)
            assert set(answer) == {"row", "large", "p_false", "p_true"}, answer.keys()
            assert answer["row"] == list(range(60)) and set(answer["large"]) == {True, False}, answer["large"]
            right = sum(a == b for a, b in zip(answer["large"], answers))
            job = client.jobs()[0]
            assert job.status == "SUCCEEDED" and job.quality == "FULL" and job.scores["oof"] > 0.5, job
            assert right > 48, right
            again = job.predict(test)
            assert [str(v).lower() for v in answer["large"]] == again["large"] and again["p_true"] == answer["p_true"]
            few = job.predict_rows([{"x": 1.5, "y": 1.5}, {"x": test["x"][0], "y": test["y"][0], "colour": test["colour"][0]}])
            assert abs(few["p_true"][1] - answer["p_true"][0]) < 1e-4, few
            assert sum(row["weight"] for row in job.leaderboard()) > 0.999
            curve = job.metrics("val_metric")
            assert set(curve["fold"]) == {0, 1} and max(curve["epoch"]) == 30, curve
            assert len(job.export_tensorboard("board")) == 2
            assert job.fetch("answer.csv") == "answer.csv" and client.workers()[0]["device"] == "cpu"
            print(job.id)
            """, url(house))
        job = out.strip()
        with open(os.path.join(house.data, "answer.csv"), encoding="utf-8") as f:
            assert f.readline() == "row,large,p_false,p_true\n"
        assert os.listdir(os.path.join(house.data, "tables")) == []  # no table is left
        trace = os.path.join(house.root, "trace.json")
        result = subprocess.run([PYTHON, "-I", "-m", "traind", "trace", job, trace], capture_output=True, text=True,
                                env={**house.environment(), "TRAIND_URL": url(house)})
        assert result.returncode == 0 and os.path.getsize(trace) > 1000, result
        house.cli("cancel", f"{house.json('list')['jobs'][0]['id']}")  # the one that serves rows


@case("connect() finds the traind that runs here by its process; wrong requests have their places")
def _():
    with House(slots=1) as house:
        house.start()
        out = script(house, """
            # Others may run on this machine, too.
            from traind import discovery
            print(*discovery.local_urls())
            client = traind.connect(sys.argv[1], data_folder="tables")
            for spec, field, part in (
                    ({"data": {"train": train, "target": "size"}, "budget": 5}, "data.target", "no column 'size'"),
                    ({"data": {"train": train, "target": "large"}, "budget": 5, "model": {"mpl": {}}}, "model.mpl", "mlp"),
                    ("data: {train: x.csv}\\nbudget: {time: 5}\\n", "budget.time", "no unit")):
                try:
                    client.submit(spec)
                except traind.SpecError as e:
                    found = [p for p in e.places if p.path == field]
                    assert found and part in found[0].message and found[0].line, e.places
                    continue
                raise AssertionError(spec)
            for folder, error in (("/tmp/traind-not-allowed", traind.DataFolderError),):
                try:
                    traind.Client(sys.argv[1], data_folder=folder).submit({"data": {"train": train, "target": "large"}})
                    raise AssertionError(folder)
                except error as e:
                    assert "--data-root" in str(e), e
            try:
                client.job("nobody")
                raise AssertionError("found")
            except traind.NotFoundError:
                pass
            """, url(house))
        assert url(house) in out.split(), out


@case("wait() goes on when traind is killed and started again")
def _():
    with House(slots=1) as house:
        house.start()
        address = house.http
        waiting = script(house, """
            client = traind.connect(sys.argv[1], data_folder="tables")
            job = client.submit({"data": {"train": train, "target": "large", "folds": 2}, "budget": "60s", "cache": "off",
                                 "model": {"mlp": {"hidden": [16]}}, "train": {"epochs": 400, "patience": 0}})
            print(job.id, flush=True)
            print(job.wait(progress=False).info["state"])
            """, url(house), background=True)
        job = waiting.stdout.readline().strip()
        house.until(job, "it trains", lambda j: j["state"] == "RUNNING")
        house.kill_daemon()
        house.start("--http", address)
        out, err = waiting.communicate(timeout=70)
        assert out.strip() == "SUCCEEDED", (out, err)


@case("traind.start() starts the programs of $TRAIND_HOME, and nothing of them is left behind")
def _():
    with House(slots=1) as house:
        out = script(house, """
            import os
            with traind.start(slots=1) as client:
                assert traind.connect() is client
                answer = traind.train(train, target="large", test=test, budget="20s", data={"folds": 2}, progress=True, **MLP)
                assert len(answer["large"]) == 60
                print(os.path.dirname(client.server.state))
            """, environment={"TRAIND_HOME": binaries()})
        assert not os.path.exists(out.strip()), out
        eventually("every process is gone", lambda: not house.processes(), 15)


main()
