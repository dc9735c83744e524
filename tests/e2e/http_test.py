"""The HTTP port of a real traind: calls as JSON, errors, events, and who is kept out. No Worker runs."""
import contextlib
import http.client
import json
import shutil
import socket
import subprocess
import threading
import time

from tests.cases import case, main
from tests.e2e.harness import House, eventually

SPEC = """api: v1
name: tiny
task: {type: classification, metric: accuracy}
data:
  train: train.csv
  test: test.csv
  target: y
model: {mlp: {hidden: [8]}}
train: {epochs: 2}
budget: {time: 60s}
"""
TRAIN = "a,b,y\n" + "".join(f"{i},{i % 7},{'no' if i % 2 else 'yes'}\n" for i in range(60))


@contextlib.contextmanager
def traind():
    with House(standalone=False) as house:
        house.write("train.csv", TRAIN)
        house.write("test.csv", "a,b\n1,2\n3,4\n")
        yield house.start("--http", "127.0.0.1:0")


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = {k.lower(): v for k, v in response.getheaders()}
        self.body = response.read()

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def reasons(self):
        return [d["reason"] for d in self.json["error"]["details"]]


def ask(house, method, path, body=None, **headers):
    connection = http.client.HTTPConnection(house.http, timeout=20)
    try:
        if isinstance(body, dict):
            body = json.dumps(body)
        connection.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
        return Answer(connection.getresponse())
    finally:
        connection.close()


def submit(house, spec=SPEC, **headers):
    answer = ask(house, "POST", "/v1/jobs", spec, **headers)
    assert answer.status == 200, answer.body
    return answer.json


class Events:
    """The events of a Job; ends with the stream."""

    def __init__(self, house, job, **headers):
        self.connection = http.client.HTTPConnection(house.http, timeout=20)
        self.connection.request("GET", f"/v1/jobs/{job}/events",
                                headers={k.replace("_", "-"): v for k, v in headers.items()})
        self.response = self.connection.getresponse()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.response.close()
        self.connection.close()

    def next(self):
        """(id, Job), None at the end."""
        fields = {}
        while True:
            line = self.response.readline().decode()
            if not line:
                return None
            if line == "\n" and "data" in fields:
                assert fields["event"] == "job", fields
                return fields["id"], json.loads(fields["data"])
            key, _, value = line.rstrip("\n").partition(": ")
            fields[key] = value


@case("A Job goes its way by JSON: submit, get, list, change, pin, cancel, delete")
def _():
    with traind() as house:
        reply = submit(house)
        job = reply["job"]["id"]
        assert reply["created"] and reply["job"]["state"] == "QUEUED", reply
        got = ask(house, "GET", f"/v1/jobs/{job}").json
        assert got["id"] == job and got["report"], got
        assert ask(house, "GET", "/v1/jobs/tiny").json["id"] == job
        changed = ask(house, "PATCH", f"/v1/jobs/{job}",
                      {"priority": 3, "set_labels": {"team": "a\U0001F600"}}).json
        assert changed["priority"] == 3 and changed["labels"] == {"team": "a\U0001F600"}, changed
        paused = ask(house, "POST", f"/v1/jobs/{job}:pause").json
        assert paused["id"] == job
        ask(house, "POST", f"/v1/jobs/{job}:resume", "{}")
        assert ask(house, "DELETE", f"/v1/jobs/{job}").json["error"]["status"] == "FAILED_PRECONDITION"
        assert ask(house, "POST", f"/v1/jobs/{job}:cancel").json["state"] == "CANCELLED"
        assert ask(house, "POST", f"/v1/jobs/{job}:pin").json["pinned"] is True
        assert ask(house, "POST", f"/v1/jobs/{job}:unpin").json["pinned"] is False
        # One conversion: trainctl prints the same.
        assert ask(house, "GET", f"/v1/jobs/{job}").json == house.job(job)
        assert ask(house, "POST", f"/v1/jobs/{job}:cancel").json["state"] == "CANCELLED"
        assert ask(house, "POST", f"/v1/jobs/{job}:finish").status == 400
        assert ask(house, "GET", f"/v1/jobs/{job}/metrics").json["points"] == []
        assert ask(house, "DELETE", f"/v1/jobs/{job}").json["id"] == job
        assert ask(house, "GET", f"/v1/jobs/{job}").status == 404


@case("trainctl tells who takes the HTTP port for the other one which address it needs")
def _():
    with traind() as house:
        wrong = house.cli("list", server=house.http)
        assert wrong.returncode == 7 and "grpc=HOST:PORT" in wrong.stderr, wrong
        nobody = house.cli("list", server="127.0.0.1:1")
        assert nobody.returncode == 7 and "traind --standalone" in nobody.stderr, nobody


