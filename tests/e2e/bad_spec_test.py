"""What Submit can see is wrong is refused there, with the place; nothing is stored."""
import os

from tests.cases import case, main
from tests.e2e.harness import House

USAGE = 2  # trainctl's exit code for a spec or a command that is wrong

SPEC = """api: v1
name: tiny
task: {type: classification, metric: accuracy}
data:
  train: train.csv
  test: test.csv
  target: y
model: {mlp: {hidden: [8]}}
train: {epochs: 2}
budget: {time: 20s}
"""
TRAIN = "a,b,y\n" + "".join(f"{i},{i % 7},{'no' if i % 2 else 'yes'}\n" for i in range(60))
TEST = "a,b\n1,2\n3,4\n"


def refuse(house, spec=SPEC, train=TRAIN, test=TEST, says=(), arguments=()):
    """Submits; it must be refused in words that name each of `says`."""
    if train is not None:
        house.write("train.csv", train)
    if test is not None:
        house.write("test.csv", test)
    path = house.write_spec(spec, "job.yaml")
    result = house.cli("submit", "-f", path, *arguments)
    assert result.returncode == USAGE, result
    for word in says:
        assert word in result.stderr, f"{word!r} is not in: {result.stderr}"
    assert house.json("list")["jobs"] == []
    return result.stderr


def house_of():
    return House(standalone=False).start()


@case("The spec of these tests is a good one")
def _():
    with house_of() as house:
        house.write("train.csv", TRAIN)
        house.write("test.csv", TEST)
        job = house.submit(SPEC)
        assert job["state"] == "QUEUED", job


@case("A misspelt key is named with its place and the key that was meant")
def _():
    with house_of() as house:
        refuse(house, SPEC.replace("epochs: 2", "epoch: 2"), says=["job.yaml:9:9", "epoch", "epochs"])
        refuse(house, SPEC.replace("target: y", "traget: y"), says=["job.yaml:7:3", "traget", "target"])
        refuse(house, SPEC + "zebra: 1\n", says=["job.yaml:11:1", "zebra"])


@case("A value of another type is named with its place")
def _():
    with house_of() as house:
        refuse(house, SPEC.replace("epochs: 2", "epochs: two"), says=["job.yaml:9:", "epochs", "two"])
        refuse(house, SPEC.replace("epochs: 2", "epochs: [2]"), says=["job.yaml:9:", "epochs"])
        refuse(house, SPEC.replace("task: {type: classification, metric: accuracy}", "task: 5"),
               says=["job.yaml:3:", "task"])
        refuse(house, SPEC.replace("hidden: [8]", "hidden: 8.5"), says=["hidden"])


@case("A number out of its range, and a word that is none of the known, are named")
def _():
    with house_of() as house:
        refuse(house, SPEC.replace("epochs: 2", "epochs: -1"), says=["epochs", "-1"])
        refuse(house, SPEC.replace("epochs: 2", "epochs: 99999999999999999999"), says=["epochs"])
        refuse(house, SPEC.replace("target: y", "target: y\n  folds: 1"), says=["folds"])
        refuse(house, SPEC.replace("metric: accuracy", "metric: acuracy"), says=["acuracy", "accuracy"])
        refuse(house, SPEC.replace("metric: accuracy", "metric: rmse"), says=["rmse", "classification"])
        refuse(house, SPEC.replace("api: v1", "api: v2"), says=["api", "v1"])


@case("A budget without a unit is asked for one")
def _():
    with house_of() as house:
        refuse(house, SPEC.replace("20s", "20"), says=["job.yaml:10:", "budget", "20s"])
        refuse(house, SPEC.replace("20s", "20 parsecs"), says=["budget", "parsecs"])
        refuse(house, SPEC.replace("20s", "-5s"), says=["budget"])


@case("Broken YAML, an empty spec and a spec that is not there are named")
def _():
    with house_of() as house:
        refuse(house, SPEC + "model: {mlp: [\n", says=["job.yaml:"])
        refuse(house, "", says=["job.yaml"])
        refuse(house, SPEC + "name: again\n", says=["job.yaml:11", "name"])
        result = house.cli("submit", "-f", os.path.join(house.data, "none.yaml"))
        assert result.returncode == USAGE and "none.yaml" in result.stderr, result


