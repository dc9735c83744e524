"""What only a full read of the data shows ends the Job FAILED with the place."""
import os

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
