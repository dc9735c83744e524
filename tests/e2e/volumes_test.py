"""Volumes: trained by a gang that loses a Rank, predicted as masks; files that are wrong are named."""
import glob
import gzip
import os
import struct
import zipfile

from tests.cases import case, main
from tests.e2e.harness import House, rows_of
from tests.e2e.volumes import SHAPE, SPACING, SROW, as_nifti, make_volumes, npy, spec, turn, turned_back


@case("NIfTI volumes are answered by NIfTI masks that lie where they do")
def _():
    with House(slots=2) as house:
        house.start()
        make_volumes(house)
        as_nifti(house)
        job = house.wait(house.submit(spec(house))["id"], 100)
        assert job["state"] == "SUCCEEDED", job
        scores = job["scores"]
        assert scores["floor"] < 0.5 < scores["oof"] and scores["test"] > scores["floor"], scores
        table = rows_of(job["predictions"]["path"])
        masks = os.path.join(os.path.dirname(job["predictions"]["path"]), "masks")
        assert sorted(os.listdir(masks)) == ["ct008.nii.gz", "ct009.nii.gz"], os.listdir(masks)
        for name, share in table[1:]:
            with gzip.open(os.path.join(masks, name + ".nii.gz")) as f:
                mask = f.read()
            assert struct.unpack_from("<4h", mask, 40) == (3, *reversed(SHAPE)), mask[40:56]
            assert struct.unpack_from("<3f", mask, 80) == SPACING, mask[76:92]
            assert struct.unpack_from("<12f", mask, 280) == SROW, mask[280:328]
            voxels = mask[352:]
            assert len(voxels) == 8 * 16 * 16 and abs(sum(voxels) / len(voxels) - float(share)) < 1e-5, share


@case("Volumes of other orientations are learnt as if they had the same, and masks lie over their files")
def _():
    with House(slots=2) as house:
        house.start()
        make_volumes(house)
        as_nifti(house)
        # The floor answers, which does not depend on how much is trained.
        changes = {"train": {**spec(house)["train"], "epochs": 1, "learning_rate": 1e-9}}

        def answered():
            job = house.wait(house.submit(spec(house, **changes))["id"], 100)
            assert (job["state"], job["quality"]) == ("SUCCEEDED", "FLOOR"), job
            masks = os.path.join(os.path.dirname(job["predictions"]["path"]), "masks")
            found = {}
            for name in ("ct008", "ct009"):
                with gzip.open(os.path.join(masks, name + ".nii.gz")) as f:
                    found[name] = f.read()
            return job, found
        before, masks = answered()
        turn(house, ("ct001", "ct004", "ct009"))
        after, turned_masks = answered()
        assert after["scores"] == before["scores"] and 0 < after["scores"]["test"], (after["scores"], before["scores"])
        assert rows_of(after["predictions"]["path"]) == rows_of(before["predictions"]["path"])
        assert turned_masks["ct008"] == masks["ct008"]
        with gzip.open(os.path.join(house.data, "volumes", "ct009.nii.gz")) as f:
            header = f.read(352)
        mask = turned_masks["ct009"]
        for at, size in ((40, 16), (80, 12), (252, 76)):  # extents, spacing, place
            assert mask[at:at + size] == header[at:at + size], (mask[at:at + size], header[at:at + size])
        assert turned_back(mask) == masks["ct009"][352:] and any(mask[352:])


def largest_component(voxels):
    """The number of voxels of the largest component, and that of all foreground."""
    depth, height, width = SHAPE
    left = {i for i, v in enumerate(voxels) if v}
    all_voxels, largest = len(left), 0
    while left:
        found = [left.pop()]
        for at in found:
            z, y, x = at // (height * width), at // width % height, at % width
            near = {(a * height + b) * width + c
                    for a in range(max(0, z - 1), min(depth, z + 2)) for b in range(max(0, y - 1), min(height, y + 2))
                    for c in range(max(0, x - 1), min(width, x + 2))} & left
            left -= near
            found += near
        largest = max(largest, len(found))
    return largest, all_voxels


