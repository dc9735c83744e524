"""search.method ask: a client proposes the trials of a Job, is killed, comes back, or never does."""
import importlib.util
import os
import random
import subprocess
import sys

from tests.cases import case, main
from tests.e2e.harness import House, moment
from tests.e2e.search_space import search_of

ROOT = os.path.dirname(os.path.realpath("clients/python/pyproject.toml"))
sys.path.insert(0, ROOT)
import traind  # noqa: E402


def client_of(house):
    return traind.Client(f"http://{house.http}", data_folder=house.data)


def on_time(job):
    assert job["state"] == "SUCCEEDED" and moment(job["finished_at"]) <= moment(job["deadline"]), job


class RandomSampler:
    """Draws settings, and keeps what it is told."""

    def __init__(self, seed=1):
        self.chance, self.told = random.Random(seed), []

    def ask(self):
        settings = {"learning_rate": round(self.chance.uniform(0.002, 0.3), 4),
                    "num_leaves": self.chance.randint(2, 16), "max_depth": self.chance.choice([1, 4, 8])}
        return settings, settings

    def tell(self, settings, trial):
        self.told.append((settings, trial))


@case("Proposals are trained, told, and answer; kill -9 of traind loses none", limit_s=150)
def _():
    with House(slots=2) as house:
        house.start()
        port = house.http
        job = client_of(house).job(house.submit(search_of(house, "ask", trials=7, budget="60s"))["id"])
        sampler = RandomSampler()

        def tell(settings, trial):
            sampler.tell(settings, trial)
            if len(sampler.told) == 2:
                house.kill_daemon()
                house.start("--http", port)

        job.ask_tell(sampler.ask, tell)
        on_time(job.info)
        assert len(sampler.told) == 6, sampler.told
        trials = job.list_trials()["trials"]
        assert len(trials) == 7 and all(t["proposed"] for t in trials[1:]) and not trials[0]["proposed"], trials
        for settings, trial in sampler.told:
            told = {name: float(value) for name, value in trial["settings"].items()}
            assert told == settings, (settings, trial)
            assert trial["scored_folds"] >= 1 and trial["gain"] is not None, trial
        best = max(sampler.told, key=lambda one: one[1]["gain"])[1]
        assert best["gain"] > 0.05, sampler.told
        assert job.scores["oof"] < 0.8 * trials[0]["score"], (job.scores, trials)


@case("What is not of the space is refused by name, and a repeated request is one trial", limit_s=60)
def _():
    with House(slots=1) as house:
        house.start()
        job = client_of(house).job(house.submit(search_of(house, "ask", trials=3, budget="40s"))["id"])
        for settings, named in (({"learning_rat": 0.1}, "did you mean 'learning_rate'"),
                                ({"num_leaves": 99}, "settings.num_leaves: '99' is not in int(2, 16)"),
                                ({"num_leaves": "many"}, "settings.num_leaves")):
            try:
                job.propose(settings)
                raise AssertionError(settings)
            except traind.SpecError as e:
                assert named in str(e), e
        first = job.propose({"num_leaves": 8}, request_id="a")
        again = job.propose({"num_leaves": 8}, request_id="a")
        assert first["created"] and not again["created"] and first["trial"]["index"] == again["trial"]["index"] == 1
        try:
            job.propose({"num_leaves": 9}, request_id="a")
            raise AssertionError("another trial")
        except traind.ConflictError as e:
            assert "request_id a belongs to trial 1" in str(e), e
        same = house.json("propose", job.id, "num_leaves=8", "--request-id", "a")
        assert same == {**again, "trial": same["trial"]} and same["trial"]["index"] == 1, (same, again)
        assert house.json("propose", job.id, "num_leaves=9")["created"]
        try:
            job.propose({"num_leaves": 10})
            raise AssertionError("more trials than there are")
        except traind.LimitError as e:
            assert "all 3 trials" in str(e), e
        on_time(house.wait(job.id))
        other = client_of(house).job(house.submit(search_of(house, "random", trials=2, budget="20s"))["id"])
        try:
            other.propose({"num_leaves": 9})
            raise AssertionError("it draws by itself")
        except traind.StateError as e:
            assert "search.method: ask" in str(e), e


@case("A client that dies costs the Job a wait: it goes on by TPE and is on time", limit_s=100)
def _():
    with House(slots=2) as house:
        house.start()
        spec = search_of(house, "ask", trials=6, budget="40s")
        spec["search"]["wait"] = "3s"
        job = client_of(house).job(house.submit(spec)["id"])
        job.propose({"learning_rate": 0.1, "num_leaves": 8, "max_depth": 4})
        house.until(job.id, "it waits", lambda j: sum(f["state"] == "DONE" for f in j["folds"]) >= 3)
        assert house.job(job.id)["state"] == "RUNNING"
        ended = house.wait(job.id)
        on_time(ended)
        trials = job.list_trials()["trials"]
        assert [t["proposed"] for t in trials] == [False, True, False, False, False, False], trials
        assert all(t["scored_folds"] >= 1 for t in trials), trials
        assert any("no trial was proposed for 3 s" == d["cause"] for d in ended["decisions"]), ended["decisions"]


@case("A client that has enough ends the training", limit_s=60)
def _():
    with House(slots=1) as house:
        house.start()
        job = client_of(house).job(house.submit(search_of(house, "ask", trials=50, budget="50s"))["id"])
        sampler = RandomSampler(2)
        job.ask_tell(lambda: sampler.ask() if len(sampler.told) < 2 else None, sampler.tell)
        on_time(job.info)
        assert any(d["cause"] == "finish was asked for" for d in job.decisions), job.decisions
        assert moment(job.info["finished_at"]) < moment(job.info["deadline"]) - 10, job.info
        assert len(sampler.told) >= 2, sampler.told


@case("examples/python/optuna_search.py", limit_s=100)
def _():
    if importlib.util.find_spec("optuna") is None:
        print("skipped: optuna is not installed")
        return
    with House(slots=2) as house:
        house.start()
        house.spec(rows=400)
        environment = {**os.environ, "PYTHONPATH": ROOT, "TRAIND_URL": f"http://{house.http}"}
        example = os.path.join(os.path.dirname(os.path.dirname(ROOT)), "examples/python/optuna_search.py")
        run = subprocess.run([sys.executable, example, f"{house.data}/train400.csv", f"{house.data}/test400.csv", "kind",
                              "15s"], capture_output=True, text=True, env=environment)
        assert run.returncode == 0 and "learning_rate" in run.stdout, run


main()
