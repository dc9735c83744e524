"""Who may call a real traind: users of this machine, tokens, roles, owners; what is recorded; certificates
that are exchanged while it runs. No Worker trains."""
import contextlib
import http.client
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "clients", "python"))

from traind import UnreachableError, connect  # noqa: E402
from tests.cases import Skip, case, main
from tests.e2e.harness import House, eventually

NOBODY = 65534
SPEC = """api: v1
name: mine
task: {type: classification, metric: accuracy}
data: {train: train.csv, test: test.csv, target: y}
model: {mlp: {hidden: [8]}}
budget: {time: 600s}
"""
TRAIN = "a,b,y\n" + "".join(f"{i},{i % 7},{'no' if i % 2 else 'yes'}\n" for i in range(60))
GET = """import http.client, sys
connection = http.client.HTTPConnection(sys.argv[1], timeout=20)
connection.request("GET", sys.argv[2])
response = connection.getresponse()
print(response.status, response.read().decode())"""


@contextlib.contextmanager
def a_house(standalone):
    with House(standalone=standalone) as house:
        house.write("train.csv", TRAIN)
        house.write("test.csv", "a,b\n1,2\n3,4\n")
        house.spec_path = house.write("job.yaml", SPEC)
        yield house


def as_nobody(command):
    return subprocess.run(command, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/",
                          capture_output=True, text=True, timeout=60)


@case("A standalone traind answers its own user, and another one only with --local-users any")
def _():
    if os.geteuid() != 0:
        raise Skip("needs root, to be another user")
    with a_house(standalone=True) as house, tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        trainctl = shutil.copy(os.path.join(house.bin, "client/trainctl"), folder)
        os.chmod(trainctl, 0o755)
        for flags, allowed in (((), False), (("--local-users", "any"), True)):
            house.start("--http", "127.0.0.1:0", "--worker-binary", "/bin/true", *flags)
            assert house.cli("list").returncode == 0
            other = as_nobody([trainctl, "--server", house.server, "list"])
            page = as_nobody([sys.executable, "-c", GET, house.http, "/v1/jobs"])
            if allowed:
                assert other.returncode == 0, other.stderr
                assert page.stdout.startswith("200 "), (page.stdout, page.stderr)
            else:
                assert other.returncode != 0 and "--local-users any" in other.stderr, other
                assert page.stdout.startswith("403 "), (page.stdout, page.stderr)
                # A stream is a call, too.
                watch = as_nobody([trainctl, "--server", house.server, "watch", "mine"])
                assert watch.returncode != 0 and "no other user" in watch.stderr, watch
            assert house.kill_daemon(15) == 0


def run_traind(house, *arguments):
    return subprocess.run([os.path.join(house.bin, "server/traind"), *arguments], capture_output=True, text=True,
                          timeout=120)


def traind(house, *arguments):
    done = run_traind(house, *arguments)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