@case("Volumes of other spacings are resampled, and masks of one component answer on the grids of their files", limit_s=150)
def _():
    with House(slots=2) as house:
        house.start()
        make_volumes(house)
        as_nifti(house, deeper=("ct001", "ct003", "ct009"))
        data = {**spec(house)["data"], "volume": {"components": "largest", "spacing": "auto"}}
        job = house.wait(house.submit(spec(house, data=data))["id"], 100)
        assert job["state"] == "SUCCEEDED", job
        assert any(w.startswith("data.volume.spacing: 2.5 x 0.5 x 0.75 mm, the median") for w in job["warnings"]), job["warnings"]
        scores = job["scores"]
        assert 0 < scores["floor"] < scores["oof"] and scores["floor"] < scores["test"], scores
        for path in glob.glob(os.path.join(house.results(job["id"]), "attempts", "*", "test.npy")):
            with open(path, "rb") as f:
                header, _ = npy(f.read())
            assert header["shape"] == (3 * 8 * 16 * 16, 1), header  # ct009 is twice as deep for the network
        dice = []
        for name in ("ct008", "ct009"):
            masks = os.path.join(os.path.dirname(job["predictions"]["path"]), "masks")
            with gzip.open(os.path.join(masks, name + ".nii.gz")) as f:
                mask = f.read()
            assert struct.unpack_from("<4h", mask, 40) == (3, *reversed(SHAPE)), mask[40:56]
            assert struct.unpack_from("<f", mask, 88) == (SPACING[2] * (2 if name == "ct009" else 1),), mask[76:92]
            with gzip.open(os.path.join(house.data, "volumes", name + "_mask.nii.gz")) as f:
                wanted = f.read()[352:]
            voxels = mask[352:]
            largest, all_voxels = largest_component(voxels)
            assert largest == all_voxels > 0, (largest, all_voxels)
            both = sum(v and w for v, w in zip(voxels, wanted))
            dice.append(2 * both / (sum(voxels) + sum(wanted)))
        assert abs(sum(dice) / 2 - scores["test"]) < 1e-6, (dice, scores)
        # Without a header there is no spacing.
        make_volumes(house)
        job = house.wait(house.submit(spec(house, data=data))["id"], 60)
        assert job["state"] == "FAILED" and job["end_reason"] == "DATA_ERROR", job
        assert "ct000.npy: not a NIfTI file, so its spacing is unknown" in job["end_message"], job["end_message"]


@case("Two Ranks train a U-Net; one is killed, the fold goes on, and masks of the right shape answer", limit_s=150)
def _():
    with House(slots=2) as house:
        house.start()
        make_volumes(house)
        job = house.submit(spec(house))
        house.until_saved(job["id"], 60)
        house.kill(min(house.processes("trainrank")))
        job = house.wait(job["id"], 100)
        assert job["state"] == "SUCCEEDED", job
        assert any(a["end_reason"] == "RANK_DIED" for a in job["attempts"]), job["attempts"]
        house.check_resumed(job)
        scores = job["scores"]
        assert scores["metric"] == "dice", scores
        assert scores["floor"] < 0.5 < scores["oof"] and scores["test"] > scores["floor"], scores
        table = rows_of(job["predictions"]["path"])
        assert table[0] == ["id", "foreground"] and len(table) == 3, table
        with zipfile.ZipFile(os.path.join(os.path.dirname(job["predictions"]["path"]), "predictions.zip")) as z:
            names = z.namelist()
            assert names == ["predictions.csv", "masks/ct008.npy", "masks/ct009.npy"], names
            for row in table[1:]:
                header, voxels = npy(z.read(f"masks/{row[0]}.npy"))
                assert header["shape"] == SHAPE and header["descr"] == "|u1", header
                assert set(voxels) <= {0, 1}, set(voxels)
                assert abs(sum(voxels) / len(voxels) - float(row[1])) < 1e-5, row


@case("The norm of each sample, outputs of lower levels and mirror images: a killed fold goes on, and its answers are good",
      limit_s=150)
def _():
    with House(slots=2) as house:
        house.start()
        make_volumes(house)
        network = {"base": 4, "levels": 3, "norm": "instance", "deep_supervision": True, "mirror": ["height", "width"]}
        train = {**spec(house)["train"], "epochs": 30}
        job = house.submit(spec(house, model={"unet3d": network}, train=train))
        house.until_saved(job["id"], 60)
        house.kill(min(house.processes("trainrank")))
        job = house.wait(job["id"], 100)
        assert job["state"] == "SUCCEEDED", job
        house.check_resumed(job)
        scores = job["scores"]
        assert scores["floor"] < 0.5 < scores["oof"] and scores["test"] > scores["floor"], scores


