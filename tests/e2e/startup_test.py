"""What stops traind from starting is said clearly, and nothing is harmed."""
import os
import shutil
import socket
import subprocess
import tempfile

from tests.cases import Skip, case, main
from tests.e2e.harness import House


def start_fails(house, *arguments, limit_s=15, **options):
    """Runs traind, which must end by itself with an error; its text."""
    command = [os.path.join(house.bin, "server/traind"), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=limit_s,
                            env=house.environment(), cwd=house.root, **options)
    assert result.returncode not in (0, -6, -11), result
    assert "traind ready" not in result.stdout, result
    return result.stderr


def checksum(page):
    """Of the first page of a database (server/store/checksum_vfs.cc), without its last 8 bytes."""
    total, mask = 0, 2**64 - 1
    for at in range(0, len(page), 8):
        total = (total ^ int.from_bytes(page[at:at + 8], "little")) * 0xD6E8FEB86659FD93 & mask
        total ^= total >> 32
    return total.to_bytes(8, "little")


def flags(house, state=None, listen="127.0.0.1:0"):
    return ["--state", state or house.state, "--listen", listen, "--data-root", house.data]


@case("A port in use is named")
def _():
    with House(standalone=False) as house, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        text = start_fails(house, *flags(house, listen=f"127.0.0.1:{port}"))
        assert str(port) in text, text


@case("Two traind cannot share a state folder, and the first goes on")
def _():
    with House(standalone=False) as house:
        house.start()
        text = start_fails(house, *flags(house))
        assert house.state in text and str(house.daemon.pid) in text, text
        assert house.json("list")["jobs"] == []


@case("A database of a newer version is refused and left as it is")
def _():
    with House(standalone=False) as house:
        house.start()
        assert house.kill_daemon(15) == 0
        path = os.path.join(house.state, "traind.db")
        with open(path, "rb") as f:
            before = f.read()
        page = before[:60] + (999).to_bytes(4, "big") + before[64:4088]  # user_version
        before = page + checksum(page) + before[4096:]
        with open(path, "wb") as f:
            f.write(before)
        text = start_fails(house, *flags(house))
        assert "999" in text and "traind.db" in text, text
        with open(path, "rb") as f:
            assert f.read() == before


@case("A file that is no database is named and left as it is")
def _():
    with House(standalone=False) as house:
        path = os.path.join(house.state, "traind.db")
        with open(path, "wb") as f:
            f.write(b"this is a diary, not a database\n" * 200)
        text = start_fails(house, *flags(house))
        assert "traind.db" in text, text
        with open(path, "rb") as f:
            assert f.read().startswith(b"this is a diary")


@case("A database that cannot be written is named")
def _():
    with House(standalone=False) as house:
        house.start()
        assert house.kill_daemon(15) == 0
        path = os.path.join(house.state, "traind.db")
        if os.geteuid() != 0:
            os.chmod(path, 0o444)
            assert "traind.db" in start_fails(house, *flags(house))
            return
        # Root may write anything: be someone else, with a copy that he may run.
        folder = tempfile.mkdtemp(prefix="traind-e2e-")
        try:
            shutil.copy(os.path.realpath(os.path.join(house.bin, "server/traind")), folder)
            state = os.path.join(folder, "state")
            shutil.copytree(house.state, state)
            for where, _, names in os.walk(folder):
                os.chmod(where, 0o777)
                for name in names:
                    os.chmod(os.path.join(where, name), 0o777 if name != "traind.db" else 0o444)
            try:
                result = subprocess.run([os.path.join(folder, "traind"), "--state", state, "--listen",
                                         "127.0.0.1:0", "--data-root", folder], capture_output=True,
                                        text=True, timeout=15, user=65534, group=65534, extra_groups=[],
                                        cwd=folder, env=house.environment())
            except PermissionError as e:
                raise Skip(f"cannot run as another user here: {e}")
            assert result.returncode not in (0, -6, -11), result
            assert "traind.db" in result.stderr, result
        finally:
            shutil.rmtree(folder)


@case("A state folder that cannot be made is named")
def _():
    with House(standalone=False) as house:
        text = start_fails(house, *flags(house, state="/proc/nowhere/state"))
        assert "/proc/nowhere" in text, text


@case("An address that is no address, and one beyond loopback, are refused")
def _():
    with House(standalone=False) as house:
        assert "nonsense" in start_fails(house, *flags(house, listen="nonsense"))
        text = start_fails(house, *flags(house, listen="0.0.0.0:0"))
        assert "--insecure" in text or "loopback" in text, text


@case("A service manager hears that traind is ready, that it works, and that it stops")
def _():
    with House(standalone=False) as house, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        path = os.path.join(house.root, "notify")
        manager.bind(path)
        manager.settimeout(10)
        os.environ["NOTIFY_SOCKET"] = path
        try:
            house.start()
        finally:
            del os.environ["NOTIFY_SOCKET"]
        ready = manager.recv(1000).decode()
        assert ready.startswith("READY=1\nSTATUS=traind ready grpc=") and house.server in ready, ready
        assert manager.recv(1000) == b"WATCHDOG=1" == manager.recv(1000)
        assert house.kill_daemon(15) == 0
        left = []
        while b"STOPPING=1" not in left:
            left.append(manager.recv(1000))
        assert set(left) <= {b"STOPPING=1", b"WATCHDOG=1"}, left


@case("The log goes to a file of its own, and old ones are kept in number and size")
def _():
    with House(standalone=False) as house:
        log = os.path.join(house.root, "own.log")
        house.start("--log", log, "--log-bytes", "300", "--log-format", "json")
        for _ in range(15):
            assert house.kill_daemon(15) == 0
            house.start("--log", log, "--log-bytes", "300", "--log-format", "json")
        sizes = {name: os.path.getsize(os.path.join(house.root, name))
                 for name in os.listdir(house.root) if name.startswith("own.log")}
        assert sorted(sizes) == ["own.log", "own.log.1", "own.log.2", "own.log.3"], sizes
        assert max(sizes.values()) <= 300, sizes
        assert "--log: " in start_fails(house, *flags(house), "--log", "/nowhere/own.log")


@case("An unknown flag is an error of usage")
def _():
    with House(standalone=False) as house:
        assert "--wrong" in start_fails(house, *flags(house), "--wrong")


main()