class Tokens:
    """Certificates and tokens of a traind."""

    def __init__(self, house):
        self.house = house
        self.tls = os.path.join(house.root, "tls")
        traind(house, "init-tls", self.tls, "--host", "127.0.0.1")

    def add(self, name, role):
        path = os.path.join(self.house.root, name + ".token")
        traind(self.house, "token", "add", name, "--role", role, "--state", self.house.state, "--out", path)

    def path(self, name):
        return os.path.join(self.house.root, name + ".token")

    def cli(self, name, *arguments):
        return self.house.cli("--tls", self.tls, "--token", self.path(name), *arguments)

    def context(self):
        return ssl.create_default_context(cafile=os.path.join(self.tls, "ca.pem"))

    def trusts_https(self, context):
        """Whether a client that trusts these CAs alone trusts traind."""
        port = int(self.house.http.rsplit(":", 1)[1])
        try:
            http.client.HTTPSConnection("127.0.0.1", port, timeout=20, context=context).connect()
            return True
        except ssl.SSLError:
            return False

    def speaks(self, address, version):
        """Whether the port at the address makes a connection with this version of TLS."""
        context = self.context()
        context.set_ciphers("DEFAULT:@SECLEVEL=0")  # so that this side would do what is old
        context.set_alpn_protocols(["h2"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version = context.maximum_version = version
        port = int(address.rsplit(":", 1)[1])
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=20) as plain, context.wrap_socket(
                    plain, server_hostname="127.0.0.1") as secured:
                return secured.version() is not None
        except OSError:  # an SSLError is one
            return False

    def https(self, path, name=None, method="GET", body=None, headers=None, whole=False):
        port = self.house.http.rsplit(":", 1)[1]
        connection = http.client.HTTPSConnection(f"127.0.0.1:{port}", timeout=20, context=self.context())
        headers = dict(headers or {})
        if name:
            with open(self.path(name)) as f:
                headers["Authorization"] = "Bearer " + f.read().strip()
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            answer = response.status, response.read().decode()
            return (*answer, response.getheader("Set-Cookie") or "") if whole else answer
        finally:
            connection.close()


def files_with(house, tokens, name):
    """Files of the house that hold this token, but for its own."""
    with open(tokens.path(name)) as f:
        digits = f.read().strip().split("_")[1].encode()
    found = []
    for folder, _, names in os.walk(house.root):
        for path in (os.path.join(folder, one) for one in names):
            if path != tokens.path(name) and os.path.isfile(path):
                with open(path, "rb") as f:
                    found += [path] if digits in f.read() else []
    return found


def log_of(house):
    with open(os.path.join(house.root, "traind.log")) as f:
        return f.read()


def audit(house):
    with open(os.path.join(house.state, "audit.jsonl")) as f:
        return [json.loads(line) for line in f]


@case("With tokens a Job belongs to its caller, and who changed what is recorded")
def _():
    with a_house(standalone=False) as house:
        tokens = Tokens(house)
        for name, role in (("ann", "user"), ("bob", "user"), ("eve", "viewer"), ("root", "admin")):
            tokens.add(name, role)
        house.start("--tls", tokens.tls, "--http", "0.0.0.0:0")
        submitted = tokens.cli("ann", "submit", "-f", house.spec_path)
        assert submitted.returncode == 0, submitted.stderr
        refused = tokens.cli("ann", "submit", "-f", house.spec_path, "--owner", "bob")
        assert refused.returncode != 0 and "only an admin acts for bob" in refused.stderr, refused.stderr
        for verb in ("pause", "cancel", "finish", "delete"):
            refused = tokens.cli("bob", verb, "mine")
            assert refused.returncode != 0 and "belongs to ann" in refused.stderr, (verb, refused.stderr)
        assert tokens.cli("bob", "get", "mine").returncode == 0
        # The same over HTTP, which speaks TLS beyond loopback.
        assert tokens.https("/v1/jobs")[0] == 401
        assert tokens.https("/v1/jobs/mine", "eve")[0] == 200
        status, body = tokens.https("/v1/jobs/mine:cancel", "bob", "POST")
        assert status == 403 and "belongs to ann" in body, (status, body)
        # A browser leaves its token once, and sends a cookie from then on.
        with open(tokens.path("bob")) as f:
            token = f.read()
        assert tokens.https("/session", method="POST", body="traind_" + "0" * 64)[0] == 401
        assert tokens.https("/session", method="POST", body="no token")[0] == 400
        status, _, cookie = tokens.https("/session", method="POST", body=token, whole=True)
        assert status == 204 and "HttpOnly; SameSite=Strict; Secure" in cookie, (status, cookie)
        cookie = {"Cookie": cookie.split(";")[0]}
        assert tokens.https("/v1/jobs", headers=cookie)[0] == 200
        assert tokens.https("/v1/jobs/mine:cancel", method="POST", headers=cookie)[0] == 403  # ann's
        foreign = {**cookie, "Origin": "https://evil.example"}
        assert "another site" in tokens.https("/v1/jobs/mine:cancel", method="POST", headers=foreign)[1]
        assert "Max-Age=0" in tokens.https("/session", method="DELETE", whole=True)[2]
        # The Python package, with the CA of this traind and without it.
        url = f"https://127.0.0.1:{house.http.rsplit(':', 1)[1]}"
        client = connect(url, token_file=tokens.path("ann"), ca=os.path.join(tokens.tls, "ca.pem"))
        assert [job.info["name"] for job in client.jobs()] == ["mine"]
        try:
            connect(url, token_file=tokens.path("ann")).jobs()
            raise AssertionError("a certificate of an unknown CA was trusted")
        except UnreachableError as e:
            assert "ca.pem" in str(e), e
        cancelled = tokens.cli("root", "cancel", "mine")
        assert cancelled.returncode == 0, cancelled.stderr
        lines = audit(house)
        told = [(line["caller"], line["method"], line["code"]) for line in lines]
        for line in (("ann", "Submit", "OK"), ("bob", "CancelJob", "PERMISSION_DENIED"),
                     ("", "ListJobs", "UNAUTHENTICATED"), ("root", "CancelJob", "OK")):
            assert line in told, (line, told)
        assert not [line for line in told if line[1] == "GetJob"], told
        assert os.stat(os.path.join(house.state, "audit.jsonl")).st_mode & 0o777 == 0o600
        checked = run_traind(house, "admin", "audit", "--state", house.state)
        assert checked.returncode == 0 and f"{len(lines)} lines" in checked.stdout, checked
        digest = checked.stdout.split()[-1]
        copy = os.path.join(house.root, "copy")
        os.mkdir(copy)
        with open(os.path.join(house.state, "audit.jsonl")) as f, open(os.path.join(copy, "audit.jsonl"), "w") as to:
            to.write(f.read().replace('"caller":"bob"', '"caller":"ann"', 1))
        changed = run_traind(house, "admin", "audit", "--state", copy)
        assert changed.returncode == 1 and "audit.jsonl:" in changed.stderr, changed
        os.remove(os.path.join(copy, "audit.jsonl"))
        cut = run_traind(house, "admin", "audit", "--state", copy, "--noted", digest)
        assert cut.returncode == 1 and digest in cut.stderr, cut
        # Neither logs nor the state folder hold a token, and none is sent unencrypted.
        for name in ("ann", "bob", "eve", "root"):
            assert files_with(house, tokens, name) == [], name
        bare = house.cli("--token", tokens.path("ann"), "list")
        assert bare.returncode != 0 and "a token needs --tls" in bare.stderr, bare


@case("Over HTTP every call needs a token, and so does the page of metrics")
def _():
    with a_house(standalone=False) as house:
        tokens = Tokens(house)
        house.start("--tls", tokens.tls, "--http", "0.0.0.0:0")
        paths = json.loads(tokens.https("/openapi.json")[1])["paths"]
        asked = [(method.upper(), re.sub(r"\{[^}]*\}", "mine", path)) for path, methods in paths.items()
                 for method in methods if method in ("get", "post", "put", "patch", "delete")]
        assert len(asked) > 15, asked
        for method, path in asked + [("GET", "/metrics")]:
            status, body = tokens.https(path, method=method)
            assert status == 401, (method, path, status, body)
        for path in ("/", "/healthz", "/readyz"):
            assert tokens.https(path)[0] == 200, path


@case("Neither port speaks a TLS before 1.2")
def _():
    with a_house(standalone=False) as house:
        tokens = Tokens(house)
        house.start("--tls", tokens.tls, "--http", "0.0.0.0:0")
        for address in (house.server, house.http):
            assert tokens.speaks(address, ssl.TLSVersion.TLSv1_2), address
            assert tokens.speaks(address, ssl.TLSVersion.TLSv1_3), address
            assert not tokens.speaks(address, ssl.TLSVersion.TLSv1_1), address


@case("Certificates that are exchanged count without a restart")
def _():
    with a_house(standalone=False) as house:
        tokens = Tokens(house)
        tokens.add("ann", "user")
        house.start("--tls", tokens.tls, "--http", "0.0.0.0:0")
        assert tokens.cli("ann", "list").returncode == 0
        before = tokens.context()
        assert tokens.https("/v1/jobs", "ann")[0] == 200
        os.rename(tokens.tls, os.path.join(house.root, "former"))
        traind(house, "init-tls", tokens.tls, "--host", "127.0.0.1")
        eventually("a client that trusts the new CA alone is answered",
                   lambda: tokens.cli("ann", "list").returncode == 0, 30)
        eventually("so is one over HTTP", lambda: tokens.trusts_https(tokens.context()), 30)
        assert not tokens.trusts_https(before)
        # Half of an exchange changes nothing.
        os.chmod(os.path.join(tokens.tls, "server.key"), 0o644)
        eventually("traind says why it keeps the certificate", lambda: "chmod 600" in log_of(house), 30)
        assert tokens.https("/v1/jobs", "ann")[0] == 200


@case("A token that is revoked ends the streams that were opened with it, a Worker's among them", limit_s=120)
def _():
    with a_house(standalone=False) as house:
        tokens = Tokens(house)
        for name, role in (("ann", "user"), ("eve", "viewer"), ("machine", "worker"), ("other", "worker")):
            tokens.add(name, role)
        house.start("--tls", tokens.tls, "--http", "0.0.0.0:0")
        assert tokens.cli("ann", "submit", "-f", house.spec_path).returncode == 0
        assert tokens.cli("ann", "pause", "mine").returncode == 0  # so that it does not end
        worker = ["--tls", tokens.tls, "--token"]
        house.start_worker(arguments=[*worker, tokens.path("machine")], state=os.path.join(house.root, "one"))
        house.start_worker(arguments=[*worker, tokens.path("other")], state=os.path.join(house.root, "two"))

        def connected():
            listed = tokens.cli("ann", "workers", "-o", "json")
            assert listed.returncode == 0, listed.stderr
            return sorted(w["connected"] for w in json.loads(listed.stdout))
        eventually("both Workers are attached", lambda: connected() == [True, True])
        trainctl = os.path.join(house.bin, "client/trainctl")
        watch = subprocess.Popen(
            [trainctl, "--server", house.server, "--tls", tokens.tls, "--token", tokens.path("eve"), "events", "mine",
             "--follow"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=house.environment())
        stream = http.client.HTTPSConnection("127.0.0.1", int(house.http.rsplit(":", 1)[1]), timeout=30,
                                             context=tokens.context())
        with open(tokens.path("eve")) as f:
            stream.request("GET", "/v1/jobs/mine/events", headers={"Authorization": "Bearer " + f.read().strip()})
        page = stream.getresponse()
        assert page.status == 200 and page.readline() == b"retry: 2000\n", page.status
        assert watch.poll() is None
        traind(house, "token", "revoke", "machine", "--state", house.state)
        traind(house, "token", "revoke", "eve", "--state", house.state)
        eventually("the Worker whose token was revoked is cut off; the other is not",
                   lambda: connected() == [False, True], 15)
        eventually("the stream over HTTP ends", lambda: page.readline() == b"", 30)
        _, said = watch.communicate(timeout=30)
        assert watch.returncode != 0 and "revoked" in said, (watch.returncode, said)
        assert "revoked" in log_of(house)


main()
