#include "worker/rank/try_script.h"

#include <absl/strings/numbers.h>
#include <signal.h>
#include <sys/resource.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "worker/learner/learner.h"
#include "worker/model/networks/script.h"

namespace traind {
namespace {

constexpr rlim_t kCpuSeconds = 10;

// At the limit SIGXCPU tells why; a little later the kernel kills.
void Limit(int resource, rlim_t most) {
  const rlimit limit{most, most == 0 ? 0 : most + 1};
  setrlimit(resource, &limit);
}

}  // namespace

int TryScriptMain(int argc, char** argv) {
  constexpr int kFixed = 7;
  std::vector<int64_t> numbers;
  for (int i = 4; i < argc; ++i) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(argv[i], &number) || number < 0) return 2;
    numbers.push_back(number);
  }
  if (argc < kFixed) return 2;
  Limit(RLIMIT_CPU, kCpuSeconds);
  Limit(RLIMIT_CORE, 0);
  Limit(RLIMIT_FSIZE, 0);
  signal(SIGXFSZ, SIG_IGN);
  SetTorchThreads(1);
  plain::ScriptSpec spec;
  spec.file = argv[2];
  spec.sha256 = argv[3];
  ModelShape shape;
  shape.numeric = numbers[0];
  shape.window = numbers[1];
  shape.outputs = numbers[2];
  shape.cardinalities.assign(numbers.begin() + 3, numbers.end());
  const auto report = TryScript(spec, shape);
  nlohmann::json line;
  if (report.ok()) {
    line["parameters"] = report->parameters;
  } else {
    line["error"] = std::string(report.status().message());
  }
  std::puts(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  std::fflush(stdout);
  return 0;
}

}  // namespace traind
