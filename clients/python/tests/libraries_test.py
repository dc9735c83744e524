"""The package beside the libraries that it uses where they are installed; clients/python/tests/run.sh installs them."""
import csv
import io
import json
import os
import sys
import tempfile
import warnings

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [ROOT, os.path.join(ROOT, "tests")]

import matplotlib
matplotlib.use("Agg")
import numpy as np
import pandas as pd

import traind
from fake_traind import FakeTraind
from tests.cases import case, main
from traind import export, progress, tables

from client_fixture import ended, job_like
from export_fixture import JOB, POINTS

FOLDER = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))


def written(frame):
    path = os.path.join(FOLDER, "table.csv")
    tables.write_table(frame, path)
    with open(path, encoding="utf-8", newline="") as f:
        return list(csv.reader(f))


@case("Each type of a pandas column is written as its values, missing ones as nothing, the index not at all")
def _():
    frame = pd.DataFrame({
        "float": [1.5, None, 3.0], "Int64": pd.array([1, None, 3], dtype="Int64"), "bool": [True, False, True],
        "boolean": pd.array([True, None, False], dtype="boolean"), "category": pd.Categorical(["x", None, "y"]),
        "date": pd.to_datetime(pd.Series(["2026-01-01T00:00:00", None, "2026-01-02T03:04:05"])),
        "utc": pd.to_datetime(pd.Series(["2026-01-01T00:00:00", None, "2026-01-02T03:04:05"]), utc=True),
        "time": pd.to_timedelta(["1s", None, "2min"]), "text": ["a,b", None, 'q"'],
        "string": pd.array(["u", None, "v"], dtype="string"), "quarter": pd.period_range("2024Q1", periods=3, freq="Q"),
        "float32": np.array([0.5, np.nan, np.inf], dtype="float32")}).set_axis([7, 8, 9])
    rows = written(frame)
    assert rows[0] == list(frame.columns) and len(rows) == 4, rows
    assert rows[1] == ["1.5", "1", "true", "true", "x", "2026-01-01T00:00:00", "2026-01-01T00:00:00+00:00", "1.0", "a,b",
                       "u", "2024Q1", "0.5"], rows[1]
    assert rows[2] == ["", "", "false", "", "", "", "", "", "", "", "2024Q2", ""], rows[2]
    assert rows[3][5:8] == ["2026-01-02T03:04:05", "2026-01-02T03:04:05+00:00", "120.0"], rows[3]
    assert rows[3][8:] == ['q"', "v", "2024Q3", "inf"], rows[3]


@case("pandas reads what was written: numbers bit by bit, texts as they were")
def _():
    chance = np.random.default_rng(7)
    frame = pd.DataFrame({"x": chance.normal(size=500) * 10.0 ** chance.integers(-300, 300, 500),
                          "t": [f"{chance.integers(1e6)},\n\"é\"" for _ in range(500)]})
    tables.write_table(frame, os.path.join(FOLDER, "bits.csv"))
    back = pd.read_csv(os.path.join(FOLDER, "bits.csv"), float_precision="round_trip")
    pd.testing.assert_frame_equal(back, frame, check_exact=True, check_dtype=False)


@case("Frames of polars, tables of pyarrow and arrays of numpy are tables")
def _():
    import polars
    import pyarrow
    assert tables.columns_of(polars.DataFrame({"x": [1, None]})) == {"x": [1, None]}
    assert tables.columns_of(pyarrow.table({"x": [1, None]})) == {"x": [1, None]}
    assert tables.columns_of(np.arange(4).reshape(2, 2)) == {"x0": [0, 2], "x1": [1, 3]}


@case("A frame with columns of several levels, or with a name twice, is refused")
def _():
    for frame, part in ((pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2)])), "levels"),
                        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "two columns")):
        try:
            written(frame)
        except ValueError as e:
            assert part in str(e), e
            continue
        raise AssertionError("written")


@case("Predictions are a frame with the index of the rows that were asked for, and with their labels")
def _():
    with FakeTraind() as fake:
        ended(fake, "id,kind,p_0,p_1\n0,1,0.25,0.75\n1,0,0.5,0.5\n")
        client = traind.connect(fake.url, data_folder=FOLDER)
        train = pd.DataFrame({"x": [1, 2, 3], "kind": [0.0, 1.0, None]})
        answer = client.train(train, target="kind", test=pd.DataFrame({"x": [5, 6]}, index=["a", "b"]), progress=False)
        assert list(answer.index) == ["a", "b"] and list(answer["kind"]) == [1.0, 0.0], answer
        assert answer.attrs["traind_job"] == "blobs-1" and answer["p_1"].dtype == float, answer


