"""What traind gives a program, for tests of traind_run: folders, variables, and the pipe of reports."""
import contextlib
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

import traind_run


class Fold:
    """A fold of a Job; `start` makes the Run of one start of its program."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.checkpoints, self.out = (os.path.join(self.folder, name) for name in ("checkpoints", "out"))
        for folder in (self.checkpoints, self.out):
            os.mkdir(folder)
        self.stop_file = os.path.join(self.folder, "stop")
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)

    def environment(self, **more):
        return {"TRAIND_JOB": "job-1", "TRAIND_FOLD": "2", "TRAIND_FOLDS": "5", "TRAIND_SEED": "7", "TRAIND_TRY": "0",
                "TRAIND_OUT": self.out, "TRAIND_CHECKPOINTS": self.checkpoints, "TRAIND_STOP_FILE": self.stop_file,
                "TRAIND_REPORT_FD": str(self.writer), "RANK": "0", **more}

    def start(self, **more):
        return traind_run.Run(self.environment(**more))

    def stop(self):
        open(self.stop_file, "w").close()

    def text(self):
        """All that was reported since the last call."""
        text = b""
        with contextlib.suppress(BlockingIOError):
            while part := os.read(self.reader, 65536):
                text += part
        return text.decode()

    def reports(self):
        return [json.loads(line) for line in self.text().splitlines()]

    def path(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path


def text_of(path):
    with open(path, encoding="utf-8") as f:
        return f.read()
