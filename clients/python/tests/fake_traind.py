"""A small HTTP server that answers as traind does, for tests of the client.

    with FakeTraind() as fake:
        fake.replies["POST /v1/jobs"] = [(503, error("UNAVAILABLE", "later")), (200, {...})]

Each reply of a list answers once, the last one again and again. `fake.calls` has what was asked.
"""
import http.server
import json
import threading


def error(status, message, details=()):
    return {"error": {"code": 400, "status": status, "message": message, "details": list(details)}}


def event(job, name="job"):
    return f"id: {job.get('version', 1)}\nevent: {name}\ndata: {json.dumps(job)}\n\n"


class Call:
    def __init__(self, method, path, headers, body):
        self.method, self.path, self.headers, self.body = method, path, headers, body

    def json(self):
        return json.loads(self.body)


class _Handler(http.server.BaseHTTPRequestHandler):
    def _answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        fake = self.server.fake
        fake.calls.append(Call(self.command, self.path, self.headers, self.rfile.read(length).decode()))
        known = fake.replies.get(f"{self.command} {self.path.split('?')[0]}")
        if known is None:
            known = [(404, error("NOT_FOUND", f"no route {self.command} {self.path}"))]
        status, content = known.pop(0) if isinstance(known, list) and len(known) > 1 else known[0]
        if content is None:  # the connection breaks
            self.close_connection = True
            return
        text = content if isinstance(content, (str, bytes)) else json.dumps(content)
        self.send_response(status)
        self.send_header("Content-Type", "text/event-stream" if str(text).startswith("id: ") else "application/json")
        self.end_headers()
        self.wfile.write(text if isinstance(text, bytes) else text.encode())

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer

    def log_message(self, *arguments):
        pass


class FakeTraind:
    def __init__(self):
        self.replies, self.calls = {}, []
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.fake = self
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def called(self, method, path):
        return [c for c in self.calls if c.method == method and c.path.split("?")[0] == path]
