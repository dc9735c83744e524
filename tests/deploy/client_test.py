"""The archive of the C++ client library, used as a stranger would: without Bazel, against a real traind."""
import os
import shutil
import subprocess
import tarfile
import tempfile

from tests.cases import Skip, case, main
from tests.e2e.harness import House

ARCHIVE = os.path.join(os.getcwd(), "deploy/client/traind-client-linux-x86_64.tar.gz")
DIGITS = os.path.join(os.getcwd(), "examples/digits")


def run(*command, **options):
    result = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert result.returncode == 0, (command, result.stdout[-4000:], result.stderr[-4000:])
    return result.stdout


def unpacked():
    folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
    with tarfile.open(ARCHIVE) as tar:
        tar.extractall(folder)
    return os.path.join(folder, "traind-client-linux-x86_64")


PREFIX = unpacked()


def made_by_pkg_config():
    """The example, compiled as docs/CPP.md says; the whole folder has moved since it was packed."""
    environment = {**os.environ, "PKG_CONFIG_PATH": os.path.join(PREFIX, "lib/pkgconfig")}
    flags = run("pkg-config", "--cflags", "--libs", "traind-client", env=environment).split()
    program = os.path.join(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")), "train")
    run("g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", os.path.join(PREFIX, "example/train.cc"), "-o", program, *flags)
    return program


PROGRAM = made_by_pkg_config()


@case("Installed headers include only what is installed with them, under traind/")
def _():
    folder = os.path.join(PREFIX, "include")
    headers = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]
    assert os.path.join(folder, "traind/client/training_client.h") in headers, headers
    assert len(headers) < 12, headers
    for header in headers:
        with open(header, encoding="utf-8") as file:
            for line in file:
                if line.startswith('#include "'):
                    assert os.path.exists(os.path.join(folder, line.split('"')[1])), (header, line)


@case("The example trains a Job on a real traind and writes its answer; a spec with a mistake is told with its place")
def _():
    with House(slots=2) as house:
        house.start()
        for name in ("train.csv", "test.csv"):
            shutil.copy(os.path.join(DIGITS, name), house.data)
        spec = os.path.join(house.data, "job.yaml")
        with open(spec, "w", encoding="utf-8") as file:
            file.write("api: v1\nname: fromcpp\ntask: {type: classification, metric: accuracy}\n"
                       "data: {train: train.csv, test: test.csv, target: digit, id: id, folds: 2}\n"
                       "model: {mlp: {hidden: [16]}}\ntrain: {epochs: 2}\nbudget: 60s\n")
        answer = os.path.join(house.root, "answer.csv")
        said = run(PROGRAM, house.server, spec, answer)
        assert "JOB_STATE_SUCCEEDED" in said, said
        with open(answer, encoding="utf-8") as file:
            lines = file.read().splitlines()
        with open(os.path.join(DIGITS, "test.csv"), encoding="utf-8") as file:
            assert len(lines) == len(file.read().splitlines()), len(lines)
        assert lines[0].startswith("id,digit,p_0"), lines[0]
        with open(spec, "a", encoding="utf-8") as file:
            file.write("seeed: 3\n")
        refused = subprocess.run([PROGRAM, house.server, spec, answer], capture_output=True, text=True, check=False)
        assert refused.returncode == 2 and f"{spec}:8:1: error: unknown key 'seeed'" in refused.stderr, refused.stderr