@case("Two classes: masks of 0 to 2, shares of each, the folds' mean, a rerun takes the folds over", limit_s=150)
def _():
    with House(slots=2) as house:
        house.start()
        make_volumes(house, volumes=10, classes=2)
        data = {**spec(house)["data"], "volume": {"classes": ["bright", "dark"]}}
        train = {**spec(house)["train"], "augment": {"mirror": ["depth", "height", "width"], "intensity": 0.1, "rotate": 20, "scale": 0.1,
                                                  "elastic": 0.5}}
        changes = {"data": data, "train": train, "cache": "use"}
        job = house.wait(house.submit(spec(house, **changes))["id"], 100)
        assert job["state"] == "SUCCEEDED", job
        scores = job["scores"]
        assert 0 < scores["floor"] < scores["oof"] - 0.1 and scores["floor"] < scores["test"] - 0.1, scores
        folder = os.path.dirname(job["predictions"]["path"])
        table = rows_of(job["predictions"]["path"])
        assert table[0] == ["id", "foreground", "bright", "dark"] and len(table) == 3, table
        # The mean of both folds' probabilities, and the largest one of each voxel.
        folds = []
        for path in glob.glob(os.path.join(house.results(job["id"]), "attempts", "*", "test.npy")):
            with open(path, "rb") as f:
                header, values = npy(f.read())
            assert header["shape"] == (2 * 8 * 16 * 16, 3) and header["descr"] == "<f4", header
            folds.append(struct.unpack(f"<{len(values) // 4}f", values))
        assert len(folds) == 2, folds
        dice = []
        for row, (name, *shares) in enumerate(table[1:]):
            with open(os.path.join(folder, "masks", name + ".npy"), "rb") as f:
                header, voxels = npy(f.read())
            assert header["shape"] == SHAPE and header["descr"] == "|u1", header
            size = len(voxels)
            for i in range(0, size, 7):
                at = (row * size + i) * 3
                mean = [(folds[0][at + c] + folds[1][at + c]) / 2 for c in range(3)]
                assert abs(sum(mean) - 1) < 1e-4, mean
                assert mean[voxels[i]] >= max(mean) - 1e-6, (mean, voxels[i])
            for share, labels in zip(shares, ({1, 2}, {1}, {2})):
                assert abs(sum(v in labels for v in voxels) / size - float(share)) < 1e-5, (name, shares)
            with open(os.path.join(house.data, "volumes", name + "_mask.npy"), "rb") as f:
                wanted = npy(f.read())[1]
            by_class = []
            for c in (1, 2):
                both = sum(v == c and w == c for v, w in zip(voxels, wanted))
                by_class.append(2 * both / (voxels.count(c) + wanted.count(c)))
            dice.append(sum(by_class) / 2)
        assert abs(sum(dice) / 2 - scores["test"]) < 1e-6, (dice, scores)
        again = house.wait(house.submit(spec(house, **changes))["id"], 60)
        assert again["state"] == "SUCCEEDED" and again["scores"] == scores, again
        assert all(f["reused"] for f in again["folds"]), again["folds"]
        # A value that is no class.
        path = os.path.join(house.data, "volumes", "ct003_mask.npy")
        with open(path, "r+b") as f:
            f.seek(-5, os.SEEK_END)
            f.write(b"\x03")
        job = house.submit(spec(house, **changes))
        house.until(job["id"], "it warns of the mask", lambda j: any(
            "ct003_mask.npy: the mask's voxel at z 7, y 15, x 11 is 3; a mask of 2 classes has 0 to 2" in w
            for w in j["warnings"]))
        house.json("cancel", job["id"])


@case("A volume that is cut is named and left out; a test volume that is cut fails the Job")
def _():
    with House(slots=1) as house:
        house.start()
        make_volumes(house)

        def cut(name):
            path = os.path.join(house.data, "volumes", name)
            os.truncate(path, os.path.getsize(path) // 2)
        cut("ct003.npy")
        short = {**spec(house)["train"], "epochs": 1}
        job = house.wait(house.submit(spec(house, train=short, resources={"slots": 1}))["id"])
        assert job["state"] == "SUCCEEDED", job
        assert any("ct003.npy" in w and "1 of 8 volumes" in w for w in job["warnings"]), job["warnings"]
        cut("ct009.npy")
        job = house.wait(house.submit(spec(house, train=short, resources={"slots": 1}))["id"])
        assert job["state"] == "FAILED" and job["end_reason"] == "DATA_ERROR", job
        assert "ct009.npy" in job["end_message"], job["end_message"]


@case("What does not fit volumes is refused with its field")
def _():
    with House(slots=1) as house:
        house.start()
        make_volumes(house, volumes=2, test=1)
        wrong = spec(house)
        wrong["train"]["patches"] = {"size": [8, 15, 16]}
        result = house.cli("submit", "-f", house.write_spec(wrong))
        assert result.returncode != 0 and "train.patches.size[1]" in result.stderr, result.stderr
        wrong = spec(house)
        wrong["data"]["volume"] = {"image": "picture"}
        result = house.cli("submit", "-f", house.write_spec(wrong))
        assert result.returncode != 0 and "data.volume.image" in result.stderr, result.stderr
        wrong = spec(house)
        wrong["data"]["volume"] = {"spacing": [1, 0, 1]}
        result = house.cli("submit", "-f", house.write_spec(wrong))
        assert result.returncode != 0 and "data.volume.spacing[1] '0' is below" in result.stderr, result.stderr
        wrong = spec(house)
        wrong["data"]["volume"] = {"spacing": [1, 1]}
        result = house.cli("submit", "-f", house.write_spec(wrong))
        assert result.returncode != 0 and "data.volume.spacing has 2 numbers" in result.stderr, result.stderr
        wrong = spec(house)
        wrong["train"]["augment"] = {"crop": 0.1}
        result = house.cli("submit", "-f", house.write_spec(wrong))
        assert result.returncode != 0 and "train.augment.crop is of images" in result.stderr, result.stderr
        wrong = spec(house)
        wrong["model"]["unet3d"] = {"mirror": ["depth", "depth"]}
        result = house.cli("submit", "-f", house.write_spec(wrong))
        assert result.returncode != 0 and "model.unet3d.mirror[1]" in result.stderr, result.stderr


main()
