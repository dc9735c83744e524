"""What only a full read of the data shows ends the Job FAILED with the place."""
import os
import random

from tests.cases import case, main
from tests.e2e.harness import House


def lines(count, classes=("no", "yes")):
    return [f"{i},{i % 7}.5,{classes[i % len(classes)]}" for i in range(count)]


def end(house, train, test="a,b\n1,2\n3,4\n", task="classification", budget="30s", epochs=2):
    """The terminal Job on this data."""
    house.write("train.csv", train if isinstance(train, (bytes, str)) else "a,b,y\n" + "\n".join(train) + "\n")
    house.write("test.csv", test)
    job = house.submit({
        "api": "v1", "name": "dirt", "task": {"type": task},
        "data": {"train": "train.csv", "test": "test.csv", "target": "y", "folds": 2},
        "model": {"mlp": {"hidden": [8]}}, "train": {"epochs": epochs, "learning_rate": 0.01},
        "budget": {"time": budget}})
    return house.wait(job["id"])


def data_error(job, *says):
    assert (job["state"], job["end_reason"]) == ("FAILED", "DATA_ERROR"), job
    for word in says:
        assert word in job["end_message"], f"{word!r} is not in: {job['end_message']}"


# Beyond the first MiB, which Submit looks at.
FAR = 150_000


@case("A ragged row far down is named by row and column")
def _():
    with House() as house:
        house.start()
        rows = lines(FAR)
        rows[FAR - 10] = "1"
        job = end(house, rows)
        data_error(job, "train.csv", "column")
        assert any(str(FAR - 10 + n) in job["end_message"].replace(",", "") for n in (0, 1, 2)), job["end_message"]


@case("A target with one class only, and a target that is always missing, cannot be learnt")
def _():
    with House() as house:
        house.start()
        for values in (["same"], ["?"]):
            rows = lines(100, values)
            house.write("train.csv", "a,b,y\n" + "\n".join(rows) + "\n")
            house.write("test.csv", "a,b\n1,2\n")
            path = house.write_spec({
                "api": "v1", "task": {"type": "classification"},
                "data": {"train": "train.csv", "test": "test.csv", "target": "y", "folds": 2},
                "budget": {"time": "20s"}})
            result = house.cli("submit", "-f", path, "--wait")
            # At Submit where it can be seen there, else as a Job that failed.
            assert result.returncode in (1, 2), result
            assert "y" in result.stderr + result.stdout


@case("A class of its own for each row cannot be learnt, and a class of a single row is told of")
def _():
    with House() as house:
        house.start()
        data_error(end(house, [f"{i},{i % 7},k{i}" for i in range(30)]), "train.csv", "target 'y' has 30 classes",
                   "each of them in a single row", "name another column by data.target")
        data_error(end(house, [f"{i % 5},{i % 7},{i}" for i in range(30)]), "should task.type be regression?")
        job = end(house, [f"{i},{i % 7},k{4 if i == 0 else i % 4}" for i in range(60)])
        assert job["state"] == "SUCCEEDED", job
        assert any("target 'y': 1 of 5 classes has a single row: 'k4'" in w for w in job["warnings"]), job["warnings"]
        with open(job["predictions"]["path"]) as f:
            header, *rows = f.read().split("\n")[:-1]
        assert header == "row,y,p_k0,p_k1,p_k2,p_k3,p_k4" and len(rows) == 2, (header, rows)


@case("Of a hundred thousand categories the most frequent are learnt, and later files are read alike", limit_s=120)
def _():
    with House() as house:
        house.start()
        # Frequent codes tell the class; the others have one row or two.
        chance = random.Random(1)
        codes = [chance.randrange(300) for _ in range(60_000)] + [1_000 + i for i in range(99_700)]
        rows = [f"{chance.random():.3f},c{code},{'no' if code % 2 else 'yes'}" for code in codes]
        asked = [chance.randrange(300) for _ in range(200)] + [1_000, 99_999, 500_000]
        test = "a,b\n" + "".join(f"0.5,c{code}\n" for code in asked) + "0.5,\n"
        job = end(house, rows, test=test, budget="40s", epochs=3)
        assert job["state"] == "SUCCEEDED", job
        said = "column 'b' has 100000 distinct values: the 10000 most frequent are its categories"
        assert any(said in w for w in job["warnings"]), job["warnings"]
        house.check_folds_answer(job)
        with open(job["predictions"]["path"]) as f:
            answers = [line.split(",")[1] for line in f.read().split("\n")[1:-1]]
        right = sum(a == ("no" if code % 2 else "yes") for a, code in zip(answers, asked[:200]))
        assert right > 190, right
        later = house.json("predict", job["id"], "--data", os.path.join(house.data, "test.csv"))
        with open(job["predictions"]["path"]) as one, open(later["predictions"]["path"]) as other:
            assert one.read() == other.read()


