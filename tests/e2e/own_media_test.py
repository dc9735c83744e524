"""Images, volumes, modules and weights travel: from a user's desk to traind, and from there to a Worker that shares no
folder with it."""
import glob
import json
import os
import shutil

from tests.cases import case, main
from tests.e2e.harness import House, blobs, eventually, moment, rows_of, sha256
from tests.e2e.images import job_of, write_images
from tests.e2e.own_folders import files, start_alone
from tests.e2e.volumes import make_volumes
from tests.e2e.volumes import spec as volumes_spec

TEXTS = "tests/golden/texts"


def alone(house, *arguments):
    house.start(*arguments)
    return start_alone(house, "w1")


def desk_of(house):
    """What lies in the data folder moves to one that traind may not read."""
    desk = os.path.join(house.root, "desk")
    shutil.move(house.data, desk)
    os.mkdir(house.data)
    return desk


def sent(house, desk, spec, *arguments):
    """Submits a spec of files on the desk."""
    path = os.path.join(desk, "job.json")
    with open(path, "w") as f:
        f.write(json.dumps(spec))
    answer = house.cli("submit", "-f", path, "--upload", *arguments)
    assert answer.returncode == 0, answer.stderr
    return answer


def write_texts(house, family):
    lines = ["text,label"] + [f"the room was {'clean' if i % 2 else 'cold'} on day {i % 7},{'up' if i % 2 else 'down'}"
                              for i in range(120)]
    house.write("texts.csv", "\n".join(lines) + "\n")
    house.write("later_texts.csv", "\n".join(lines[:41]) + "\n")
    shutil.copytree(os.path.join(TEXTS, family), os.path.join(house.data, family))
    for path in glob.glob(os.path.join(house.data, family, "*")):
        os.chmod(path, 0o644)
    return {
        "api": "v1", "name": family, "cache": "off", "task": {"type": "classification", "metric": "accuracy"},
        "data": {"train": "texts.csv", "test": "later_texts.csv", "target": "label", "folds": 2, "text": {"columns": ["text"]}},
        "model": {"text": {"architecture": family}, "pretrained": {"folder": family}},
        "train": {"epochs": 2, "batch": 16, "patience": 0, "precision": "fp32", "learning_rate": 0.002},
        "budget": {"time": "60s"},
    }


def write_module(house):
    shutil.copy("examples/own_model/model.pt", house.data)
    for name in ("train.csv", "test.csv"):
        shutil.copy(os.path.join("examples/digits", name), os.path.join(house.data, "digits_" + name))
    return {
        "api": "v1", "name": "own", "cache": "off", "task": {"type": "classification", "metric": "accuracy"},
        "data": {"train": "digits_train.csv", "test": "digits_test.csv", "target": "digit", "id": "id", "folds": 2, "seed": 7},
        "model": {"script": {"file": "model.pt"}},
        "train": {"epochs": 60, "batch": 32, "patience": 0, "precision": "fp32"},
        "budget": {"time": "60s"},
    }


def first_rows(house, name, count):
    with open(os.path.join(house.data, name)) as f:
        return "".join(f.readlines()[:count + 1])


def predicted(house, job, name):
    later = house.json("predict", job["id"], "--data", os.path.join(house.data, name))
    assert later["state"] == "SUCCEEDED", later
    return rows_of(later["predictions"]["path"])


def masks_of(house, job):
    later = house.json("predict", job["id"], "--data", os.path.join(house.data, "test.csv"))
    assert later["state"] == "SUCCEEDED", later
    folder = os.path.join(os.path.dirname(later["predictions"]["path"]), "masks")
    assert len(os.listdir(folder)) == 2, os.listdir(folder)
    return {name: sha256(os.path.join(folder, name)) for name in os.listdir(folder)}


def done(job):
    assert job["state"] == "SUCCEEDED", job
    assert [f["state"] for f in job["folds"]] == ["DONE"] * len(job["folds"]), job["folds"]
    return job


def full(job):
    assert job["quality"] == "FULL", job
    return done(job)


