"""The include graph of the C++ sources, and the rules of the house that it must keep.

    findings(root) -> list of "file:line: what is wrong"
    python3 tests/structure/include_graph.py [ROOT]    prints them

common/base <- {common/data, common/facts, common/metrics} <- common/publish; common/spec is for whoever reads
users' specs; common/wire is for whoever speaks gRPC or Protobuf;
common/base <- server/archive (the store's changes in a folder that other machines read);
common <- server/domain <- {store, plan, schedule, reuse, reports, portfolio} <- search <- {intake, control} <- loop (the
shell around the core) <- retention <- {rpc, http} <- coordinator and main (server/ itself);
worker/rank_protocol <- task (what any program that trains needs; no LibTorch) <- {prepare, train}; worker/floor (models of floors; no LibTorch) <- {prepare, inference}; worker/series (statistical models of series) <- {floor, prepare}; worker/data <- model/{kernels, objective} <- model/{networks, handwritten} <- learner <- checkpoint <- {pretrained, predict} <- train <- inference <- rank; {worker/kernel (kernel ridge regression), worker/data} <- trees <- {treefold, inference}; worker/program (programs of users); the worker daemon and the
processes that work for it meet only in worker/rank_protocol; server, worker and
client never see each other. Tests may include anything; nothing includes tests.
"""
import os
import re
import sys

_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
_TREES = ("common", "proto", "server", "worker", "client", "third_party", "tests", "build_defs")

_COMMON = ["common/base", "common/data", "common/facts", "common/metrics", "common/publish", "common/plain",
           "common/job_rules", "proto/plain"]
_PURE = _COMMON + ["server/domain"]
_STORED = _PURE + ["server/store", "server/plan", "server/schedule"]
_DECIDED = _STORED + ["server/intake", "server/control"]
_KERNELS = ["common/base", "worker/device", "worker/data"]
_SPEC = ["common/plain", "proto/plain",
           "common/job_rules"]
_NETWORKS = _KERNELS + _SPEC + ["worker/model/kernels", "worker/model/objective"]
_FOLD = _COMMON + ["worker/rank_protocol", "worker/task", "worker/device", "worker/data", "worker/model/networks", "worker/model/objective",
                   "worker/learner"]
# The rooms of a program that trains without LibTorch.
_FOLD_ALONE = _COMMON + ["worker/rank_protocol", "worker/task", "worker/data"]

