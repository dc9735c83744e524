"""Learns handwritten digits within ten seconds, and answers for the test rows. Nothing but Python is needed.

    pip install clients/python
    TRAIND_HOME=... python3 examples/python/digits.py
"""
import os

import traind

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../digits")


def main():
    with traind.start(data_roots=[FOLDER]) as client:
        answer = client.train(os.path.join(FOLDER, "train.csv"), target="digit", test=os.path.join(FOLDER, "test.csv"),
                              budget="10s", metric="accuracy", data={"id": "id"}, model={"mlp": {"hidden": [256, 256]}})
        job = client.jobs(limit=1)[0].refresh()
        print(f"{len(answer['digit'])} answers, {job.quality}, accuracy {job.scores['test']:.3f}")


if __name__ == "__main__":
    main()