@case("A folder of images and a table of them are learnt in a Worker's own folder; it is lost, another one goes on",
      limit_s=180)
def _():
    with House(standalone=False) as house:
        write_images(house, each=40, test=30)
        state = alone(house)
        job = house.submit(job_of(epochs=60, budget="90s", train_changes={"checkpoint_every": "300ms"}))
        house.until_saved(job["id"], 60)
        for folder in (state, house.state):
            assert len(files(folder, "cache/*.images")) == 1, files(folder, "cache/*")
        pictures = [path for path in files(state, "inputs/**/*.png")]
        assert len(pictures) == 3 * 40 + 30, len(pictures)
        assert not files(state, "inputs/**/*.pack") and not files(state, "inputs/**/*.part"), files(state, "inputs/**")
        house.kill_all("trainworker")
        eventually("its Ranks are gone with it", lambda: not house.processes("trainrank"), 10)
        os.rename(state, state + ".lost")
        start_alone(house, "w2")
        job = full(house.wait(job["id"], 90))
        house.check_resumed(job)
        assert job["scores"]["oof"] > job["scores"]["floor"], job["scores"]
        table = rows_of(job["predictions"]["path"])
        assert len(table) == 31 and table[1][0] == "test/0.png", table[:2]


@case("An image that cannot be read is named by the path that its user knows", limit_s=90)
def _():
    with House(standalone=False) as house:
        write_images(house, each=10, test=6)
        broken = house.write("train/across/broken.png", b"no image")
        house.write("train/across/notes.txt", "x")
        alone(house)
        job = full(house.wait(house.submit(job_of(epochs=1))["id"], 60))
        told = " ".join(job["warnings"])
        assert "across/broken.png" in told and "1 file not named" in told, job["warnings"]
        assert "inputs/" not in told and os.path.dirname(os.path.dirname(broken)) in told, job["warnings"]


@case("Volumes and their masks are learnt in a Worker's own folder, and answered as masks in traind's", limit_s=150)
def _():
    with House(standalone=False) as house:
        make_volumes(house)
        state = alone(house)
        job = full(house.wait(house.submit(volumes_spec(house, resources={"slots": 1}))["id"], 100))
        assert files(state, "cache/*.volumes") and files(house.state, "cache/*.volumes")
        masks = os.listdir(os.path.join(os.path.dirname(job["predictions"]["path"]), "masks"))
        assert sorted(masks) == ["ct008.npy", "ct009.npy"], masks


@case("A user's module and a folder of weights are learnt from in a Worker's own folder, which answers rows at once",
      limit_s=150)
def _():
    with House(standalone=False) as house:
        module, texts = write_module(house), write_texts(house, "bert")
        state = alone(house, "--allow-script", sha256(os.path.join(house.data, "model.pt")))
        for spec in (module, texts):
            job = done(house.wait(house.submit(spec)["id"], 70))
            rows = house.write("rows.csv", first_rows(house, spec["data"]["test"], 3))
            shutil.rmtree(os.path.join(state, "jobs", job["id"]))  # another Worker has trained it
            for path in files(state, "cache/*.pt"):
                os.remove(path)
            answer = house.cli("predict", job["id"], "--rows", rows)
            assert answer.returncode == 0 and len(answer.stdout.splitlines()) == 4, (answer.stdout, answer.stderr)
        assert files(state, "jobs/*/attempts/*/model.json") and files(state, "cache/*.safetensors"), files(state, "**")