@case("A missing key that is needed is named")
def _():
    with house_of() as house:
        refuse(house, SPEC.replace("  target: y\n", ""), says=["data.target"])
        refuse(house, "task: {type: classification}\n", says=["data"])


@case("Data and a budget are a spec: the target tells the task")
def _():
    with house_of() as house:
        house.write("train.csv", TRAIN)
        house.write("test.csv", TEST)
        job = house.submit("data: {train: train.csv, test: test.csv, target: y}\nbudget: {time: 20s}\n")
        assert job["state"] == "QUEUED", job
        assert any("task.type: classification, because the target 'y'" in w for w in job["warnings"]), job["warnings"]


@case("A file that is missing, empty, or only a header is named")
def _():
    with house_of() as house:
        refuse(house, SPEC.replace("train.csv", "nowhere.csv"), says=["nowhere.csv", "data.train"])
        refuse(house, train="", says=["train.csv", "empty"])
        refuse(house, train="a,b,y\n", says=["train.csv", "row"])
        refuse(house, test="", says=["test.csv", "empty"])
        refuse(house, test="a,b\n", says=["test.csv", "row"])
        os.mkdir(os.path.join(house.data, "folder"))
        refuse(house, SPEC.replace("train.csv", "folder"), says=["folder"])


@case("A ragged row is named by row and column")
def _():
    with house_of() as house:
        text = refuse(house, train=TRAIN.replace("\n4,4,yes\n", "\n4,4\n"), says=["train.csv", "column"])
        assert "row 5" in text or "line 6" in text or "row 6" in text, text
        refuse(house, train=TRAIN.replace("\n4,4,yes\n", "\n4,4,yes,9,9\n"), says=["train.csv"])


@case("A target that is no column is named, with one that it may be")
def _():
    with house_of() as house:
        refuse(house, SPEC.replace("target: y", "target: z"), says=["target", "z"])
        refuse(house, SPEC.replace("target: y", "target: y\n  id: nr"), says=["id", "nr"])


@case("A test file without a column of the training file is named")
def _():
    with house_of() as house:
        refuse(house, test="a,c\n1,2\n", says=["data.test", "'b'"])


@case("A column whose name is there twice gets a number; a test file without it is refused")
def _():
    with house_of() as house:
        refuse(house, train=TRAIN.replace("a,b,y", "a,a,y"), says=["data.test", "'a.1'"])


@case("Binary garbage is no CSV")
def _():
    with house_of() as house:
        refuse(house, train=bytes(range(256)) * 300, says=["train.csv"])
        refuse(house, train=b"\x7fELF" + bytes(5000), says=["train.csv"])


@case("A path outside of the data roots is refused, whatever it looks like")
def _():
    with house_of() as house:
        outside = os.path.join(house.root, "outside.csv")
        with open(outside, "w") as f:
            f.write(TRAIN)
        os.symlink(outside, os.path.join(house.data, "link.csv"))
        for path in (outside, "../outside.csv", "link.csv", "/etc/passwd", "/proc/self/environ"):
            text = refuse(house, SPEC.replace("train.csv", path), says=["data.train"])
            assert "root:" not in text and "PATH=" not in text, text
        refuse(house, SPEC.replace("train.csv", "/dev/zero"), says=["data.train"])


@case("A name that would be a path is refused")
def _():
    with house_of() as house:
        for name in ("../../etc", "a/b", "x" * 64, "'a b'", '"a\\0b"'):
            refuse(house, SPEC.replace("name: tiny", f"name: {name}"), says=["name"])


@case("A value set by --set is judged like one in the file")
def _():
    with house_of() as house:
        refuse(house, says=["train.epochs"], arguments=["--set", "train.epochs=many"])
        refuse(house, says=["train.epoch"], arguments=["--set", "train.epoch=3"])
        refuse(house, says=["budget"], arguments=["--budget", "20"])


@case("An unknown command and an unknown flag are errors of usage")
def _():
    with house_of() as house:
        assert house.cli("sumbit").returncode == USAGE
        assert house.cli("list", "--wrong").returncode == USAGE
        assert house.cli("get").returncode == USAGE


main()
