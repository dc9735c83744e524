"""Test cases for tests that are programs: each is a function with a sentence.

    @case("A second Submit under the same request id answers the first Job")
    def _():
        ...

    main()

Arguments choose cases by a part of their sentence. Under Bazel the outcome of
each case goes to $XML_OUTPUT_FILE. A case that takes longer than its limit fails
where it is, and the next one runs.
"""
import os
import signal
import sys
import time
import traceback
from xml.sax.saxutils import escape, quoteattr

_cases = []


class Skip(Exception):
    """Raised by a case that cannot run here; the text says why."""


class TimedOut(Exception):
    pass


def case(sentence, limit_s=90):
    def add(function):
        _cases.append((sentence, limit_s, function))
        return function
    return add


def _alarm(signum, frame):
    raise TimedOut("the case took longer than its limit")


def _run(function, limit_s):
    """Returns (verdict, text)."""
    signal.signal(signal.SIGALRM, _alarm)
    signal.alarm(limit_s)
    try:
        function()
        return "passed", ""
    except Skip as e:
        return "skipped", str(e)
    except BaseException as e:  # also SystemExit and TimedOut: the next case still runs
        if isinstance(e, KeyboardInterrupt):
            raise
        return "failed", traceback.format_exc()
    finally:
        signal.alarm(0)


def _write_xml(path, suite, results):
    with open(path, "w") as f:
        failed = sum(r[1] == "failed" for r in results)
        skipped = sum(r[1] == "skipped" for r in results)
        f.write('<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n')
        f.write(f'<testsuite name={quoteattr(suite)} tests="{len(results)}" failures="{failed}" '
                f'skipped="{skipped}">\n')
        for name, verdict, text, seconds in results:
            f.write(f'<testcase classname={quoteattr(suite)} name={quoteattr(name)} time="{seconds:.3f}">')
            if verdict == "failed":
                f.write(f'<failure message="failed">{escape(text)}</failure>')
            elif verdict == "skipped":
                f.write(f'<skipped message={quoteattr(text)}/>')
            f.write("</testcase>\n")
        f.write("</testsuite>\n</testsuites>\n")


def main(arguments=None):
    wanted = [a.lower() for a in (sys.argv[1:] if arguments is None else arguments)]
    suite = os.path.splitext(os.path.basename(sys.argv[0]))[0]
    results = []
    for sentence, limit_s, function in _cases:
        if wanted and not any(w in sentence.lower() for w in wanted):
            continue
        print(f"[ RUN    ] {sentence}", flush=True)
        begin = time.monotonic()
        verdict, text = _run(function, limit_s)
        seconds = time.monotonic() - begin
        if text:
            print(text, flush=True)
        print(f"[ {verdict.upper():7}] {sentence} ({seconds:.1f} s)", flush=True)
        results.append((sentence, verdict, text, seconds))
    if os.environ.get("XML_OUTPUT_FILE"):
        _write_xml(os.environ["XML_OUTPUT_FILE"], suite, results)
    count = {v: sum(r[1] == v for r in results) for v in ("passed", "failed", "skipped")}
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    sys.exit(1 if count["failed"] or not results else 0)
