"""README's table "To add a ... | touch ..." is true: a new metric, network or field needs no other file."""
import os
import re
import shutil
import subprocess
import tempfile

from tests.cases import case, main
from tests.structure import wishes

# Under Bazel this file is a link into the workspace.
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

METRIC = """// The mean error: how far answers lie above their targets.
#include "common/metrics/registry.h"

namespace traind {
namespace {

double OfValues(absl::Span<const double> predicted, absl::Span<const double> targets) {
  double sum = 0;
  for (size_t i = 0; i < targets.size(); ++i) sum += predicted[i] - targets[i];
  return sum / static_cast<double>(targets.size());
}

}  // namespace

const MetricKind kSampleMetric = {
    "sample", /*higher_is_better=*/false, /*is_default=*/false, nullptr, OfValues};

}  // namespace traind
"""

ASK = """
#include <cstdio>
#include "common/metrics/metrics.h"
int main() {
  using namespace traind;
  const auto metric = MetricByName("sample");
  const float predicted[] = {3, 5}, targets[] = {1, 5};
  if (!metric.ok() || Score(*metric, predicted, targets) != 1) return 1;
  return MetricsFor("regression").back() == *metric ? 0 : 2;
}
"""


def copy(root):
    """A copy of the product's sources in a new folder."""
    for tree in ("common", "server", "worker", "client", "proto", "build_defs", "docs"):
        shutil.copytree(os.path.join(ROOT, tree), os.path.join(root, tree))
    os.makedirs(os.path.join(root, "tests/contract"))
    for path in [p for paths in wishes.table(ROOT).values() for p in paths if p.startswith("tests/contract/")]:
        shutil.copy(os.path.join(ROOT, path), os.path.join(root, path))
    shutil.copy(os.path.join(ROOT, "README.md"), root)


def change(root, wish, path, edit):
    """Edits (or makes) a file that the wish's row names."""
    named = [p.replace("NAME", "sample") for p in wishes.table(ROOT)[wish]]
    assert path in named, f"{path} is not among {named}"
    full = os.path.join(root, path)
    text = open(full, encoding="utf-8").read() if os.path.exists(full) else ""
    changed = edit(text)
    assert changed != text, path
    with open(full, "w", encoding="utf-8") as f:
        f.write(changed)


def insert_after(pattern, new):
    def edit(text):
        return re.sub(pattern, lambda m: m.group(0) + new, text, count=1, flags=re.S)
    return edit


def add_metric(root):
    change(root, "metric", "common/metrics/sample.cc", lambda _: METRIC)
    change(root, "metric", "common/metrics/registry.inc", lambda text: text + "METRIC(Sample)\n")
    change(root, "metric", "proto/job.proto",
           insert_after(r'string metric = 2 \[\(rules\) = \{.*?one_of: "iou"', ' one_of: "sample"'))


@case("Every file that the table of wishes names is there, and nothing else lists what it adds")
def table_is_true():
    assert len(wishes.table(ROOT)) >= 10, wishes.table(ROOT)
    found = wishes.findings(ROOT)
    assert not found, found


@case("A file that is gone, and a list in another file, are found")
def untrue_tables_are_found():
    with tempfile.TemporaryDirectory() as root:
        copy(root)
        os.remove(os.path.join(root, "client/verbs.h"))
        with open(os.path.join(root, "client/list.cc"), "a", encoding="utf-8") as f:
            f.write('const char* kWords[] = {"rmse", "mae", "r2"};\n')
            f.write('const char* kNets[] = {"mlp", "lstm", "transformer", "cnn", "text", "unet3d"};\n')
        found = "\n".join(wishes.findings(root))
        assert "there is no client/verbs.h" in found, found
        assert "client/list.cc: lists metrics" in found, found
        assert "client/list.cc: lists networks" in found, found


@case("A new metric is its file, a line and its word: it compiles, and is found by its name", limit_s=120)
def a_metric():
    with tempfile.TemporaryDirectory() as root:
        copy(root)
        add_metric(root)
        assert not wishes.findings(root), wishes.findings(root)
        ask = os.path.join(root, "ask.cc")
        with open(ask, "w", encoding="utf-8") as f:
            f.write(ASK)
        folder = os.path.join(root, "common/metrics")
        sources = [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".cc")]
        libraries = subprocess.run(["pkg-config", "--libs", "absl_statusor", "absl_strings"], check=True,
                                   stdout=subprocess.PIPE, text=True).stdout.split()
        program = os.path.join(root, "ask")
        subprocess.run(["g++", "-std=c++17", "-I", root, ask, *sources, "-o", program, *libraries], check=True)
        assert subprocess.run([program]).returncode == 0


@case("A metric's file without its line, or a line without its word, is found")
def half_a_metric():
    with tempfile.TemporaryDirectory() as root:
        copy(root)
        change(root, "metric", "common/metrics/sample.cc", lambda _: METRIC)
        assert "METRIC(Sample)" in "\n".join(wishes.findings(root))
        change(root, "metric", "common/metrics/registry.inc", lambda text: text + "METRIC(Sample)\n")
        assert "task.metric takes" in "\n".join(wishes.findings(root))


@case("A new network is its message, its file and its lines; a kind without its line is found")
def a_network():
    with tempfile.TemporaryDirectory() as root:
        copy(root)
        change(root, "network", "proto/job.proto",
               insert_after(r"oneof architecture \{\n", "    SampleSpec sample = 99;\n"))
        assert "has no line for sample" in "\n".join(wishes.findings(root))
        for path in ("worker/model/networks/sample.h", "worker/model/networks/sample.cc"):
            change(root, "network", path, lambda _: "// A network.\n")
        change(root, "network", "worker/model/networks/model.cc",
               insert_after(r"kNetworks\[\] = \{\n", '    {"sample", CreateSample},\n'))
        assert not wishes.findings(root), wishes.findings(root)


@case("A new field of the spec is its line: no other file lists the fields")
def a_field():
    with tempfile.TemporaryDirectory() as root:
        copy(root)
        change(root, "field of the spec", "proto/job.proto",
               insert_after(r"message TrainSpec \{\n", "  // A sample.\n  int32 sample_field = 99 [(rules) = { min: 1 default: \"1\" }];\n"))
        assert "sample_field" in wishes.message_fields(root, "TrainSpec")
        assert not wishes.findings(root), wishes.findings(root)


if __name__ == "__main__":
    main()