@case("The list has filters and pages")
def _():
    with traind() as house:
        jobs = []
        for i in range(5):
            spec = SPEC.replace("tiny", f"tiny-{i}") + f"labels: {{team: {'ab'[i % 2]}}}\n"
            jobs.insert(0, submit(house, spec)["job"]["id"])
        first = ask(house, "GET", "/v1/jobs?page_size=2").json
        second = ask(house, "GET", f"/v1/jobs?page_size=2&page_token={first['next_page_token']}").json
        assert [j["id"] for j in first["jobs"] + second["jobs"]] == jobs[:4]
        for query in ("labels=team=b", "labels.team=b"):
            found = ask(house, "GET", f"/v1/jobs?{query}").json["jobs"]
            assert [j["id"] for j in found] == [jobs[1], jobs[3]], (query, found)
        ask(house, "POST", f"/v1/jobs/{jobs[0]}:cancel")
        for query in ("states=CANCELLED,FAILED", "states=CANCELLED&states=FAILED"):
            found = ask(house, "GET", f"/v1/jobs?{query}").json["jobs"]
            assert [j["id"] for j in found] == [jobs[0]], (query, found)
        assert ask(house, "GET", "/v1/jobs?states=DANCING").reasons == ["INVALID_FIELD"]


@case("A spec is taken as YAML, as JSON, and inside a request; the same key makes one Job")
def _():
    with traind() as house:
        as_json = {"api": "v1", "name": "tiny", "task": {"type": "classification"},
                   "data": {"train": "train.csv", "test": "test.csv", "target": "y"},
                   "budget": {"time": "60s"}}
        first = submit(house, SPEC, Content_Type="application/yaml", Idempotency_Key="k")
        again = submit(house, SPEC, Content_Type="application/yaml", Idempotency_Key="k")
        assert again["job"]["id"] == first["job"]["id"] and not again["created"]
        other = ask(house, "POST", "/v1/jobs", json.dumps(as_json), Idempotency_Key="k")
        assert other.status == 409 and other.json["error"]["status"] == "ALREADY_EXISTS", other.body
        assert submit(house, json.dumps(as_json, indent="\t"))["created"]
        wrapped = submit(house, json.dumps({"spec": as_json, "owner": "ada", "request_id": "r"}))
        assert wrapped["job"]["owner"] == "ada"
        plan = ask(house, "POST", "/v1/plan", SPEC).json
        assert plan["resolved"]["name"] == "tiny" and plan["plan"]["folds"] > 0, plan


@case("Each mistake of a spec has a detail with its place")
def _():
    with traind() as house:
        wrong = SPEC.replace("epochs: 2", "epoch: 2").replace("time: 60s", "time: 60")
        answer = ask(house, "POST", "/v1/jobs", wrong)
        details = answer.json["error"]["details"]
        assert answer.status == 400 and len(details) == 2, answer.body
        assert details[0]["metadata"]["field"] == "train.epoch", details
        assert (details[0]["metadata"]["line"], details[0]["metadata"]["column"]) == ("9", "9")
        assert details[1]["metadata"]["line"] == "10", details
        # Found by the call itself, in the wrapped form, too.
        wrapped = ask(house, "POST", "/v1/jobs", "spec:\n  " + SPEC.replace(
            "target: y", "target: z").replace("\n", "\n  "))
        assert wrapped.reasons == ["INVALID_FIELD"], wrapped.body
        assert wrapped.json["error"]["details"][0]["metadata"]["line"] == "8", wrapped.body
        for body in ('{"api": ', "[1, 2]", "\x00\x01", "a: &a [*a]", "{" * 100):
            assert ask(house, "POST", "/v1/jobs", body).status == 400, body
        assert ask(house, "GET", "/v1/jobs").json["jobs"] == []


@case("What is not there is told as such")
def _():
    with traind() as house:
        assert ask(house, "GET", "/v1/jobs/nobody").json["error"]["status"] == "NOT_FOUND"
        assert ask(house, "GET", "/v1/jobs/nobody/events").status == 404
        assert ask(house, "GET", "/v1/jobs/nobody/metrics").status == 404
        assert ask(house, "POST", "/v1/jobs/nobody:cancel").status == 404
        assert ask(house, "GET", "/v2/jobs").reasons == ["UNKNOWN_PATH"]
        assert ask(house, "GET", "/assets/../../etc/passwd").status == 404
        answer = ask(house, "POST", "/v1/workers")
        assert answer.status == 405 and answer.headers["allow"] == "GET", answer.headers
        assert ask(house, "GET", "/v1/jobs?colour=red").reasons == ["INVALID_FIELD"]
        job = submit(house)["job"]["id"]
        for name in ("predictions.csv", "traind.db", "..%2Fmanifest.json"):
            assert ask(house, "GET", f"/v1/jobs/{job}/artifacts/{name}").status in (400, 404), name


