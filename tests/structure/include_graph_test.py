"""The include graph is as the house wants it, and the walk sees it where it is not."""
import os
import tempfile

from tests.cases import case, main
from tests.structure import include_graph

# Under Bazel this file is a link into the workspace.
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

GOOD = {
    "common/base/duration.h": "#include <absl/time/time.h>\n",
    "common/publish/publisher.h": "#include <string>\n",
    "server/domain/job.h": '#include "common/base/duration.h"\n#include <vector>\n',
    "server/domain/deep/z.h": '#include "server/domain/job.h"\n',
    "server/store/store.h": '#include "server/domain/job.h"\n#include <sqlite3.h>\n',
    "server/control/control_core.h": '#include "server/store/store.h"\n',
    "server/rpc/service.cc": '#include <grpcpp/grpcpp.h>\n#include "server/control/control_core.h"\n'
                             '#include "proto/job.pb.h"\n',
    "server/main.cc": '#include "server/control/control_core.h"\n',
    "worker/rank_protocol/messages.h": "#include <string>\n",
    "worker/train/trainer.cc": '#include <torch/types.h>\n#include "worker/rank_protocol/messages.h"\n',
    "worker/daemon/daemon.cc": '#include <grpcpp/grpcpp.h>\n#include "worker/rank_protocol/messages.h"\n',
    "client/main.cc": '#include "proto/job.pb.h"\n',
    "tests/server/x_test.cc": '#include <sqlite3.h>\n#include "client/main.cc"\n',
}

# A file that is planted -> a part of the complaint that must follow.
BAD = [
    ("common/base/x.h", '#include "server/domain/job.h"', "common/base may not include server/domain"),
    ("common/base/x.h", '#include "proto/job.pb.h"', "common/base may not include proto"),
    ("server/domain/x.h", '#include "server/store/store.h"', "server/domain may not include server/store"),
    ("server/store/x.cc", '#include "server/control/control_core.h"', "server/store may not include server/control"),
    ("server/control/x.cc", '#include "proto/job.pb.h"', "server/control may not include proto"),
    ("server/rpc/x.cc", '#include "worker/rank_protocol/messages.h"', "may not include worker/rank_protocol"),
    ("worker/daemon/x.cc", '#include "server/domain/job.h"', "worker/daemon may not include server/domain"),
    ("worker/daemon/x.cc", '#include "worker/train/trainer.cc"', "worker/daemon may not include worker/train"),
    ("worker/daemon/x.cc", "#include <torch/types.h>", "LibTorch (torch/types.h) belongs to"),
    ("worker/train/x.cc", '  #  include "client/main.cc"', "worker/train may not include client"),
    ("worker/train/x.cc", "#include <grpcpp/grpcpp.h>", "gRPC (grpcpp/grpcpp.h) belongs to"),
    ("client/x.cc", '#include "server/main.cc"', "client may not include server"),
    ("client/x.cc", "#include <sqlite3.h>", "SQLite (sqlite3.h) belongs to server/store"),
    ("server/control/x.cc", "#include <sqlite3.h>", "SQLite (sqlite3.h) belongs to server/store"),
    ("server/plan/x.cc", "#include <thread>", "decisions have no use for <thread>"),
    ("server/control/x.cc", "#include <fstream>", "decisions have no use for <fstream>"),
    ("worker/daemon/worker_core_ticks.cc", "#include <mutex>", "decisions have no use for <mutex>"),
    ("server/domain/x.h", '#include "common/publish/publisher.h"', "decisions have no use for"),
    ("server/main.cc", '#include "clock.h"', "is no file below the workspace root"),
    ("server/main.cc", '#include "tests/server/x_test.cc"', "is for tests alone"),
    ("attic/x.cc", "", None),  # outside of the trees: nothing is said
    ("server/domain/y.h", '#include "server/domain/deep/z.h"', "a cycle of folders: server/domain <-> "),
]


def plant(root, files):
    for path, text in files.items():
        os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
        with open(os.path.join(root, path), "w") as f:
            f.write(text)


@case("The sources include only what the house allows")
def _():
    found = include_graph.findings(ROOT)
    seen = list(include_graph.sources(ROOT))
    assert any(p.startswith("server/") for p in seen) and any(p.startswith("worker/") for p in seen), seen
    assert not found, "\n" + "\n".join(found)


@case("A good tree gets no findings")
def _():
    with tempfile.TemporaryDirectory() as root:
        plant(root, GOOD)
        assert include_graph.findings(root) == [], include_graph.findings(root)


@case("Each planted fault is found, at its line, and nothing else")
def _():
    for path, line, expected in BAD:
        with tempfile.TemporaryDirectory() as root:
            plant(root, GOOD)
            plant(root, {path: "// a comment\n" + line + "\n"})
            found = include_graph.findings(root)
            if expected is None:
                assert found == [], (path, line, found)
                continue
            hits = [f for f in found if expected in f]
            assert hits, (path, line, found)
            if "cycle" not in expected:
                assert hits[0].startswith(f"{path}:2: "), hits


main()
