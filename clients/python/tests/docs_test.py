"""The Python of README.md and docs/PYTHON.md runs as it stands there; clients/python/tests/run.sh runs it."""
import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.insert(0, os.path.dirname(HERE))

import matplotlib
matplotlib.use("Agg")
import numpy as np
import pandas as pd

from tests.cases import case, main

FOLDER = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
os.chdir(FOLDER)


def tables():
    chance = np.random.default_rng(1)
    frame = pd.DataFrame(chance.normal(size=(400, 3)), columns=["age", "hours", "years"]).round(3)
    frame["sector"] = chance.choice(["public", "private"], 400)
    frame["income"] = np.where(frame.age + frame.hours + (frame.sector == "public") > 0.5, "high", "low")
    frame[:300].to_csv("train.csv", index=False)
    frame[300:].drop(columns="income").to_csv("test.csv", index=False)


def run_blocks(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        text = f.read()
    blocks = list(re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    assert blocks, path
    names = {"__name__": path}
    for block in blocks:
        line = text.count("\n", 0, block.start(1))
        exec(compile("\n" * line + block.group(1), path, "exec"), names)
    return names


@case("docs/PYTHON.md, from top to bottom")
def _():
    names = run_blocks("docs/PYTHON.md")
    assert list(names["predictions"].columns) == ["row", "income", "p_high", "p_low"], names["predictions"]
    assert len(names["now"]) == 3 and len(names["later"]) == 100 and set(names["curves"]["name"]) == {"val_metric", "val_loss"}
    assert os.path.getsize("job.trace.json") > 1000 and os.listdir("board") and names["axes"].lines


@case("clients/python/README.md")
def _():
    import traind
    names = run_blocks("clients/python/README.md")
    assert len(names["predictions"]) == 100
    traind.connect().close()


@case("The examples")
def _():
    import subprocess
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(HERE)}
    for program, part in (("digits.py", "355 answers"), ("compare.py", "lightgbm")):
        result = subprocess.run([sys.executable, os.path.join(ROOT, "examples/python", program)], capture_output=True,
                                text=True, env=environment, cwd=FOLDER)
        assert result.returncode == 0 and part in result.stdout, result
    assert os.path.getsize("curves.png") > 5000


tables()
main()