@case("Pages of other sites, and other names of this host, are kept out")
def _():
    with traind() as house:
        for headers in ({"Host": "evil.example"}, {"Host": "evil.example:" + house.http.split(":")[1]}):
            answer = ask(house, "GET", "/v1/jobs", **headers)
            assert answer.status == 403 and answer.reasons == ["BAD_HOST"], answer.body
        for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"},
                        {"Sec_Fetch_Site": "cross-site"}):
            answer = ask(house, "POST", "/v1/jobs", SPEC, **headers)
            assert answer.status == 403 and answer.reasons == ["BAD_ORIGIN"], answer.body
        assert ask(house, "GET", "/v1/jobs").json["jobs"] == []
        submit(house, Origin="http://" + house.http)
        answer = ask(house, "GET", "/")
        assert "access-control-allow-origin" not in answer.headers
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'self';") and "frame-ancestors 'none'" in policy, policy


@case("A body that is too large is refused, and half a request does not hold up others")
def _():
    with traind() as house:
        answer = ask(house, "POST", "/v1/jobs", "x" * (5 << 20))
        assert answer.status == 413 and answer.reasons == ["BODY_TOO_LARGE"], answer.body
        host, port = house.http.split(":")
        slow = [socket.create_connection((host, int(port))) for _ in range(50)]
        for connection in slow:
            connection.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\nhalf")
        assert ask(house, "GET", "/v1/jobs").status == 200
        for connection in slow:
            connection.close()


@case("The page is there, and so is health")
def _():
    with traind() as house:
        page = ask(house, "GET", "/")
        assert page.status == 200 and page.headers["content-type"].startswith("text/html"), page.headers
        packed = ask(house, "GET", "/", Accept_Encoding="gzip")
        assert packed.headers["content-encoding"] == "gzip" and packed.body[:2] == b"\x1f\x8b"
        assert ask(house, "GET", "/", If_None_Match=page.headers["etag"]).status == 304
        assert ask(house, "GET", "/healthz").body == b"ok\n"
        assert ask(house, "GET", "/readyz").status == 200
        assert ask(house, "HEAD", "/v1/jobs").status == 200


@case("An answer that the client has is not sent again")
def _():
    with traind() as house:
        job = submit(house)["job"]["id"]
        ask(house, "POST", f"/v1/jobs/{job}:cancel")
        for path in (f"/v1/jobs/{job}", "/v1/jobs"):
            answer = ask(house, "GET", path)
            same = ask(house, "GET", path, If_None_Match=answer.headers["etag"])
            assert same.status == 304 and same.body == b"", same.body
        ask(house, "POST", f"/v1/jobs/{job}:pin")
        assert ask(house, "GET", f"/v1/jobs/{job}", If_None_Match=answer.headers["etag"]).status == 200


@case("Events tell each change, go on behind the last one, and end with the Job")
def _():
    with traind() as house:
        job = submit(house)["job"]["id"]
        with Events(house, job) as events:
            assert events.response.getheader("content-type") == "text/event-stream"
            first, state = events.next()
            assert state["id"] == job and state["state"] == "QUEUED"
            ask(house, "PATCH", f"/v1/jobs/{job}", {"priority": 7})
            second, state = events.next()
            assert state["priority"] == 7 and second != first
        # Whoever has the last one gets the next change, not that one again.
        with Events(house, job, Last_Event_ID=second) as events, Events(house, "tiny") as others:
            assert others.next()[0] == second
            ask(house, "POST", f"/v1/jobs/{job}:cancel")
            last, state = events.next()
            assert state["state"] == "CANCELLED"
            assert events.next() is None
            assert others.next()[1]["state"] == "CANCELLED"
        with Events(house, job) as events:
            assert events.next() == (last, ask(house, "GET", f"/v1/jobs/{job}").json)
            assert events.next() is None
        with Events(house, job, Last_Event_ID=last) as events:
            assert events.response.status == 204


@case("Streams beyond the limit are refused, and those that are gone make room")
def _():
    with traind() as house:
        job = submit(house)["job"]["id"]
        streams = [Events(house, job) for _ in range(256)]
        assert ask(house, "GET", f"/v1/jobs/{job}/events").reasons == ["TOO_MANY_STREAMS"]
        assert ask(house, "GET", f"/v1/jobs/{job}").status == 200
        got = []
        threads = [threading.Thread(target=lambda s=s: got.append((s.next(), s.next()))) for s in streams]
        for thread in threads:
            thread.start()
        ask(house, "POST", f"/v1/jobs/{job}:cancel")
        for thread in threads:
            thread.join()
        assert {second[1]["state"] for _, second in got} == {"CANCELLED"}, got[0]
        for stream in streams:
            stream.__exit__()


