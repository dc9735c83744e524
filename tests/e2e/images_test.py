"""Jobs on images: folders and tables of files, through a CNN."""
import os
import random

from tests.cases import case, main
from tests.e2e.harness import House, rows_of
from tests.e2e.images import CLASSES, job_of, png, stripes, write_images


def scored(job):
    """(out of fold, floor's), of a Job that succeeded."""
    assert job["state"] == "SUCCEEDED", job
    return job["scores"]["oof"], job["scores"]["floor"]


@case("A Job on images beats its floor, its Rank killed once and resumed", limit_s=150)
def _():
    with House(slots=1) as house:
        house.start()
        write_images(house)
        job = house.submit(job_of(epochs=40, train_changes={"checkpoint_every": "300ms"}))
        house.until_saved(job["id"])
        house.kill_running("trainrank")
        job = house.wait(job["id"], 90)
        house.check_resumed(job)
        score, floor = scored(job)
        assert score > floor + 0.2 and score > 0.8, (score, floor)
        ends = [a["end_reason"] for a in job["attempts"] if a["task"].startswith("fold-")]
        assert "RANK_DIED" in ends and ends.count("COMPLETED") == 2, job["attempts"]
        told = [a["resources"]["summary"] for a in job["attempts"] if a["task"].startswith("fold-") and a["resources"]]
        assert told and all("loader_threads=1" in summary for summary in told), told
        table = rows_of(job["predictions"]["path"])
        assert table[0] == ["file", "kind"] + [f"p_{c}" for c in CLASSES], table[0]
        assert len(table) == 61 and table[1][0] == "test/0.png", table[:2]


@case("NUM_WORKERS of the Worker's environment is the number of threads that load images")
def _():
    with House(slots=1) as house:
        os.environ["NUM_WORKERS"] = "3"
        try:
            house.start()
        finally:
            del os.environ["NUM_WORKERS"]
        write_images(house, each=10, test=6)
        job = house.wait(house.submit(job_of(epochs=2))["id"])
        told = [a["resources"]["summary"] for a in job["attempts"] if a["task"].startswith("fold-") and a["resources"]]
        assert told and all("loader_threads=3" in summary for summary in told), told
        assert not any(d["rule"] == "loading" for d in job["decisions"]), job["decisions"]


@case("Images of a folder answer by the names of their files")
def _():
    with House(slots=1) as house:
        house.start()
        write_images(house, each=10, test=6)
        spec = job_of(epochs=1)
        del spec["data"]["id"]
        job = house.wait(house.submit({**spec, "data": {**spec["data"], "test": "test"}})["id"])
        assert job["state"] == "SUCCEEDED", job
        table = rows_of(job["predictions"]["path"])
        assert table[0][:2] == ["file", "kind"], table[0]
        assert [row[0] for row in table[1:]] == [f"{i}.png" for i in range(6)], table


@case("Two Ranks train a fold on a table of images, whose target is a number, in bf16")
def _():
    with House(slots=2) as house:
        house.start()
        write_images(house, each=40)
        lines = [f"train/{k}/{i}.png,{CLASSES.index(k) + 0.5},{i % 3}" for k in CLASSES for i in range(40)]
        house.write("numbers.csv", "file,kind,other\n" + "\n".join(lines) + "\n")
        house.write("test.csv", "file,other\n" + "\n".join(f"test/{i}.png,{i % 3}" for i in range(60)) + "\n")
        job = house.submit(job_of("numbers.csv", task={"type": "regression"}, resources={"slots": 2},
                                  model={"cnn": {"width": 8, "blocks": [1], "mirror": True, "view_shift": 0.1, "view_scales": [1, 0.8]}},
                                  train_changes={"precision": "bf16", "augment": {"mixup": 0.3}}))
        job = house.wait(job["id"])
        house.check_folds_answer(job)
        assert len(rows_of(job["predictions"]["path"])) == 61


@case("An image that is cut is left out and named; too many of them end the Job")
def _():
    with House(slots=1) as house:
        house.start()
        write_images(house, each=20)
        whole = png(stripes("down", random.Random(1)))
        house.write("train/down/3.png", whole[:60])
        job = house.wait(house.submit(job_of(epochs=1))["id"])
        assert job["state"] == "SUCCEEDED", job
        assert any("1 of 60 images cannot be read: down/3.png is a PNG file that is cut" in w
                   for w in job["warnings"]), job["warnings"]
        for i in range(5):
            house.write(f"train/down/{i}.png", b"no image")
        job = house.wait(house.submit(job_of(epochs=1))["id"])
        assert (job["state"], job["end_reason"]) == ("FAILED", "DATA_ERROR"), job
        assert "down/0.png is neither a JPEG nor a PNG file" in job["end_message"], job["end_message"]


@case("A class folder without images, and a table that names files elsewhere, end the Job")
def _():
    with House(slots=1) as house:
        house.start()
        write_images(house, each=5)
        os.mkdir(os.path.join(house.data, "train/empty"))
        job = house.wait(house.submit(job_of(epochs=1))["id"])
        assert (job["state"], job["end_reason"]) == ("FAILED", "DATA_ERROR"), job
        assert "empty: there is no image" in job["end_message"], job["end_message"]
        lines = [f"../../../etc/passwd,{CLASSES[i % 3]}" for i in range(30)]
        house.write("outside.csv", "file,kind\n" + "\n".join(lines) + "\n")
        job = house.wait(house.submit(job_of("outside.csv", epochs=1))["id"])
        assert (job["state"], job["end_reason"]) == ("FAILED", "DATA_ERROR"), job
        assert "does not lie below" in job["end_message"] or "cannot be found" in job["end_message"], job


main()
