"""Volumes that come later, predicted with the models of a Job."""
import os
import shutil

from tests.cases import case, main
from tests.e2e.harness import House, moment, rows_of, sha256
from tests.e2e.volumes import as_nifti, make_volumes, spec


def trained(house, **changes):
    job = house.wait(house.submit(spec(house, **changes))["id"], 100)
    assert job["state"] == "SUCCEEDED", job
    # All that prediction needs lies beside the checkpoints.
    shutil.rmtree(os.path.join(house.state, "cache"))
    os.remove(os.path.join(house.data, "train.csv"))
    return job


def predict(house, job, name, *arguments, code=0):
    return house.json("predict", job["id"], "--data", os.path.join(house.data, name), *arguments, code=code)


def masks_of(job):
    folder = os.path.join(os.path.dirname(job["predictions"]["path"]), "masks")
    return {name: sha256(os.path.join(folder, name)) for name in os.listdir(folder)}


def floor_masks(house):
    """The digests of the masks of the floor, of each volume."""
    make_volumes(house)
    house.write("all.csv", "id,image\n" + "".join(f"{i},volumes/ct{i:03}.npy\n" for i in range(10)))
    changes = {"data": {**spec(house)["data"], "test": "all.csv"}, "train": short(house, epochs=1, learning_rate=1e-9)}
    job = house.wait(house.submit(spec(house, **changes))["id"], 60)
    assert job["quality"] == "FLOOR", job
    masks = masks_of(job)
    return [masks[f"{i}.npy"] for i in range(10)]


def half():
    """bf16, where the processor multiplies it; elsewhere later volumes would be answered in float32."""
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        return "bf16" if "avx512_bf16" in f.read() else "fp32"


def short(house, **changes):
    return {**spec(house)["train"], "epochs": 3, **changes}


@case("A Job's own test volumes give its own masks again, byte by byte, of several classes and other spacings",
      limit_s=200)
def _():
    with House(slots=2) as house:
        house.start()
        for classes, volume, precision, deeper in (
                (2, {"classes": ["bright", "dark"], "components": "auto"}, "fp32", ()),
                (1, {"components": "largest", "spacing": "auto"}, half(), ("ct001", "ct003", "ct009"))):
            make_volumes(house, classes=classes)
            if deeper:
                as_nifti(house, deeper)
            data = {**spec(house)["data"], "volume": volume}
            job = trained(house, data=data, train=short(house, epochs=5, precision=precision))
            again = predict(house, job, "test.csv")
            assert (again["state"], again["quality"]) == ("SUCCEEDED", job["quality"]), again
            assert sha256(again["predictions"]["path"]) == job["predictions"]["sha256"], again
            assert masks_of(again) == masks_of(job), (masks_of(again), masks_of(job))
            assert again["scores"]["oof"] == job["scores"]["oof"], again["scores"]
            attempts = os.path.join(house.results(again["id"]), "attempts")
            left = [f for _, _, files in os.walk(attempts) for f in files]
            assert not any(f.startswith("rows.bin") or f.endswith(".npy") for f in left), left
            # A table of other names, without masks, and in another form.
            house.write("later.csv", "id,image\nfirst,volumes/" + os.path.basename(
                rows_of(os.path.join(house.data, "test.csv"))[1][1]) + "\n")
            asked = {"api": "v1", "name": "later", "predict": {"from": job["id"], "data": "later.csv"},
                     "predictions": {"masks": "tiff" if classes == 2 else "png"}, "budget": {"time": "60s"}}
            later = house.wait(house.submit(asked)["id"], 60)
            # A PNG has one slice, so NPY stands in for it.
            assert list(masks_of(later)) == ["first.tiff" if classes == 2 else "first.npy"], masks_of(later)
            table, own = rows_of(later["predictions"]["path"]), rows_of(job["predictions"]["path"])
            assert table[1][0] == "first" and table[1][1:] == own[1][1:], (table, own)