@case("traind stops while requests and streams are open")
def _():
    with traind() as house:
        job = submit(house)["job"]["id"]
        with Events(house, job) as events:
            events.next()
            assert house.kill_daemon(15) == 0
            assert events.next() is None
        house.start("--http", "127.0.0.1:0")
        eventually("the Job is there again", lambda: ask(house, "GET", f"/v1/jobs/{job}").status == 200)


def samples(text):
    """name{labels} -> value of a page of metrics, whose form is checked."""
    found, types, helps = {}, {}, set()
    for line in text.splitlines():
        if line.startswith("# HELP "):
            helps.add(line.split()[2])
            continue
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert name not in types and name in helps, line
            types[name] = kind
            assert kind != "counter" or name.endswith("_total"), line
            continue
        key, value = line.rsplit(" ", 1)
        name = key.split("{")[0]
        base = next((n for n in (name, name.rsplit("_", 1)[0]) if n in types), None)
        assert base and (base == name) == (types[base] != "histogram"), line
        assert name.startswith(("traind_", "process_")) and key not in found, line
        found[key] = float(value)
    return found


@case("The page of metrics is as Prometheus wants it, and tells of Jobs, calls and the process")
def _():
    with traind() as house:
        job = submit(house)["job"]["id"]
        other = submit(house, SPEC.replace("tiny", "other"))["job"]["id"]
        ask(house, "POST", f"/v1/jobs/{other}:cancel")
        house.job(job)
        answer = ask(house, "GET", "/metrics")
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4"), answer.headers
        found = samples(answer.body.decode())
        assert found['traind_jobs{state="QUEUED"}'] == 1, found
        assert found['traind_jobs_ended_total{state="CANCELLED",reason="CANCELLED_BY_USER"}'] == 1, found
        assert 0 < found['traind_job_deadline_slack_seconds{job="%s"}' % job] <= 60, found
        assert found['traind_http_requests_total{method="Submit",code="200"}'] == 2, found
        assert found['traind_http_request_duration_seconds_count{method="Submit"}'] == 2, found
        assert found['traind_http_request_duration_seconds_bucket{method="Submit",le="+Inf"}'] == 2, found
        assert found['traind_grpc_requests_total{method="GetJob",code="OK"}'] == 1, found
        assert found["traind_store_commit_seconds_count"] >= 3 and found["traind_events_total"] >= 3, found
        assert 0 <= found["traind_store_log_bytes"] < 64 << 20, found
        assert found["process_resident_memory_bytes"] > 1 << 20 and found["process_open_fds"] > 3, found
        assert abs(found["process_start_time_seconds"] - time.time()) < 60, found
        assert ask(house, "POST", "/metrics").status == 405
        if not shutil.which("promtool"):
            print("promtool is not installed (Debian package prometheus): only the form was checked here")
            return
        checked = subprocess.run(["promtool", "check", "metrics"], input=answer.body, capture_output=True)
        assert checked.returncode == 0, (checked.stdout, checked.stderr)


@case("openapi.json describes what is served")
def _():
    with traind() as house:
        api = ask(house, "GET", "/openapi.json").json
        assert api["openapi"].startswith("3.0") and len(api["paths"]) > 15, list(api["paths"])
        job = submit(house)["job"]["id"]
        schema = api["components"]["schemas"]["Job"]["properties"]
        assert list(schema) == list(ask(house, "GET", f"/v1/jobs/{job}").json)
        for path, operations in api["paths"].items():
            for method in operations:
                answer = ask(house, method.upper(), path.replace("{id}", "nobody").replace("{name}", "x"))
                assert answer.status in (200, 400, 404), (method, path, answer.body)
                assert b"UNKNOWN_PATH" not in answer.body, (method, path)


@case("Without --http there is no port; addresses beyond loopback need --insecure")
def _():
    with House(standalone=False) as house:
        house.start()
        assert house.http == "-"
        assert house.kill_daemon(15) == 0
        house.start("--http", "0.0.0.0:0", "--insecure", "--http-host", "train.example")
        port = int(house.http.split(":")[1])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        for name, status in (("train.example", 200), ("10.1.1.1", 200), ("evil.example", 403)):
            connection.request("GET", "/healthz", headers={"Host": name})
            response = connection.getresponse()
            response.read()
            assert response.status == status, (name, response.status)
            if status == 403:
                break
        connection.close()


main()
