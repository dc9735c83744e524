"""Images with masks: a U-Net of images learns them, and masks answer as PNG files."""
import os
import random

from tests.cases import case, main
from tests.e2e.harness import House, rows_of, sha256
from tests.e2e.images import png, read_png


def disc(chance, height, width):
    """A noisy image in colour with a disc that is brighter and one that is redder; and its mask, 0 to 2."""
    discs = [(chance.uniform(4, height - 4), chance.uniform(4, width - 4), chance.uniform(3, 6)) for _ in range(2)]
    image, mask = [], []
    for y in range(height):
        line, labels = [], []
        for x in range(width):
            inside = [(y - a) ** 2 + (x - b) ** 2 <= r * r for a, b, r in discs]
            label = 1 if inside[0] else 2 if inside[1] else 0
            for c in range(3):
                bright = 60 if label == 1 or (label == 2 and c == 0) else 0
                line.append(max(0, min(255, int(80 + bright + chance.gauss(0, 20)))))
            labels.append(label)
        image.append(line)
        mask.append(labels)
    return image, mask


def write_pairs(house, classes, train=16, test=4):
    """train.csv and test.csv with images of several sizes, and masks of 0 and 255 or of classes."""
    chance = random.Random(5)
    masks = {}
    os.makedirs(os.path.join(house.data, "pairs"), exist_ok=True)
    for table, count in (("train", train), ("test", test)):
        lines = ["id,image,mask"]
        for i in range(count):
            name = f"{table}{i}"
            image, mask = disc(chance, 28 + 4 * (i % 3), 40 - 6 * (i % 2))
            masks[name] = mask if classes == 2 else [[int(v > 0) for v in line] for line in mask]
            house.write(f"pairs/{name}.png", png(image, channels=3))
            shown = [[v * (1 if classes == 2 else 255) for v in line] for line in masks[name]]
            house.write(f"pairs/{name}_mask.png", png(shown))
            lines.append(f"{name},pairs/{name}.png,pairs/{name}_mask.png")
        house.write(f"{table}.csv", "\n".join(lines) + "\n")
    return masks


def spec(house, volume, **changes):
    return {"api": "v1", "name": "discs", "cache": "off",
            "data": {"train": "train.csv", "test": "test.csv", "id": "id", "folds": 2, "seed": 7, "volume": volume},
            "model": {"unet3d": {"base": 8, "levels": 2, **changes}},
            "train": {"epochs": 20, "batch": 2, "patience": 0, "learning_rate": 0.005, "checkpoint_every": "300ms",
                      "precision": "fp32",
                      "patches": {"size": [16, 16, 16], "per_volume": 8}},
            "budget": {"time": "90s"}}


def dice_of(mask, wanted, classes):
    """The mean over the classes that the mask or the answer has."""
    found = []
    for c in range(1, classes + 1):
        a = [v == c for line in mask for v in line]
        b = [v == c for line in wanted for v in line]
        if any(a) or any(b):
            found.append(2 * sum(x and y for x, y in zip(a, b)) / (sum(a) + sum(b)))
    return sum(found) / len(found)


@case("PNG masks of one class and of two answer; a killed fold goes on; later images are answered alike", limit_s=240)
def _():
    with House(slots=2) as house:
        house.start()
        for classes, volume, changes in ((1, {}, {}),
                                         (2, {"classes": ["bright", "red"]}, {"norm": "instance", "levels": 3,
                                                                              "deep_supervision": True})):
            wanted = write_pairs(house, classes)
            job = house.submit(spec(house, volume, **changes))
            house.until_saved(job["id"], 60)
            house.kill_running("trainrank")
            job = house.wait(job["id"], 100)
            assert job["state"] == "SUCCEEDED", job
            house.check_resumed(job)
            scores = job["scores"]
            assert scores["floor"] + 0.05 < scores["oof"] and scores["floor"] + 0.05 < scores["test"], scores
            folder = os.path.join(os.path.dirname(job["predictions"]["path"]), "masks")
            names = sorted(f"test{i}.png" for i in range(4))
            assert sorted(os.listdir(folder)) == names, os.listdir(folder)
            dice = []
            for name, share, *_ in rows_of(job["predictions"]["path"])[1:]:
                mask = read_png(os.path.join(folder, name + ".png"))
                assert [len(mask), len(mask[0])] == [len(wanted[name]), len(wanted[name][0])], name
                pixels = [v for line in mask for v in line]
                assert set(pixels) <= set(range(classes + 1)), set(pixels)
                assert abs(sum(v > 0 for v in pixels) / len(pixels) - float(share)) < 1e-5, (name, share)
                dice.append(dice_of(mask, wanted[name], classes))
            assert abs(sum(dice) / 4 - scores["test"]) < 1e-6, (dice, scores)
            later = house.json("predict", job["id"], "--data", os.path.join(house.data, "test.csv"))
            assert later["state"] == "SUCCEEDED", later
            again = os.path.join(os.path.dirname(later["predictions"]["path"]), "masks")
            assert {n: sha256(os.path.join(again, n)) for n in names} == {
                n: sha256(os.path.join(folder, n)) for n in names}


@case("A mask in colour, or of another size, is named and left out")
def _():
    with House(slots=1) as house:
        house.start()
        write_pairs(house, 1)
        short = spec(house, {})
        short["train"]["epochs"] = 1
        house.write("pairs/train3_mask.png", png([[0] * 120] * 28, channels=3))
        job = house.wait(house.submit(short)["id"], 60)
        assert job["state"] == "SUCCEEDED", job
        assert any("train3_mask.png: a mask of 1 x 28 x 40 x 3 channels voxels" in w and "1 of 16" in w
                   for w in job["warnings"]), job["warnings"]
        house.write("pairs/train5_mask.png", png([[0] * 12] * 12))
        job = house.wait(house.submit(short)["id"], 60)
        assert job["end_reason"] == "DATA_ERROR" and "2 of 16 volumes" in job["end_message"], job


main()
