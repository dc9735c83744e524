"""Fine-tuning image networks from folders as timm saves them, on the standalone daemon."""
import glob
import json
import os

from tests.cases import case, main
from tests.e2e.harness import House
from tests.e2e.images import job_of, write_images
from tests.e2e.timm_folders import DEVIATION, MEAN, write_folder

SIZE = 16


def spec_of(folder="resnet18", epochs=1, architecture="resnet18", **image):
    spec = job_of(epochs=epochs, model={"cnn": {"architecture": architecture}, "pretrained": {"folder": folder}})
    spec["data"]["image"] = image
    del spec["train"]["learning_rate"]
    return spec


@case("A ResNet from timm's folder is fine-tuned at its size and scale of pixels, and predicts later images", limit_s=150)
def _():
    with House(slots=1) as house:
        house.start()
        write_images(house, each=40, test=6)
        write_folder(house)
        job = house.submit(spec_of(epochs=10), "--wait")
        assert job["state"] == "SUCCEEDED" and job["predictions"]["folds"], job
        # Not the last layer, which has ten classes in the file and three here.
        told = [d for d in job["decisions"] if d["rule"] == "pretrained"]
        assert [d["to"] for d in told] == ["100/102 parameters"] * 2, told
        assert any("fc.weight is [10, 512] in the file, but [3, 512]" in w for w in job["warnings"]), job["warnings"]
        assert not any("num_batches_tracked" in w for w in job["warnings"]), job["warnings"]
        spec = json.loads(house.cli("plan", house.write_spec(spec_of()), "-o", "json").stdout)["resolved"]
        assert spec["data"]["image"]["size"] == SIZE and spec["train"]["learning_rate"] == 1e-4, spec
        assert spec["train"]["decay_norms"] is False, spec
        scales = []
        for path in glob.glob(os.path.join(house.results(job["id"]), "attempts", "*", "model.json")):
            with open(path) as f:
                scales.append(json.load(f)["model"].get("image"))
        image, *others = scales
        assert others == [image], scales
        for mean, scale, m, d in zip(image["mean"], image["inverse_scale"], MEAN, DEVIATION):
            assert abs(mean - 255 * m) < 1e-3 and abs(scale * 255 * d - 1) < 1e-5, image
        later = house.json("predict", job["id"], "--data", os.path.join(house.data, "test.csv"))
        assert later["state"] == "SUCCEEDED", later


@case("What does not fit the folder is refused: another network, grey images, a file without a part of the body")
def _():
    with House(slots=1) as house:
        house.start()
        write_images(house, each=12, test=6)
        write_folder(house)
        other = spec_of()
        other["model"]["cnn"]["architecture"] = "resnet34"
        ran = house.cli("submit", "-f", house.write_spec(other))
        assert ran.returncode != 0, ran
        assert 'architecture is "resnet18", and model.cnn.architecture says resnet34' in ran.stderr, ran.stderr
        ran = house.cli("submit", "-f", house.write_spec(spec_of(channels=1)))
        assert ran.returncode != 0 and "sees images in colour, and data.image.channels is 1" in ran.stderr, ran.stderr
        write_folder(house, name="torn", without=("layer3.0.bn2.running_var",))
        job = house.submit(spec_of("torn"), "--wait", code=1)
        assert job["state"] == "FAILED", job
        assert '"layer3.0.bn2.running_var" is not in the file' in job["end_message"], job["end_message"]


def fine_tune(house, architecture, size, epochs, parameters, last_layer, thaw_layers):
    """The last layer alone, then all by rates that fall towards the input, at once or layer by layer, with a kill in
    between."""
    write_folder(house, architecture, size=224)
    spec = spec_of(architecture, epochs, architecture, size=size)
    spec["train"].update({"freeze": {"epochs": 2, "thaw_layers": thaw_layers}, "layer_decay": 0.8,
                          "checkpoint_every": "500ms", "augment": {"flip": True}})
    spec["budget"] = {"time": "90s"}
    job = house.submit(spec)

    house.until(job["id"], "all layers trained", lambda j: any(d["rule"] == "freeze" for d in j["decisions"]))
    house.until_saved(job["id"])
    house.kill_running("trainrank")
    done = house.wait(job["id"], 100)
    # Weights that were never trained learn little in this time: the floor may be better.
    assert done["state"] == "SUCCEEDED" and any(f["progress"]["done"] > 2 for f in done["folds"]), done
    assert any(a["end_reason"] == "RANK_DIED" for a in done["attempts"]), done["attempts"]
    house.check_resumed(done)
    told = {d["to"] for d in done["decisions"] if d["rule"] == "pretrained"}
    assert told == {parameters}, told
    rates = [(p["epoch"], p["value"]) for p in house.json("metrics", job["id"])["points"] if p["name"] == "learning_rate"]
    thaws = [d["to"] for d in done["decisions"] if d["rule"] == "freeze"]
    if thaw_layers > 0:
        assert any(f"the last layer and {thaw_layers} of " in to for to in thaws), thaws
        assert any(f"the last layer and {2 * thaw_layers} of " in to for to in thaws), thaws
    else:
        assert set(thaws) == {"all layers are trained"}, thaws
    assert all(rate == 0.001 if epoch < 2 else rate <= 1e-4 for epoch, rate in rates if epoch != 2), rates
    assert any(epoch > 2 and rate > 0 for epoch, rate in rates), rates
    assert any(f"{last_layer}.weight is [10, " in w for w in done["warnings"]), done["warnings"]


# Enough epochs to be killed in the middle of them.
for architecture, size, epochs, parameters, last_layer, thaw_layers in (
        ("resnet18", 16, 12, "100/102 parameters", "fc", 3),
        ("vit_tiny_patch16_224", 32, 24, "150/152 parameters", "head", 4),
        ("convnext_atto", 32, 30, "126/128 parameters", "head.fc", 0),
        ("efficientnet_b0", 32, 14, "309/311 parameters", "classifier", 0)):
    @case(f"{architecture} from a folder: the last layer first, then all of it, through a kill", limit_s=120)
    def _(architecture=architecture, size=size, epochs=epochs, parameters=parameters, last_layer=last_layer,
          thaw_layers=thaw_layers):
        with House(slots=1) as house:
            house.start()
            write_images(house, each=40, test=6)
            fine_tune(house, architecture, size, epochs, parameters, last_layer, thaw_layers)


@case("A fixed body gives a whole answer soon: each image passes it once, whatever the epochs", limit_s=150)
def _():
    with House(slots=1) as house:
        house.start()
        write_images(house, each=40, test=6)
        write_folder(house)
        spec = spec_of(epochs=8)
        spec["train"]["freeze"] = {"epochs": 8}
        spec["train"]["patience"] = 0
        job = house.submit(spec, "--wait")
        assert (job["state"], job["quality"]) == ("SUCCEEDED", "FULL"), job
        assert not any(d["rule"] == "freeze" for d in job["decisions"]), job["decisions"]
        refused = spec_of()
        refused["train"]["freeze"] = {"epochs": 1}
        del refused["model"]["pretrained"]
        ran = house.cli("submit", "-f", house.write_spec(refused))
        assert ran.returncode != 0 and "what starts at random cannot stay as it is" in ran.stderr, ran.stderr


main()
