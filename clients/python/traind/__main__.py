"""Writes the figures of a Job for other tools.

    python -m traind tensorboard JOB FOLDER     event files; then: tensorboard --logdir FOLDER
    python -m traind csv JOB FILE               a table of all figures
    python -m traind trace JOB FILE             the timeline, for ui.perfetto.dev or chrome://tracing
    python -m traind mlflow JOB [TRACKING_URI]  a run of MLflow (needs mlflow)
"""
from __future__ import annotations

import argparse
import sys

from . import __version__, connect
from .errors import NotFoundError, ServerNotFoundError, SpecError, TraindError, UnreachableError


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m traind", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="the server, http://HOST:PORT; else $TRAIND_URL, or the one on this machine")
    parser.add_argument("--version", action="version", version=__version__)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb, target, needed in (("tensorboard", "FOLDER", True), ("csv", "FILE", True), ("trace", "FILE", True),
                                 ("mlflow", "TRACKING_URI", False)):
        command = verbs.add_parser(verb)
        command.add_argument("job", metavar="JOB", help="its id, or its name")
        command.add_argument("target", metavar=target, nargs=None if needed else "?")
    return parser


def _exit_code(error: TraindError) -> int:
    """As trainctl has them."""
    for kind, code in ((NotFoundError, 5), (ServerNotFoundError, 7), (UnreachableError, 7), (SpecError, 2)):
        if isinstance(error, kind):
            return code
    return 1


def main(arguments: list = None) -> int:
    chosen = _parser().parse_args(arguments)
    try:
        job = connect(chosen.url).job(chosen.job)
        result = getattr(job, f"export_{chosen.verb}")(chosen.target)
    except TraindError as e:
        print(f"traind: error: {e}", file=sys.stderr)
        return _exit_code(e)
    except (OSError, ImportError) as e:
        print(f"traind: error: {e}", file=sys.stderr)
        return 1
    for line in result if isinstance(result, list) else [result]:
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