@case("A traind that is not there is told by its address")
def _():
    spec = os.path.join(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")), "job.yaml")
    with open(spec, "w", encoding="utf-8") as file:
        file.write("data: {train: train.csv, target: digit}\nbudget: 60s\n")
    lost = subprocess.run([PROGRAM, "127.0.0.1:1", spec, "none.csv"], capture_output=True, text=True, check=False)
    assert lost.returncode == 1 and "cannot reach traind at 127.0.0.1:1" in lost.stderr, lost.stderr


@case("CMake finds the library, and the example builds and runs")
def _():
    if not shutil.which("cmake"):
        raise Skip("cmake is not installed")
    build = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
    run("cmake", "-S", os.path.join(PREFIX, "example"), "-B", build, f"-DCMAKE_PREFIX_PATH={PREFIX}")
    run("cmake", "--build", build)
    usage = subprocess.run([os.path.join(build, "train")], capture_output=True, text=True, check=False)
    assert usage.returncode == 2 and "usage: train SERVER" in usage.stderr, usage
    newer = os.path.join(build, "newer")
    os.mkdir(newer)
    with open(os.path.join(newer, "CMakeLists.txt"), "w", encoding="utf-8") as file:
        file.write("cmake_minimum_required(VERSION 3.13)\nproject(newer CXX)\nfind_package(traind-client 99 REQUIRED)\n")
    refused = subprocess.run(["cmake", "-S", newer, "-B", newer + "/build", f"-DCMAKE_PREFIX_PATH={PREFIX}"],
                             capture_output=True, text=True, check=False)
    assert refused.returncode != 0 and "99" in refused.stderr, refused.stderr


@case("The .proto files and their descriptors are whole: protoc reads both")
def _():
    share = os.path.join(PREFIX, "share/traind")
    out = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
    run("protoc", f"-I{share}", "-I/usr/include", f"--cpp_out={out}", "proto/training_service.proto", cwd=share)
    with open(os.path.join(share, "traind.protoset"), "rb") as file:
        text = run("protoc", "--decode=google.protobuf.FileDescriptorSet", "google/protobuf/descriptor.proto",
                   "-I/usr/include", stdin=file)
    assert 'name: "TrainingService"' in text and 'name: "google/protobuf/timestamp.proto"' in text


def grpcurl(*arguments):
    """docs/CPP.md tells these calls."""
    path = os.environ.get("GRPCURL") or shutil.which("grpcurl")
    if not path:
        raise Skip("grpcurl is not installed (go install github.com/fullstorydev/grpcurl/cmd/grpcurl@latest; GRPCURL=PATH)")
    result = subprocess.run([path, *arguments], capture_output=True, text=True, check=False, timeout=30)
    return result.returncode, result.stdout + result.stderr


@case("grpcurl lists, describes and calls a real traind by reflection, and without it by the set of descriptors")
def _():
    grpcurl("-version")
    with House(slots=1) as house:
        house.start()
        plain = ("-plaintext", house.server)
        code, services = grpcurl(*plain, "list")
        assert code == 0 and {"traind.v1.TrainingService", "grpc.health.v1.Health"} <= set(services.split()), services
        code, spec = grpcurl(*plain, "describe", "traind.v1.JobSpec")
        assert code == 0 and "BudgetSpec budget" in spec, spec
        job = house.submit(house.spec(folds=2, epochs=1))["id"]
        code, answer = grpcurl("-plaintext", "-d", f'{{"id": "{job}"}}', house.server, "traind.v1.TrainingService/GetJob")
        assert code == 0 and f'"id": "{job}"' in answer, answer
        code, health = grpcurl("-plaintext", "-d", "{}", house.server, "grpc.health.v1.Health/Check")
        assert code == 0 and '"status": "SERVING"' in health, health
        code, missing = grpcurl("-plaintext", "-d", '{"id": "nobody"}', house.server, "traind.v1.TrainingService/GetJob")
        assert code != 0 and "NotFound" in missing and "nobody" in missing, missing
        code, unknown = grpcurl("-plaintext", "-d", '{"jd": "x"}', house.server, "traind.v1.TrainingService/GetJob")
        assert code != 0 and "jd" in unknown, unknown
        protoset = os.path.join(PREFIX, "share/traind/traind.protoset")
        code, listed = grpcurl("-plaintext", "-protoset", protoset, "-use-reflection=false", "-d", "{}", house.server,
                               "traind.v1.TrainingService/ListJobs")
        assert code == 0 and f'"id": "{job}"' in listed, listed
        house.wait(job)


main()
