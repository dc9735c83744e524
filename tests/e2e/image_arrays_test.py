"""Jobs on arrays of images: NPY files and NPZ archives, with labels beside them."""
import glob
import io
import os
import random
import struct
import zipfile

from tests.cases import case, main
from tests.e2e.harness import House, rows_of
from tests.e2e.images import CLASSES, SIZE, grey_array, job_of, npy, png, stripes


def some_images(each, seed=3):
    """(pixels, class) of each image, class after class as their folders are listed."""
    chance = random.Random(seed)
    return [(stripes(kind, chance), k) for k, kind in enumerate(CLASSES) for _ in range(each)]


def grey(images, scale=None):
    return grey_array([pixels for pixels, _ in images], scale)


def labels(images):
    return npy("<i8", (len(images),), [k for _, k in images])


def array_job(**changes):
    data = {"train": "x.npy", "test": "x_test.npy", "target": "kind", "folds": 2, "seed": 7,
            "image": {"size": SIZE, "channels": 1, "labels": "y.npy", "test_labels": "y_test.npy"}}
    image = changes.pop("image", {})
    data.update(changes.pop("data", {}))
    data["image"] = {**data["image"], **image}
    data["image"] = {k: v for k, v in data["image"].items() if v is not None}
    return job_of(data=data, **changes)


def write_arrays(house, images, test):
    house.write("x.npy", grey(images))
    house.write("y.npy", labels(images))
    house.write("x_test.npy", grey(test))
    house.write("y_test.npy", labels(test))


def cached_pixels(house):
    """The pixels of the caches that there are (docs/FORMATS.md, "Decoded images")."""
    pixels = []
    for path in glob.glob(os.path.join(house.state, "cache", "*.images")):
        with open(path, "rb") as f:
            pixels.append(f.read()[128:])
    return pixels


@case("Arrays of images give the pixels that their files give, and beat the floor; a rerun trains nothing",
      limit_s=150)
def _():
    with House(slots=1) as house:
        house.start()
        images, test = some_images(80), some_images(10, seed=5)
        write_arrays(house, images, test)
        job = house.wait(house.submit(array_job(epochs=30, cache="use"))["id"], 90)
        assert job["state"] == "SUCCEEDED" and job["quality"] == "FULL", job
        assert job["scores"]["oof"] > max(0.8, job["scores"]["floor"] + 0.2), job["scores"]
        assert job["scores"]["test"] > 0.8, job["scores"]
        table = rows_of(job["predictions"]["path"])
        assert table[0] == ["row", "kind", "p_0", "p_1", "p_2"] and len(table) == 31, table[:2]
        house.write("again.npy", grey(images))  # other names, the same bytes
        job = house.wait(house.submit(array_job(epochs=30, cache="use", data={"train": "again.npy"}))["id"])
        assert all(f["from_job"] for f in job["folds"]), job["folds"]
        for i, (pixels, k) in enumerate(images):
            os.makedirs(os.path.join(house.data, "train", CLASSES[k]), exist_ok=True)
            house.write(f"train/{CLASSES[k]}/{i:03}.png", png(pixels))
        for i, (pixels, _) in enumerate(test):
            os.makedirs(os.path.join(house.data, "test"), exist_ok=True)
            house.write(f"test/{i:03}.png", png(pixels))
        spec = job_of(epochs=1)
        spec["data"].update(test="test")
        assert house.wait(house.submit(spec)["id"])["state"] == "SUCCEEDED"
        both = cached_pixels(house)
        assert len(both) == 2 and both[0] == both[1], [len(p) for p in both]


@case("An archive as MNIST's, floats with a table of numbers to learn, and an image that has NaN")
def _():
    with House(slots=2) as house:
        house.start()
        images, test = some_images(30), some_images(4, seed=5)
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, array in [("x_train", grey(images)), ("y_train", labels(images)),
                                ("x_test", grey(test)), ("y_test", labels(test))]:
                archive.writestr(name + ".npy", array)
        house.write("all.npz", packed.getvalue())
        none = {"labels": None, "test_labels": None}
        job = house.wait(house.submit(array_job(epochs=2, data={"train": "all.npz", "test": "all.npz"},
                                                image=none))["id"])
        assert job["state"] == "SUCCEEDED" and job["scores"]["test"] is not None, job
        floats = bytearray(grey(images, scale=255))
        at = len(floats) - 4 * SIZE * SIZE * 3  # the first value of the third image from behind
        floats[at:at + 4] = struct.pack("<f", float("nan"))
        house.write("f.npy", bytes(floats))
        lines = [f"{k + 0.25},{i % 5}" for i, (_, k) in enumerate(images)]
        house.write("y.csv", "kind,other\n" + "\n".join(lines) + "\n")
        house.write("y_test.csv", "other\n" + "\n".join("1" for _ in test) + "\n")
        house.write("f_test.npy", grey(test, scale=255))
        job = house.wait(house.submit(array_job(
            epochs=30, task={"type": "regression"}, data={"train": "f.npy", "test": "f_test.npy"},
            image={"labels": "y.csv", "test_labels": "y_test.csv"}))["id"])
        house.check_folds_answer(job)
        assert job["train_rows"] == 89, job
        assert any("f.npy: 1 of 90 images cannot be read: image 87 has no finite value at y 0, x 0" in w
                   for w in job["warnings"]), job["warnings"]
        assert len(rows_of(job["predictions"]["path"])) == 13


@case("Arrays that are no images, or do not fit their labels, are refused, naming what is wrong")
def _():
    with House(slots=1) as house:
        house.start()
        images, test = some_images(5), some_images(2, seed=5)
        write_arrays(house, images, test)
        house.write("flat.npy", npy("|u1", (15, 144), [0] * 15 * 144))
        house.write("axes.npy", npy("|u1", (15, 3, 12, 3), [0] * 15 * 108))
        house.write("short.npy", npy("<i8", (14,), list(range(14))))
        house.write("wide.npy", grey(images, scale=1))
        with open(os.path.join(house.data, "x.npy"), "rb") as f:
            house.write("cut.npy", f.read()[:-100])
        house.write("t.csv", "file,kind\n1.png,a\n2.png,b\n")
        for changes, words in [
                ({"data": {"train": "flat.npy"}}, ["data.train", "(15, 144)", "[N, H, W, C]"]),
                ({"data": {"train": "axes.npy"}}, ["data.train", "data.image.layout"]),
                ({"image": {"labels": None}}, ["data.train", "data.image.labels"]),
                ({"image": {"labels": "none.npy"}}, ["data.image.labels", "none.npy"]),
                ({"image": {"black": 3}}, ["data.image.white", "missing"]),
                ({"data": {"train": "t.csv"}}, ["no array", "data.image.labels"])]:
            result = house.cli("submit", "-f", house.write_spec(array_job(**changes)))
            text = result.stdout + result.stderr
            assert result.returncode in (1, 2) and all(w in text for w in words), (words, result)
        for changes, words in [
                ({"image": {"labels": "short.npy"}}, ["14 rows of labels", "15 images"]),
                ({"data": {"train": "cut.npy"}}, ["cut.npy", "not a complete NPY file"]),
                ({"data": {"train": "wide.npy"}}, ["15 of 15 images", "image 0 has", "0 to 1"])]:
            job = house.wait(house.submit(array_job(**changes))["id"])
            assert (job["state"], job["end_reason"]) == ("FAILED", "DATA_ERROR"), job
            assert all(w in job["end_message"] for w in words), (words, job["end_message"])


main()
