"""traind.start(): the program that it finds, the ready line, and how the daemon ends."""
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)

import traind
from tests.cases import case, main
from traind import local

FOLDER = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))


def program(name, text):
    path = os.path.join(FOLDER, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"#!/bin/sh\n{text}\n")
    os.chmod(path, stat.S_IRWXU)
    return path


READY = program("good/bin/traind", f"""echo "$@" >{FOLDER}/arguments
echo $$ >{FOLDER}/pid
echo "traind ready grpc=127.0.0.1:1 http=127.0.0.1:2 pid=$$"
exec sleep 60""")


def ended(pid, limit_s=10):
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        try:
            with open(f"/proc/{pid}/stat") as f:
                if f.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return True
        except (FileNotFoundError, ProcessLookupError):  # the second: it ended after the file was opened
            return True
        time.sleep(0.02)
    return False


def gone(path, limit_s=10):
    end = time.monotonic() + limit_s
    while os.path.exists(path) and time.monotonic() < end:
        time.sleep(0.02)
    return not os.path.exists(path)


@case("The program is the argument, the one below $TRAIND_HOME, or the one on PATH; else the error says what to set")
def _():
    path, home = os.environ["PATH"], os.environ.pop("TRAIND_HOME", None)
    try:
        os.environ["PATH"] = os.path.dirname(READY) + ":" + path
        assert local.program_path() == READY
        os.environ["PATH"] = "/nonexistent"
        os.environ["TRAIND_HOME"] = os.path.join(FOLDER, "good")
        assert local.program_path() == READY
        os.environ["TRAIND_HOME"] = "/nonexistent"
        for argument, part in ((None, "TRAIND_HOME"), ("/no/such", "/no/such")):
            try:
                local.program_path(argument)
            except traind.ServerNotFoundError as e:
                assert part in str(e), e
                continue
            raise AssertionError("found")
    finally:
        os.environ["PATH"] = path
        os.environ.pop("TRAIND_HOME")
        if home:
            os.environ["TRAIND_HOME"] = home


@case("start() reads the ready line; close() ends the daemon and removes a temporary folder")
def _():
    with traind.start(program=READY, slots=1) as client:
        pid, state = client.server.pid, client.server.state
        assert client.url == "http://127.0.0.1:2" and traind.connect() is client, client
        with open(f"{FOLDER}/arguments") as f:
            arguments = f.read().split()
        assert arguments[:3] == ["--standalone", "--state", state] and "--http" in arguments, arguments
        roots = [arguments[i + 1] for i, a in enumerate(arguments) if a == "--data-root"]
        assert roots == [client.server.data_folder, os.getcwd()] and arguments[-2:] == ["--slots", "1"], arguments
        assert os.path.isdir(client.server.data_folder)
    assert ended(pid) and not os.path.exists(os.path.dirname(state))


@case("A given state folder stays")
def _():
    state = os.path.join(FOLDER, "state")
    with traind.start(state=state, program=READY):
        pass
    assert os.path.isdir(state)


@case("A traind that fails, or has no gateway, is told with the end of its log")
def _():
    for name, text, part in (("fails", "echo 'the port is in use' >&2; exit 4", "the port is in use"),
                             ("old", "echo 'traind ready grpc=127.0.0.1:1 http=- pid=1'; exec sleep 60", "no HTTP gateway"),
                             ("other", "echo hello; exec sleep 60", "did not start")):
        try:
            traind.start(program=program(name, text))
        except traind.TraindError as e:
            assert part in str(e), e
            continue
        raise AssertionError("started")


@case("When the Python program is killed, the daemon ends and its temporary folder goes")
def _():
    code = (f"import sys, time; sys.path.insert(0, {ROOT!r}); import traind\n"
            f"c = traind.start(program={READY!r}); print(c.server.pid, c.server.state, flush=True); time.sleep(60)")
    for number in (signal.SIGKILL, signal.SIGTERM):
        python = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        pid, state = python.stdout.readline().split()
        python.send_signal(number)
        python.wait(10)
        python.stdout.close()
        assert ended(pid), f"{pid} runs on after signal {number}"
        assert gone(os.path.dirname(state)), state


main()
