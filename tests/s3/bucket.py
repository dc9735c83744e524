"""A bucket in memory that speaks the part of S3's protocol that traind uses, for tests.

It checks each request's signature (AWS Signature Version 4, by the document, in Python alone) and the digest of its
content. Faults are asked for by POST /faults with a JSON object, and hold for the requests that come after:

    {"fail": N}          the next N requests get 503
    {"lose": N}          the next N PUTs are carried out, and get 503
    {"ignore_once": b}   whether If-None-Match is ignored
    {"away": b}          whether every request gets 503
    {"slow": S}          each request takes S seconds longer

Started as a program it prints its port: bucket.py [--page N]
"""
import argparse
import email.utils
import hashlib
import hmac
import http.server
import json
import re
import sys
import threading
import time
import urllib.parse

KEY, SECRET, REGION, BUCKET = "test-key", "test-secret", "us-east-1", "bucket"


class Bucket:
    def __init__(self, page=1000):
        self.page = page
        self.objects = {}  # key -> (content, mtime header, etag)
        self.uploads = {}  # upload id -> (key, mtime header, {number: content})
        self.faults = {"fail": 0, "lose": 0, "ignore_once": False, "away": False, "slow": 0}
        self.counts = {}
        self.lock = threading.Lock()


def signature(method, path, query, headers, signed, date, scope_date):
    names = signed.split(";")
    canonical = "\n".join([
        method, path, query, "".join(f"{n}:{' '.join(headers[n].split())}\n" for n in names), signed,
        headers["x-amz-content-sha256"]])
    scope = f"{scope_date}/{REGION}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", date, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + SECRET).encode()
    for word in (scope_date, REGION, "s3", "aws4_request"):
        key = hmac.new(key, word.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    bucket: Bucket

    def log_message(self, *_):
        pass

    def answer(self, code, content=b"", headers=None):
        self.send_response(code)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def error(self, code, name, message="no"):
        self.answer(code, f"<Error><Code>{name}</Code><Message>{escape(message)}</Message></Error>".encode())

    # Returns why the request is refused, or "".
    def refusal(self, content):
        headers = {k.lower(): v for k, v in self.headers.items()}
        match = re.fullmatch(
            r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, ?SignedHeaders=([^,]+), ?"
            r"Signature=([0-9a-f]{64})", headers.get("authorization", ""))
        if not match:
            return "AccessDenied"
        key, day, region, signed, given = match.groups()
        if key != KEY or region != REGION:
            return "InvalidAccessKeyId"
        missing = {"host", "x-amz-date", "x-amz-content-sha256"} - set(signed.split(";"))
        # A condition that is not signed could be taken away on the way.
        missing |= {n for n in headers if n in ("if-none-match", "x-amz-meta-mtime")} - set(signed.split(";"))
        if missing:
            return f"AccessDenied: {sorted(missing)} are not signed"
        path, _, query = self.path.partition("?")
        pairs = sorted(p if "=" in p else p + "=" for p in query.split("&") if p)
        if given != signature(self.command, path, "&".join(pairs), headers, signed, headers["x-amz-date"], day):
            return "SignatureDoesNotMatch"
        if headers["x-amz-content-sha256"] != hashlib.sha256(content).hexdigest():
            return "XAmzContentSHA256Mismatch"
        return ""

    def handle_one(self):
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        bucket = self.bucket
        path, _, query_text = self.path.partition("?")
        if path == "/faults":
            with bucket.lock:
                bucket.faults.update(json.loads(content or b"{}"))
                return self.answer(200, json.dumps({"counts": bucket.counts, "keys": sorted(bucket.objects)}).encode())
        with bucket.lock:
            bucket.counts[self.command] = bucket.counts.get(self.command, 0) + 1
            slow = bucket.faults["slow"]
            failing = bucket.faults["away"] or bucket.faults["fail"] > 0
            bucket.faults["fail"] = max(0, bucket.faults["fail"] - 1)
        if slow:
            time.sleep(slow)
        if failing:
            return self.error(503, "SlowDown")
        refusal = self.refusal(content)
        if refusal:
            return self.error(403, refusal)
        name, _, key = path.lstrip("/").partition("/")
        if name != BUCKET:
            return self.error(404, "NoSuchBucket")
        key = urllib.parse.unquote(key)
        query = dict(urllib.parse.parse_qsl(query_text, keep_blank_values=True))
        with bucket.lock:
            lost = self.command == "PUT" and bucket.faults["lose"] > 0
            if lost:
                bucket.faults["lose"] -= 1
            done = self.act(bucket, key, query, content)
        if lost:
            return self.error(503, "InternalError")
        return done()

    do_GET = do_PUT = do_POST = do_DELETE = handle_one

    # Changes the bucket at once, and returns what answers.
    def act(self, bucket, key, query, content):
        mtime = self.headers.get("x-amz-meta-mtime", "")
        if self.command == "GET" and not key:
            return self.list(bucket, query)
        if self.command == "GET":
            if key not in bucket.objects:
                return lambda: self.error(404, "NoSuchKey")
            stored, kept, etag = bucket.objects[key]
            return lambda: self.answer(200, stored, {"ETag": etag, **({"x-amz-meta-mtime": kept} if kept else {})})
        if self.command == "DELETE":
            if "uploadId" in query:
                bucket.uploads.pop(query["uploadId"], None)
            else:
                bucket.objects.pop(key, None)
            return lambda: self.answer(204)
        etag = f'"{hashlib.md5(content).hexdigest()}"'
        if self.command == "PUT" and "partNumber" in query:
            if query["uploadId"] not in bucket.uploads:
                return lambda: self.error(404, "NoSuchUpload")
            bucket.uploads[query["uploadId"]][2][int(query["partNumber"])] = content
            return lambda: self.answer(200, b"", {"ETag": etag})
        if self.command == "PUT":
            once = self.headers.get("If-None-Match") == "*" and not bucket.faults["ignore_once"]
            if once and key in bucket.objects:
                return lambda: self.error(412, "PreconditionFailed")
            bucket.objects[key] = (content, mtime, etag)
            return lambda: self.answer(200, b"", {"ETag": etag})
        if "uploads" in query:
            upload = f"upload-{len(bucket.uploads) + 1}/+&"  # what a client must encode
            bucket.uploads[upload] = (key, mtime, {})
            text = f"<InitiateMultipartUploadResult><UploadId>{escape(upload)}</UploadId></InitiateMultipartUploadResult>"
            return lambda: self.answer(200, text.encode())
        key, mtime, parts = bucket.uploads.pop(query["uploadId"])
        named = re.findall(r"<PartNumber>(\d+)</PartNumber><ETag>([^<]*)</ETag>", content.decode())
        tags = [f'"{hashlib.md5(parts[int(n)]).hexdigest()}"' for n, _ in named]
        if [t for _, t in named] != tags or len(named) != len(parts):
            return lambda: self.error(400, "InvalidPart")
        bucket.objects[key] = (b"".join(parts[int(n)] for n, _ in named), mtime, f'"parts-{len(parts)}"')
        return lambda: self.answer(200, b"<CompleteMultipartUploadResult></CompleteMultipartUploadResult>")

    def list(self, bucket, query):
        keys = [k for k in sorted(bucket.objects) if k.startswith(query.get("prefix", ""))]
        begin = int(query.get("continuation-token", "0").rstrip("=") or 0)
        page = keys[begin:begin + bucket.page]
        more = begin + bucket.page < len(keys)
        text = f"<ListBucketResult><IsTruncated>{'true' if more else 'false'}</IsTruncated>"
        if more:
            text += f"<NextContinuationToken>{begin + bucket.page}==</NextContinuationToken>"
        for key in page:
            content, _, etag = bucket.objects[key]
            text += (f"<Contents><Key>{escape(urllib.parse.quote(key))}</Key><Size>{len(content)}</Size>"
                     f"<ETag>{escape(etag)}</ETag><LastModified>{email.utils.formatdate()}</LastModified></Contents>")
        return lambda: self.answer(200, (text + "</ListBucketResult>").encode())


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """Clients that are killed break their connections."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def start(page=1000, port=0):
    """Returns the server, whose bucket is `.bucket`; it serves until .shutdown()."""
    bucket = Bucket(page)
    handler = type("Of", (Handler,), {"bucket": bucket})
    server = Server(("127.0.0.1", port), handler)
    server.bucket = bucket
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def environment(port):
    """The variables by which traind finds it."""
    return {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": REGION, "AWS_SESSION_TOKEN": "", "AWS_CA_BUNDLE": ""}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--page", type=int, default=1000)
    served = start(parser.parse_args().page)
    print(served.server_address[1], flush=True)
    sys.stdin.read()  # until whoever has started it is gone