# Room -> rooms it may include, besides itself and the rooms inside it. The longest
# matching prefix of a file's folder is its room.
MAY_INCLUDE = {
    "common/base": [],
    "common/plain": ["common/base"],
    "proto/plain": ["common/plain"],
    "common/job_rules": ["common/base", "common/metrics", "common/plain", "proto/plain"],
    "common/data": ["common/base", "common/plain", "proto/plain"],
    "common/data/weights": ["common/base"],
    "common/metrics": ["common/base"],
    "common/facts": ["proto/plain"],
    "common/wire": ["common/base", "common/facts", "common/spec", "proto"],
    "common/publish": ["common/base", "common/data", "common/facts", "common/metrics", "proto/plain"],
    "common/search": ["common/base"],
    "common/transfer": ["common/base"],
    "common/spec": ["common/base", "common/data", "common/data/weights", "common/metrics", "common/plain", "common/job_rules",
                    "common/search", "proto", "proto/plain"],
    "proto": [],
    "third_party": [],
    "build_defs": ["proto"],
    "server/domain": _COMMON,
    "server/objects": ["common/base"],
    "server/archive": ["common/base", "server/objects"],
    "server/store": _PURE + ["server/archive"],
    "server/access": ["common/base"],
    "server/plan": _PURE,
    "server/schedule": _PURE,
    "server/portfolio": ["common/search", "common/spec", "proto"],
    "server/search": _PURE + ["common/search", "server/plan"],
    "server/intake": _STORED + ["common/data/weights", "common/search", "common/spec", "proto", "server/portfolio",
                                "server/search"],
    "server/control": _STORED + ["server/search"],
    "server/reuse": _PURE,
    "server/reports": _PURE,
    "server/loop": _DECIDED + ["server/reuse"],
    "server/retention": _DECIDED + ["server/loop", "server/reuse"],
    "server/rpc": _DECIDED + ["server/access", "server/loop", "server/search", "common/search", "server/reports", "server/retention", "common/spec", "common/transfer", "common/wire", "proto"],
    "server/http": _DECIDED + ["server/access", "server/loop", "server/rpc", "common/spec", "common/wire", "proto"],
    "server": _DECIDED + ["server/access", "server/archive", "server/objects", "server/loop", "server/retention", "server/rpc", "server/http", "common/spec"],
    "worker/rank_protocol": ["common/base", "common/facts"],
    "worker/task": ["common/base", "common/data", "common/facts", "common/metrics", "worker/data", "worker/rank_protocol"],
    "worker/daemon": _COMMON + ["common/transfer", "common/wire", "worker/rank_protocol", "proto", "third_party"],
    "worker/series": [],
    "worker/floor": ["common/base", "common/data", "common/publish", "worker/series"],
    "worker/prepare": _COMMON + ["worker/rank_protocol", "worker/task", "worker/floor", "worker/series"],
    "worker/device": ["common/base"],
    "worker/data": _COMMON + ["worker/rank_protocol", "worker/device"],
    "worker/model/kernels": _KERNELS,
    "worker/model/objective": [],
    "worker/model/networks": _NETWORKS + ["common/data/weights"],
    "worker/model/handwritten": _NETWORKS + ["worker/model/networks"],
    "worker/learner": _NETWORKS + ["common/data", "common/metrics", "worker/model/networks", "worker/model/handwritten"],
    "worker/checkpoint": _FOLD,
    "worker/pretrained": _FOLD + ["common/data/weights", "worker/checkpoint"],
    "worker/train": _FOLD + ["common/data/weights", "worker/checkpoint", "worker/pretrained", "worker/predict"],
    "worker/predict": _FOLD + ["worker/checkpoint"],
    "worker/kernel": [],
    "worker/trees": _FOLD_ALONE + ["worker/checkpoint", "worker/kernel"],
    "worker/program": ["common/base", "common/data", "common/facts", "common/job_rules", "common/metrics", "common/search",
                       "common/plain", "common/transfer", "proto/plain", "worker/data", "worker/rank_protocol", "worker/task"],
    "worker/treefold": _FOLD_ALONE + ["worker/trees", "worker/predict", "worker/checkpoint", "worker/device"],
    "worker/inference": _FOLD + ["worker/checkpoint", "worker/train", "worker/predict", "worker/trees", "worker/floor"],
    "worker/rank": _FOLD + ["worker/checkpoint", "worker/pretrained", "worker/train",
                            "worker/predict", "worker/inference"],
    "worker": _FOLD + ["worker/checkpoint", "worker/train", "worker/predict", "worker/inference",
                       "worker/rank", "worker/daemon", "worker/prepare", "third_party"],
    "client": _COMMON + ["common/spec", "common/transfer", "common/wire", "proto"],
}

# A library's headers (prefixes of what stands between < and >) -> the rooms that may name them.
LIBRARIES = {
    "LibTorch": (("torch/", "ATen/", "c10/", "caffe2/", "gloo/", "nccl.h", "cuda", "cudnn"),
                 ["worker/device", "worker/data", "worker/model", "worker/learner", "worker/checkpoint",
                  "worker/train", "worker/predict", "worker/inference", "worker/rank"]),
    "SQLite": (("sqlite3.h",), ["server/store"]),
    "gRPC": (("grpc/", "grpc++/", "grpcpp/"), ["common/wire", "server/rpc", "worker/daemon", "client"]),
    "Protobuf": (("google/protobuf/",), ["proto", "build_defs", "common/spec", "common/wire", "server/rpc",
                                         "server/intake", "server/http", "worker/daemon", "client"]),
    "yaml-cpp": (("yaml-cpp/",), ["common/spec", "client"]),
    "HTTP": (("microhttpd.h",), ["server/http"]),
    "libcurl": (("curl/",), ["server/objects"]),
    "zstd": (("zstd.h",), ["common/transfer"]),
    "image libraries": (("jpeglib.h", "png.h"), ["common/data/image"]),
    "libtiff": (("tiffio.h",), ["common/data/volume"]),
    "NVML": (("nvml.h",), ["third_party"]),
}

