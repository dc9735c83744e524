"""Starts moto's server with rights and signatures checked, and runs what is tested of a bucket against it."""
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

SETUP = """
import boto3, json, sys
at = dict(endpoint_url=sys.argv[1], region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="y")
iam, s3 = boto3.client("iam", **at), boto3.client("s3", **at)
iam.create_user(UserName="traind")
key = iam.create_access_key(UserName="traind")["AccessKey"]
rights = [{"Effect": "Allow", "Action": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:ListBucket",
                                         "s3:AbortMultipartUpload"], "Resource": "*"}]
iam.put_user_policy(UserName="traind", PolicyName="p",
                    PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": rights}))
s3.create_bucket(Bucket="bucket")
print(json.dumps([key["AccessKeyId"], key["SecretAccessKey"]]))
"""
CALLS_OF_SETUP = 4  # from then on each call needs a signature and a right


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(python, log):
    port = free_port()
    server = subprocess.Popen(
        [python, "-c", f"from moto.server import main; main(['-H', '127.0.0.1', '-p', '{port}'])"], stdout=log, stderr=log,
        env={**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": str(CALLS_OF_SETUP)}, start_new_session=True)
    for _ in range(300):
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.1)
    url = f"http://127.0.0.1:{port}"
    out = subprocess.run([python, "-c", SETUP, url], capture_output=True, text=True, check=True).stdout
    key, secret = json.loads(out)
    os.environ.update({"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret,
                       "AWS_REGION": "us-east-1", "TRAIND_TEST_S3": "s3://bucket"})
    return server


def runs():
    tests = "bazel-bin/tests/server"
    yield [f"{tests}/objects/object_store_test"], f"{tests}/objects/object_store_test.runfiles/traind"
    yield [f"{tests}/archive/file_mirror_test"], f"{tests}/archive/file_mirror_test.runfiles/traind"
    yield [sys.executable, "tests/e2e/bucket_test.py"], "."


def main():
    passed = failed = 0
    with tempfile.TemporaryFile("w+") as log:
        server = start(sys.argv[1], log)
        try:
            for command, folder in runs():
                command = [os.path.abspath(part) if os.path.exists(part) else part for part in command]
                done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False,
                                      env={**os.environ, "TRAIND_BIN": os.path.abspath("bazel-bin")})
                good = re.findall(r"^\[ +(?:OK|PASSED) +\] (?!\d+ test)(.*)$", done.stdout, re.M)
                bad = set(re.findall(r"^\[ +FAILED +\] (?!\d+ test)([^(\n]*)", done.stdout, re.M))
                passed += len(good)
                failed += len(bad) or (1 if done.returncode else 0)
                if done.returncode:
                    print(done.stdout[-8000:], done.stderr[-4000:])
                print(f"{os.path.basename(command[-1])}: {len(good)} passed, {len(bad)} failed", flush=True)
        finally:
            os.killpg(server.pid, signal.SIGKILL)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
