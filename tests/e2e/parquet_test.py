"""Parquet tables, through the plug-in where it is installed, and without it."""
import os
import subprocess

from tests.cases import Skip, case, main
from tests.e2e.harness import House

PLUGIN = os.environ.get("TRAIND_PARQUET") or os.path.expanduser(
    "~/.local/share/traind/parquet/traind-parquet")


def to_parquet(house, name):
    """NAME.csv of the house's data as NAME.parquet, by the plug-in's own library."""
    python = os.path.join(os.path.dirname(PLUGIN), "venv/bin/python")
    path = os.path.join(house.data, name)
    code = ("import sys, pyarrow.csv as c, pyarrow.parquet as p; "
            "p.write_table(c.read_csv(sys.argv[1] + '.csv', convert_options="
            "c.ConvertOptions(null_values=['', '?'])), sys.argv[1] + '.parquet')")
    subprocess.run([python, "-c", code, path], check=True)
    return name + ".parquet"


@case("Without the plug-in the error names the one command that installs it")
def _():
    with House(slots=1) as house:
        os.environ["TRAIND_PARQUET"] = "/nowhere/traind-parquet"
        try:
            house.start()
        finally:
            del os.environ["TRAIND_PARQUET"]
        house.write("train.parquet", b"PAR1 and so on")
        spec = house.spec()
        spec["data"].update(train="train.parquet")
        result = house.cli("submit", "-f", house.write_spec(spec))
        assert result.returncode != 0
        assert "data.train" in result.stderr and "run deploy/parquet.sh" in result.stderr, result.stderr


@case("A Parquet table gives the same table as its CSV file, and the same floor")
def _():
    if not os.access(PLUGIN, os.X_OK):
        raise Skip("the plug-in for Parquet is not installed (deploy/parquet.sh)")
    with House(slots=1) as house:
        house.start()
        spec = house.spec(epochs=3)
        by_csv = house.submit(spec, "--wait")
        spec["data"].update(train=to_parquet(house, "train400"), test=to_parquet(house, "test400"))
        job = house.submit(spec, "--wait")
        assert (job["state"], job["quality"]) == ("SUCCEEDED", "FULL"), job
        assert (job["train_rows"], job["test_rows"]) == (by_csv["train_rows"], by_csv["test_rows"])
        assert job["scores"]["floor"] == by_csv["scores"]["floor"], (job["scores"], by_csv["scores"])
        house.check_predictions(job["predictions"]["path"])
        with open(os.path.join(house.data, "train400.parquet"), "rb") as f:
            cut = f.read()[:-100]
        house.write("train400.parquet", cut)
        job = house.wait(house.submit(spec)["id"])
        assert (job["state"], job["end_reason"]) == ("FAILED", "DATA_ERROR"), job
        assert "train400.parquet: no whole Parquet file" in job["end_message"], job["end_message"]


main()
