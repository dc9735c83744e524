"""Images that come later, predicted with the models of a Job: as files, as an array, and at once."""
import os
import shutil

from tests.cases import case, main
from tests.e2e.harness import House, rows_of, sha256
from tests.e2e.images import grey_array, job_of, read_png, write_images


def trained(house, **changes):
    house.start()
    write_images(house, each=30)
    job = house.wait(house.submit(job_of(epochs=6, **changes))["id"])
    assert job["state"] == "SUCCEEDED" and job["quality"] == "FULL", job
    # All that prediction needs lies beside the checkpoints.
    shutil.rmtree(os.path.join(house.state, "cache"))
    shutil.rmtree(os.path.join(house.data, "train"))
    return job


def predict(house, job, name, *arguments, code=0):
    return house.json("predict", job["id"], "--data", os.path.join(house.data, name), *arguments, code=code)


@case("A Job's own test images give its own Prediction again, byte by byte: by table, by folder, as an array",
      limit_s=150)
def _():
    with House(slots=2) as house:
        job = trained(house, model={"cnn": {"width": 8, "blocks": [1, 1], "mirror": True}})
        own = rows_of(job["predictions"]["path"])
        again = predict(house, job, "test.csv")
        assert (again["state"], again["quality"]) == ("SUCCEEDED", "FULL"), again
        assert sha256(again["predictions"]["path"]) == job["predictions"]["sha256"], again
        assert again["scores"]["oof"] == job["scores"]["oof"], again["scores"]
        by_name = {row[0]: row[1:] for row in own[1:]}
        folder = rows_of(predict(house, job, "test")["predictions"]["path"])
        assert folder[0] == own[0] and len(folder) == 61, folder[0]
        assert {f"test/{row[0]}": row[1:] for row in folder[1:]} == by_name
        images = [read_png(os.path.join(house.data, f"test/{i}.png")) for i in range(60)]
        house.write("later.npy", grey_array(images))
        array = rows_of(predict(house, job, "later.npy")["predictions"]["path"])
        assert [row[0] for row in array[1:]] == [str(i) for i in range(60)]
        assert [row[1:] for row in array[1:]] == [row[1:] for row in own[1:]]
        attempts = os.path.join(house.results(again["id"]), "attempts")
        left = [f for _, _, files in os.walk(attempts) for f in files]
        assert not any(f.startswith("rows.bin") for f in left), left


@case("A later image that is cut is black and named; too many, and files that are no images, end the Job",
      limit_s=150)
def _():
    with House(slots=2) as house:
        job = trained(house)
        with open(os.path.join(house.data, "test/3.png"), "rb") as f:
            whole = f.read()
        house.write("test/3.png", whole[:60])
        later = predict(house, job, "test.csv")
        assert later["state"] == "SUCCEEDED", later
        assert any("test.csv: 1 of 60 images cannot be read: test/3.png is a PNG file that is cut" in w
                   for w in later["warnings"]), later["warnings"]
        before, after = rows_of(job["predictions"]["path"]), rows_of(later["predictions"]["path"])
        assert [i for i, (a, b) in enumerate(zip(before, after)) if a != b] == [4]
        for i in range(5):
            house.write(f"test/{i}.png", b"no image")
        failed = predict(house, job, "test.csv", code=1)
        assert (failed["state"], failed["end_reason"]) == ("FAILED", "DATA_ERROR"), failed
        assert "5 of 60 images cannot be read: test/0.png is neither" in failed["end_message"], failed
        house.write("rows.csv", "name\n1.png\n")
        result = house.cli("predict", job["id"], "--data", os.path.join(house.data, "rows.csv"))
        assert result.returncode != 0 and "the later file has no column 'file'" in result.stderr, result
        house.write("flat.npy", grey_array([]))
        result = house.cli("predict", job["id"], "--data", os.path.join(house.data, "flat.npy"))
        assert result.returncode != 0 and "predict.data" in result.stderr, result


@case("Images within rows are answered at once as the file is; a path is not opened", limit_s=150)
def _():
    with House(slots=2) as house:
        job = trained(house)
        filed = rows_of(job["predictions"]["path"])
        with open(os.path.join(house.data, "test.csv")) as f:
            rows = house.write("rows.csv", "".join(f.readlines()[:6]))
        result = house.cli("predict", job["id"], "--rows", rows, "--files", "file")
        assert result.returncode == 0 and "FULL" in result.stderr, result
        answers = [line.split(",") for line in result.stdout.strip().split("\n")]
        assert answers == [row[1:] for row in filed[:6]], (answers, filed[:6])
        result = house.cli("predict", job["id"], "--rows", rows)
        assert result.returncode == 2 and "row 1, column 'file': is not an image in base64" in result.stderr, result
        house.write("test/1.png", b"no image")
        result = house.cli("predict", job["id"], "--rows", rows, "--files", "file")
        assert result.returncode == 2 and "row 2, column 'file': is neither" in result.stderr, result
        result = house.cli("predict", job["id"], "--rows", rows, "--files", "picture")
        assert result.returncode != 0 and "no column 'picture'" in result.stderr, result


main()
