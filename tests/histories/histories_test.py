"""A history of real processes under faults is right; one of a run without faults does not count."""
import json
import os
import tempfile

from tests.cases import case, main
from tests.histories.checker import check, read, summary
from tests.histories.histories import run_once


def history(**options):
    with tempfile.TemporaryDirectory(prefix="traind-histories-") as folder:
        path = os.path.join(folder, "history.jsonl")
        run_once(path, **options)
        return read(path)


@case("Whatever is killed and stopped, clients see one truth")
def _():
    lines = history(seed=1, seconds=12)
    print(json.dumps(summary(lines)), flush=True)
    violations = check(lines, least_calls=60)
    assert not violations, violations


@case("A run in which nothing was struck does not pass")
def _():
    lines = history(seed=1, seconds=0.5, faults=["kill traintree"], kinds=["short"])
    assert [v["rule"] for v in check(lines)] == ["harness"], check(lines)


main()