@case("tqdm draws the bar")
def _():
    from tqdm import tqdm
    out = io.StringIO()
    bar = progress.BarProgress("blobs", tqdm, out)
    bar.update(job_like("RUNNING", folds=[{"state": "RUNNING", "progress": {"planned": 4, "done": 1}}]))
    bar.update(job_like("SUCCEEDED", quality="FULL"))
    bar.close()
    assert "25%|" in out.getvalue() and "100%|" in out.getvalue() and "FULL" in out.getvalue(), out.getvalue()
    assert isinstance(progress.make_progress("x"), progress.BarProgress)


@case("matplotlib draws a line for each model")
def _():
    with FakeTraind() as fake:
        ended(fake, attempts=JOB["attempts"])
        fake.replies["GET /v1/jobs/blobs-1/metrics"] = [(200, {"series": [
            {"name": "val_metric", "fold": f, "attempt": 2 + 2 * f, "points": 2, "sequence": [1 + 2 * f, 2 + 2 * f],
             "step": [1, 2], "epoch": [1, 2], "at_s": [1.0, 2.0], "value": [0.5, 0.6]} for f in (0, 1)],
            "last_sequence": 4})]
        axes = traind.connect(fake.url).job("blobs-1").plot()
        assert len(axes.lines) == 2 and axes.get_ylabel() == "accuracy", axes.lines
        axes.figure.savefig(os.path.join(FOLDER, "plot.png"))
        assert os.path.getsize(os.path.join(FOLDER, "plot.png")) > 5000


@case("TensorBoard reads every point of the event files")
def _():
    from tensorboard.backend.event_processing.event_multiplexer import EventMultiplexer
    root = os.path.join(FOLDER, "board")
    export.write_tensorboard(JOB, POINTS, root)
    board = EventMultiplexer().AddRunsFromDirectory(root)
    board.Reload()
    read = {(run, tag): [(e.step, round(e.value, 6), e.wall_time) for e in board.Scalars(run, tag)]
            for run, tags in board.Runs().items() for tag in tags["scalars"]}
    want = {}
    for run, figures in export.curves(JOB, POINTS).items():
        for name, points in figures.items():
            want[f"blobs-1/{run}", name] = [(p["step"], round(p["value"], 6), progress.moment(p["at"])) for p in points]
    assert repr(sorted(read.items())) == repr(sorted(want.items())), (read, want)  # NaN differs from NaN
    assert len(read) == 3


@case("MLflow has a run with every curve and the scores")
def _():
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    from mlflow import MlflowClient
    uri = "file://" + os.path.join(FOLDER, "mlruns")
    run = export.to_mlflow(JOB, POINTS, uri, "trials")
    client = MlflowClient(uri)
    assert [m.value for m in client.get_metric_history(run, "fold-0/val_loss")] == [1.0, 0.8, 0.7]
    found = client.get_run(run)
    assert found.data.metrics["accuracy_oof"] == 0.9 and found.info.status == "FINISHED", found
    assert export.to_mlflow(JOB, POINTS, uri, "trials") != run  # the experiment is there already


@case("Without a library the error says what to install")
def _():
    import builtins
    true_import = builtins.__import__

    def none(name, *arguments, **options):
        if name.partition(".")[0] in ("matplotlib", "mlflow", "sklearn"):
            raise ImportError(name)
        return true_import(name, *arguments, **options)
    kept = {n: sys.modules.pop(n) for n in list(sys.modules) if n.partition(".")[0] in ("matplotlib", "mlflow", "sklearn")}
    builtins.__import__ = none
    try:
        from traind.plot import plot_points
        for function, package in ((lambda: plot_points(None, [], ["x"]), "matplotlib"),
                                  (lambda: export.to_mlflow(JOB, POINTS, None, "x"), "mlflow-skinny"),
                                  (lambda: traind.TraindClassifier, "scikit-learn")):
            try:
                function()
            except ImportError as e:
                assert f"pip install {package}" in str(e), e
                continue
            raise AssertionError(package)
    finally:
        builtins.__import__ = true_import
        sys.modules.update(kept)


main()