@case("Later files are predicted in a Worker's own folder, with models that others have trained", limit_s=240)
def _():
    with House(standalone=False) as house:
        write_images(house, each=20, test=30)
        spec = job_of(epochs=8)
        tables = house.spec(folds=2, epochs=20)
        house.start()
        shared = house.start_worker()
        images, table = (done(house.wait(house.submit(each)["id"], 60)) for each in (spec, tables))
        before = predicted(house, images, "test.csv"), predicted(house, table, "test400.csv")
        shared.terminate()
        shared.wait(20)
        state = start_alone(house, "w1")
        after = predicted(house, images, "test.csv"), predicted(house, table, "test400.csv")
        assert after == before
        folder = predicted(house, images, "test")
        assert len(folder) == 31 and sorted(row[1:] for row in folder[1:]) == sorted(row[1:] for row in before[0][1:]), folder
        assert files(state, "jobs/*/attempts/*/prediction.pack") and not files(house.state, "jobs/**/*.pack*")
        # Told to finish, or out of time: what the models have answered by then comes over.
        wide = house.write("wide.csv", blobs(60_000, seed=5))
        some = house.json("predict", table["id"], "--data", wide, "--budget", "8s")
        assert some["state"] == "SUCCEEDED" and moment(some["finished_at"]) <= moment(some["deadline"]), some
        assert len(rows_of(some["predictions"]["path"])) == 60_001


@case("Volumes are predicted in a Worker's own folder as in traind's", limit_s=200)
def _():
    with House(standalone=False) as house:
        make_volumes(house)
        spec = volumes_spec(house, resources={"slots": 1}, budget={"time": "60s"})
        spec["data"]["volume"] = {"components": "auto"}
        spec["train"]["epochs"] = 4
        house.start()
        shared = house.start_worker()
        job = done(house.wait(house.submit(spec)["id"], 80))
        before = masks_of(house, job)
        shared.terminate()
        shared.wait(20)
        start_alone(house, "w1")
        assert masks_of(house, job) == before


@case("--upload sends folders and tables of images, volumes, modules and weights, once", limit_s=240)
def _():
    with House() as house:
        make_volumes(house, volumes=4)
        volumes = volumes_spec(house, train={**volumes_spec(house)["train"], "epochs": 1}, resources={"slots": 1},
                               budget={"time": "30s"})
        for name in ("train.csv", "test.csv"):
            os.rename(os.path.join(house.data, name), os.path.join(house.data, "volumes_" + name))
        volumes["data"] = {**volumes["data"], "train": "volumes_train.csv", "test": "volumes_test.csv"}
        write_images(house, each=20, test=9)
        module, texts = write_module(house), write_texts(house, "bert")
        allowed = sha256(os.path.join(house.data, "model.pt"))
        desk = desk_of(house)
        house.start("--allow-script", allowed)
        for spec in (job_of(epochs=2), volumes, module, texts):
            answer = sent(house, desk, spec, "--wait")
            assert " sent in " in answer.stderr, answer.stderr
        again = sent(house, desk, job_of(epochs=1))
        assert again.stderr.count("there already") == 2 and "train/: " in again.stderr, again.stderr
        jobs = house.json("list")["jobs"]
        assert len(jobs) == 5 and all(house.wait(j["id"])["state"] == "SUCCEEDED" for j in jobs), jobs
        assert not files(house.state, "uploads/**/*.pack"), files(house.state, "uploads/**")
        seen = files(house.state, "uploads/**/*.png")
        assert len(seen) == 3 * 20 + 9, len(seen)
        first = [j for j in jobs if j["name"] == "stripes"][-1]
        rows = house.json("predict", first["id"], "--upload", "--data", os.path.join(desk, "test.csv"))
        assert len(rows_of(rows["predictions"]["path"])) == 10, rows
        whole = house.json("predict", first["id"], "--upload", "--data", os.path.join(desk, "test"))
        assert len(rows_of(whole["predictions"]["path"])) == 10, whole


@case("What cannot be sent is named by its place in the spec")
def _():
    with House(standalone=False) as house:
        write_images(house, each=3, test=3)
        desk = desk_of(house)
        house.start()
        path = os.path.join(desk, "job.json")
        for change, words in (({"image": {"column": "picture"}}, "data.test: test.csv: there is no column 'picture'"),
                              ({"train": "nowhere"}, "data.train: cannot read"),):
            spec = job_of()
            spec["data"].update(change)
            with open(path, "w") as f:
                f.write(json.dumps(spec))
            answer = house.cli("submit", "-f", path, "--upload")
            assert answer.returncode != 0 and words in answer.stderr, (words, answer.stderr)
        assert house.json("list")["jobs"] == []


main()
