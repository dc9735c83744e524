"""Calls to a traind, each written down as a line of JSON: a history, which checker.py judges.

    {"client": 1, "op": "submit", "job": null, "input": {...}, "invoke": 12.031, "return": 12.034,
     "wall": 1789.2, "outcome": "ok", "output": {...}}

`invoke` and `return` are seconds of one monotonic clock, `wall` is the time of day of `invoke`. The outcome is
  ok       it was done, and `output` is the answer;
  fail     it was not done, and `error` tells why;
  unknown  nobody knows: the connection was cut, or the answer was late.
Faults and the run's own milestones are lines of the same form.
"""
import http.client
import json
import os
import socket
import threading
import time

from tests.e2e.harness import moment, sha256

# traind says with these that it did not do what was asked.
REFUSED = {"INVALID_ARGUMENT", "FAILED_PRECONDITION", "NOT_FOUND", "ALREADY_EXISTS", "RESOURCE_EXHAUSTED",
           "ABORTED", "PERMISSION_DENIED", "UNIMPLEMENTED"}


class Refused(Exception):
    """It was not done."""


class History:
    """Appends lines to a file. Threads: safe."""

    def __init__(self, path):
        self.file, self.lock = open(path, "w"), threading.Lock()

    def add(self, line):
        with self.lock:
            self.file.write(json.dumps(line) + "\n")
            self.file.flush()

    def record(self, client, op, job, values, function):
        """Calls function() and writes down what became of it; its value, None where it has none."""
        line = {"client": client, "op": op, "job": job, "input": values, "invoke": time.monotonic(),
                "wall": time.time()}
        value = None
        try:
            value = function()
            line.update(outcome="ok", output=value)
        except Refused as e:
            line.update(outcome="fail", error=str(e))
        except ConnectionRefusedError:
            line.update(outcome="fail", error="nobody listens")
        except (OSError, http.client.HTTPException, ValueError) as e:
            line.update(outcome="unknown", error=repr(e))
        line["return"] = time.monotonic()
        self.add(line)
        return value

    def close(self):
        self.file.close()


class Client:
    """The calls of one client, one after the other, over HTTP. `house` tells where traind is."""

    def __init__(self, house, history, number, timeout_s=3):
        self.house, self.history, self.number, self.timeout_s = house, history, number, timeout_s

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection(self.house.http, timeout=self.timeout_s)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, headers or {})
            answer = json.loads(connection.getresponse().read())
        except socket.timeout:
            raise OSError("no answer in time") from None
        finally:
            connection.close()
        if "error" in answer:
            error = answer["error"]
            text = f"{error['status']}: {error['message']}"
            raise Refused(text) if error["status"] in REFUSED else OSError(text)
        return answer

    def call(self, op, job, values, function):
        return self.history.record(self.number, op, job, values, function)

    # ---- calls

    def submit(self, key, spec, other=False):
        """other: the spec is not the one that the key had first."""
        def submit():
            answer = self.ask("POST", "/v1/jobs", spec, {"Idempotency-Key": key})
            return {"job": answer["job"]["id"], "created": answer["created"]}
        return self.call("submit", None, {"key": key, "other": other}, submit)

    def finish(self, job):
        return self.call("finish", job, {}, lambda: view(self.ask("POST", f"/v1/jobs/{job}:finish")))

    def cancel(self, job):
        return self.call("cancel", job, {}, lambda: view(self.ask("POST", f"/v1/jobs/{job}:cancel")))

    def label(self, job, value):
        return self.call("label", job, {"value": value}, lambda: view(
            self.ask("PATCH", f"/v1/jobs/{job}", {"set_labels": {"n": str(value)}})))

    def get(self, job):
        return self.call("get", job, {}, lambda: view(self.ask("GET", f"/v1/jobs/{job}")))

    def list(self):
        def list_all():
            jobs, token = [], ""
            while True:
                page = self.ask("GET", f"/v1/jobs?page_size=500&page_token={token}")
                jobs += [{k: j[k] for k in ("id", "name", "state", "end_reason")} for j in page["jobs"]]
                token = page["next_page_token"]
                if not token:
                    return {"jobs": jobs}
        return self.call("list", None, {}, list_all)

    def events(self, job, after=0):
        def events():
            answer = self.ask("GET", f"/v1/jobs/{job}/history?after_sequence={after}")
            return {"events": [[e["sequence"], e["at"], e["kind"], e["detail"]] for e in answer["events"]]}
        return self.call("events", job, {"after": after}, events)

    def metrics(self, job, after=0):
        def metrics():
            answer = self.ask("GET", f"/v1/jobs/{job}/metrics?after_sequence={after}")
            return {"points": [[p["sequence"], p["at"], p["fold"], p["attempt"], p["step"], p["name"], p["value"]]
                               for p in answer["points"]], "dropped": answer["dropped"]}
        return self.call("metrics", job, {"after": after}, metrics)

    def disk(self, job):
        """The standing Prediction, read without traind."""
        return self.call("disk", job, {}, lambda: standing(os.path.join(self.house.state, "jobs", job)))


def view(job):
    """What a history keeps of a Job."""
    prediction = job["predictions"]
    label = job["labels"].get("n")
    return {"id": job["id"], "name": job["name"], "state": job["state"], "end_reason": job["end_reason"],
            "version": job["version"], "label": int(label) if label else 0,
            "deadline": moment(job["deadline"]) if job["deadline"] else None,
            "finished_at": moment(job["finished_at"]) if job["finished_at"] else None,
            "prediction": {k: prediction[k] for k in ("number", "sha256")} if prediction else None}


def standing(folder):
    """The Prediction to which `current` led at first; {}: there is none."""
    link = os.path.join(folder, "current")
    try:
        target, switched = os.readlink(link), os.lstat(link).st_mtime
    except FileNotFoundError:
        return {}
    at = os.path.join(folder, target)
    try:
        with open(os.path.join(at, "manifest.json")) as f:
            manifest = json.load(f)
        digest = sha256(os.path.join(at, "predictions.csv"))
    except FileNotFoundError:
        if os.readlink(link) != target:
            raise  # it was replaced, and went meanwhile: nothing was read
        return {"number": None, "missing": target}
    except ValueError:
        return {"number": None, "missing": f"{target}: torn manifest"}
    scores, members = manifest["scores"], manifest["members"]
    return {"number": manifest["number"], "quality": manifest["quality"], "metric": manifest["metric"],
            "score": scores["oof"], "comparable": scores["comparable"],
            "complete": sum(m["complete"] for m in members),
            "folds": sorted({m["fold"] for m in members if m["weight"] > 0}),
            "told": manifest["predictions"]["sha256"], "digest": digest, "switched": switched}