# The decisions: nothing but the standard library, Abseil and the domain; no I/O, no
# threads, no clock of their own.
_DECISIONS = ("server/domain/", "server/plan/", "server/schedule/", "server/search/", "server/control/",
              "server/archive/lease_core", "server/retention/retention_plan", "worker/daemon/worker_core")
_NO_DECISION_NEEDS = re.compile(
    r"^(thread|mutex|shared_mutex|condition_variable|future|atomic|chrono|ctime|fstream|iostream|"
    r"filesystem|random|unistd\.h|fcntl\.h|poll\.h|signal\.h|sys/.*|absl/synchronization/.*|"
    r"absl/random/.*|absl/time/clock\.h|nlohmann/.*|openssl/.*)$")

# Our own headers that read files or clocks or run other programs.
_OWN_WITH_IO = ("common/base/clock.h", "common/base/durable_file.h", "common/base/log.h", "common/base/run_program.h",
                "common/base/start_program.h", "common/publish/publisher.h", "common/publish/prediction_files.h")


def sources(root):
    """Relative paths of all C++ files."""
    for tree in _TREES:
        for folder, folders, files in os.walk(os.path.join(root, tree)):
            folders[:] = sorted(d for d in folders if not d.startswith((".", "bazel-")))
            for name in sorted(files):
                if name.endswith((".h", ".cc", ".cu", ".cuh")):
                    yield os.path.relpath(os.path.join(folder, name), root)


def includes(root, path):
    """(line, "<" or '"', included) for each include of a file."""
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
        for number, line in enumerate(f, 1):
            match = _INCLUDE.match(line)
            if match:
                yield number, match.group(1), match.group(2)


def inside(path, room):
    return path == room or path.startswith(room + "/")


def room_of(path):
    folder = os.path.dirname(path)
    return max((r for r in MAY_INCLUDE if inside(folder, r)), key=len, default=None)


def _library_finding(path, header):
    for library, (prefixes, rooms) in LIBRARIES.items():
        if header.startswith(prefixes) and not any(inside(path, r) for r in rooms):
            return f"{library} ({header}) belongs to {', '.join(rooms)}"
    if path.startswith(_DECISIONS) and _NO_DECISION_NEEDS.match(header):
        return f"decisions have no use for <{header}>"
    return None


def _own_finding(root, path, header):
    generated = header.endswith(".pb.h") or inside(header, "proto/plain")
    if not generated and not os.path.exists(os.path.join(root, header)):
        return f'"{header}" is no file below the workspace root'
    here, there = room_of(path), room_of(header)
    if path.startswith(_DECISIONS) and header in _OWN_WITH_IO:
        return f"decisions have no use for {header}"
    if inside(header, "tests"):
        return f"{header} is for tests alone"
    if there is None:
        return f"{header} is in a folder that tests/structure does not know"
    if there == here or there in MAY_INCLUDE[here]:
        return None
    return f"{here} may not include {there} ({header})"


def _cycles(edges):
    """Groups of folders that reach each other."""
    def reach(start):
        seen, todo = set(), [start]
        while todo:
            for n in edges.get(todo.pop(), ()):
                if n not in seen:
                    seen.add(n)
                    todo.append(n)
        return seen
    reached = {folder: reach(folder) for folder in edges}
    groups = {tuple(sorted(o for o in reached[f] if f in reached.get(o, ()))) for f in edges
              if f in reached[f]}
    return sorted(groups)


def findings(root):
    found, edges = [], {}
    for path in sources(root):
        if inside(path, "tests"):
            continue
        if room_of(path) is None:
            found.append(f"{path}:1: in a folder that tests/structure does not know")
            continue
        for line, kind, header in includes(root, path):
            if kind == "<":
                problem = _library_finding(path, header)
            else:
                problem = _own_finding(root, path, header)
                here, there = os.path.dirname(path), os.path.dirname(header)
                if here != there:
                    edges.setdefault(here, set()).add(there)
            if problem:
                found.append(f"{path}:{line}: {problem}")
    for group in _cycles(edges):
        found.append(f"{group[0]}:1: a cycle of folders: {' <-> '.join(group)}")
    return found


if __name__ == "__main__":
    result = findings(sys.argv[1] if len(sys.argv) > 1 else ".")
    print("\n".join(result) or "the include graph is as it should be")
    sys.exit(1 if result else 0)