@case("A floor that answers predicts later volumes like its own test volumes", limit_s=120)
def _():
    with House(slots=2) as house:
        house.start()
        make_volumes(house)
        job = trained(house, train=short(house, epochs=1, learning_rate=1e-9))
        assert job["quality"] == "FLOOR", job
        again = predict(house, job, "test.csv")
        assert (again["state"], again["quality"]) == ("SUCCEEDED", "FLOOR"), again
        assert masks_of(again) == masks_of(job), (masks_of(again), masks_of(job))
        assert again["scores"]["oof"] == job["scores"]["oof"], again["scores"]


def lasting(house, job, least_s):
    """The rows of a table whose volumes take so long to predict on this machine, and the seconds."""
    rows, took = 20, 0
    while took < least_s:
        rows *= 2
        house.write("many.csv", "id,image\n" + "".join(f"r{i},volumes/ct{i % 10:03}.npy\n" for i in range(rows)))
        whole = predict(house, job, "many.csv")
        assert len(whole["predictions"]["folds"]) == 2 and len(masks_of(whole)) == rows, whole
        took = moment(whole["finished_at"]) - moment(whole["started_at"])
    return rows, took


@case("Too little time for a model still gives a mask for each volume before the deadline", limit_s=250)
def _():
    with House(slots=2) as house:
        house.start()
        make_volumes(house)
        job = trained(house, train=short(house, epochs=5), model={"unet3d": {"base": 8, "levels": 2}})
        assert len(job["predictions"]["folds"]) == 2, job
        rows, took = lasting(house, job, 12)
        # The time ends while models predict: the mean of those that are done, or a part of one.
        short_of_time = predict(house, job, "many.csv", "--budget", f"{0.6 * took:.1f}s")
        assert short_of_time["state"] == "SUCCEEDED" and short_of_time["quality"] in ("DEGRADED", "FLOOR"), short_of_time
        assert moment(short_of_time["finished_at"]) <= moment(short_of_time["deadline"]), short_of_time
        assert len(masks_of(short_of_time)) == rows and short_of_time["scores"]["oof"] is None, short_of_time
        assert any(d["rule"] == "predict" and "time is up" in d["cause"] for d in short_of_time["decisions"]), short_of_time

        # Told to answer before one model is through: voxels that it has not reached get the floor's answer.
        def asked(name, *flags):
            many = os.path.join(house.data, "many.csv")
            return house.finish_a_prediction(job["id"], many, name, "--timeout", "90s", *flags, least_bytes=50_000)

        part = asked("part")
        assert (part["state"], part["quality"]) == ("SUCCEEDED", "FLOOR"), part
        said = [d for d in part["decisions"] if d["rule"] == "predict"]
        assert said and "and the floor's answer for the others" in said[0]["to"], part["decisions"]
        masks = masks_of(part)
        assert len(masks) == rows, masks
        floor = floor_masks(house)
        last = f"r{rows - 1}.npy"
        assert masks[last] == floor[(rows - 1) % 10], (masks[last], floor)
        two = asked("two", "--min-members", "2")
        assert two["state"] == "FAILED" and "predict.min_members is 2" in two["end_message"], two


@case("What cannot be predicted is refused, or ends the Job, with its name", limit_s=150)
def _():
    with House(slots=2) as house:
        house.start()
        make_volumes(house)
        job = trained(house, train=short(house))
        house.write("other.csv", "id,picture\nfirst,volumes/ct008.npy\n")
        result = house.cli("predict", job["id"], "--data", os.path.join(house.data, "other.csv"))
        assert result.returncode != 0, result
        assert "predict.data: the later file has no column 'image'" in result.stderr, result.stderr
        result = house.cli("predict", job["id"], "--rows", os.path.join(house.data, "test.csv"))
        assert result.returncode != 0 and "segments volumes" in result.stderr, result.stderr
        os.truncate(os.path.join(house.data, "volumes", "ct009.npy"), 500)
        failed = predict(house, job, "test.csv", code=1)
        assert failed["end_reason"] == "DATA_ERROR" and "ct009.npy" in failed["end_message"], failed
        for name, end in (("volumes/none.npy", "none.npy"), ("../outside.npy", "is not a file below the folder")):
            house.write("later.csv", f"id,image\nfirst,{name}\n")
            failed = predict(house, job, "later.csv", code=1)
            assert failed["end_reason"] == "DATA_ERROR" and end in failed["end_message"], failed


main()