@case("A word in the target of a regression is named by row and column")
def _():
    with House() as house:
        house.start()
        rows = [f"{i},{i % 7},{i * 0.5}" for i in range(FAR)]
        rows[FAR - 5] = "1,2,many"
        data_error(end(house, rows, task="regression"), "train.csv", "many", "y")


@case("inf, NaN and 1e9999 in a feature or a target do no harm")
def _():
    with House() as house:
        house.start()
        # The floor is linear and cannot learn this.
        rows = [f"{i},{i % 7},{(i % 7 - 3) ** 2}" for i in range(200)]
        for at, value in ((3, "inf"), (20, "-Infinity"), (40, "1e9999"), (60, "NaN"), (80, "nan"), (90, "-1e9999")):
            rows[at] = f"{value},2,1"
        job = end(house, rows, test="a,b\n1,2\ninf,3\n1e9999,NaN\n", task="regression", epochs=60)
        if job["state"] == "SUCCEEDED":  # taken as missing, and said so
            house.check_folds_answer(job)
            for line in open(job["predictions"]["path"]).read().splitlines()[1:]:
                assert abs(float(line.split(",")[-1])) < 1e6, line
        else:
            data_error(job, "train.csv", "a")
        rows = [f"{i},{i % 7},{i % 13 * 0.5}" for i in range(200)]
        rows[50] = "1,2,1e9999"
        job = end(house, rows, task="regression")
        if job["state"] == "SUCCEEDED":
            assert job["warnings"], job
        else:
            data_error(job, "train.csv", "y")


@case("Ten thousand columns are read, or refused with their number", limit_s=120)
def _():
    with House() as house:
        house.start()
        columns = 10_000
        header = ",".join(f"c{i}" for i in range(columns))
        body = "\n".join(",".join(str((i * j) % 10) for j in range(columns)) + ("," + "ab"[i % 2])
                         for i in range(40))
        house.write("train.csv", header + ",y\n" + body + "\n")
        house.write("test.csv", header + "\n" + ",".join(["1"] * columns) + "\n")
        path = house.write_spec({
            "api": "v1", "task": {"type": "classification"},
            "data": {"train": "train.csv", "test": "test.csv", "target": "y", "folds": 2},
            "model": {"mlp": {"hidden": [8]}}, "train": {"epochs": 2}, "budget": {"time": "40s"}})
        result = house.cli("submit", "-f", path, "-o", "json")
        if result.returncode == 2:
            assert "10001" in result.stderr or "10000" in result.stderr or "columns" in result.stderr, result
            return
        job = house.wait(house.json("list")["jobs"][0]["id"])
        assert job["state"] == "SUCCEEDED", job


@case("Garbage after a good beginning ends the Job, and nothing else")
def _():
    with House() as house:
        house.start()
        good = ("a,b,y\n" + "\n".join(lines(FAR)) + "\n").encode()
        job = end(house, good + bytes(range(256)) * 100)
        data_error(job, "train.csv")
        job = end(house, lines(200))
        assert job["state"] == "SUCCEEDED", job


@case("A file that is gone when it is read ends the Job with its name")
def _():
    with House(private_binaries=True) as house:
        prep = os.path.join(house.bin, "worker/trainprep")
        os.rename(prep, prep + ".away")  # so that it is not read before it is gone
        house.start()
        house.write("train.csv", "a,b,y\n" + "\n".join(lines(100)) + "\n")
        house.write("test.csv", "a,b\n1,2\n")
        job = house.submit({
            "api": "v1", "task": {"type": "classification"},
            "data": {"train": "train.csv", "test": "test.csv", "target": "y", "folds": 2},
            "budget": {"time": "25s"}})
        os.remove(os.path.join(house.data, "train.csv"))
        os.rename(prep + ".away", prep)
        job = house.wait(job["id"])
        assert job["state"] == "FAILED" and "train.csv" in job["end_message"], job


@case("Every value of a feature missing, and rows of one column alone, are survived")
def _():
    with House() as house:
        house.start()
        assert end(house, [f",{i % 7},{'no' if i % 2 else 'yes'}" for i in range(80)])["state"] == "SUCCEEDED"
        job = end(house, [f"{'x' * 300}{i},{i % 7},{'no' if i % 2 else 'yes'}" for i in range(80)])
        assert job["state"] == "SUCCEEDED", job  # as many categories as rows


@case("Quotes, line breaks in fields, a byte order mark and CR LF are read as RFC 4180 says")
def _():
    with House() as house:
        house.start()
        text = "\ufeff\"a\",b,y\r\n" + "".join(
            f"{i},\"x\"\"{i % 3},\r\nz\",{'no' if i % 2 else 'yes'}\r\n" for i in range(90))
        job = end(house, text, test="a,b\r\n1,\"x\"\"1,\r\nz\"\r\n2,q\r\n")
        assert job["state"] == "SUCCEEDED" and job["predictions"]["rows"] == 2, job


main()
