#include "tests/server/schedule/cluster_trace.h"

#include <absl/status/status.h>
#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <random>

namespace traind {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'800'000'000);
constexpr absl::Duration kShortest = absl::Seconds(10), kLongest = absl::Hours(12);
// Users ask for up to so many times what their Jobs take.
constexpr double kMostAsked = 2;

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}
  // In (0, 1): the same on every machine.
  double Uniform() { return (static_cast<double>(random_() >> 11) + 0.5) / 9007199254740992.0; }
  double Between(double low, double high) { return low + (high - low) * Uniform(); }
  double Exponential(double mean) { return -mean * std::log(Uniform()); }
  double Normal() {
    return std::sqrt(-2 * std::log(Uniform())) * std::cos(2 * 3.14159265358979 * Uniform());
  }

 private:
  std::mt19937_64 random_;
};

int DrawSlots(Draw& draw) {
  const double u = draw.Uniform();
  return u < 0.7 ? 1 : u < 0.8 ? 2 : u < 0.9 ? 4 : 8;
}

int DrawPriority(Draw& draw) {
  const double u = draw.Uniform();
  return u < 0.15 ? 1 : u < 0.85 ? 0 : -1;
}

// The k-th owner sends 1/k as many Jobs as the first.
std::string DrawOwner(Draw& draw, int owners) {
  double all = 0;
  for (int k = 1; k <= owners; ++k) all += 1.0 / k;
  double u = draw.Uniform() * all;
  for (int k = 1; k <= owners; ++k) {
    u -= 1.0 / k;
    if (u <= 0) return absl::StrCat("owner-", k);
  }
  return absl::StrCat("owner-", owners);
}

bool ReadTime(absl::string_view text, double& seconds) {
  if (absl::SimpleAtod(text, &seconds)) return std::isfinite(seconds);
  absl::Time time;
  std::string error;
  if (!absl::ParseTime("%Y-%m-%d %H:%M:%S", text, &time, &error)) return false;
  seconds = absl::ToDoubleSeconds(time - absl::UnixEpoch());
  return true;
}

}  // namespace

std::vector<TraceJob> DrawTrace(const TraceShape& shape) {
  Draw draw(shape.seed);
  std::vector<TraceJob> jobs;
  double work_s = 0;
  for (int i = 0; i < shape.jobs; ++i) {
    TraceJob& job = jobs.emplace_back();
    job.runs =
        std::clamp(shape.median * std::exp(shape.sigma * draw.Normal()), kShortest, kLongest);
    job.asks = job.runs * draw.Between(1, kMostAsked);
    job.slots = DrawSlots(draw);
    job.priority = DrawPriority(draw);
    job.owner = DrawOwner(draw, shape.owners);
    work_s += job.slots * absl::ToDoubleSeconds(job.runs);
  }
  const double gap_s = work_s / shape.jobs / (shape.load * shape.slots);
  absl::Time at = kStart;
  for (TraceJob& job : jobs) {
    at += absl::Seconds(draw.Exponential(gap_s));
    job.arrives = at;
    const double slack = draw.Between(1.5, 5);
    if (draw.Uniform() < shape.with_deadline) {
      job.deadline = at + absl::Minutes(5) + slack * job.runs;
    }
  }
  return jobs;
}

absl::StatusOr<std::vector<TraceJob>> ReadTrace(absl::string_view csv, uint64_t seed) {
  Draw draw(seed);
  std::vector<absl::string_view> lines = absl::StrSplit(csv, '\n', absl::SkipWhitespace());
  if (lines.empty()) return absl::InvalidArgumentError("the trace is empty");
  std::vector<absl::string_view> header = absl::StrSplit(lines[0], ',');
  const auto column = [&header](std::initializer_list<absl::string_view> names) -> int {
    for (size_t i = 0; i < header.size(); ++i) {
      for (absl::string_view name : names) {
        if (absl::StripAsciiWhitespace(header[i]) == name) return static_cast<int>(i);
      }
    }
    return -1;
  };
  const int submit = column({"submit_time"}), duration = column({"duration"});
  const int gpus = column({"num_gpu", "num_gpus", "gpu_num"});
  const int user = column({"user", "vc"}), priority = column({"priority"});
  const int deadline = column({"deadline"});
  if (submit < 0 || duration < 0 || gpus < 0) {
    return absl::InvalidArgumentError("the trace needs submit_time, duration and num_gpu");
  }
  std::vector<TraceJob> jobs;
  for (size_t row = 1; row < lines.size(); ++row) {
    const std::vector<absl::string_view> fields = absl::StrSplit(lines[row], ',');
    const auto bad = [row](absl::string_view what) {
      return absl::InvalidArgumentError(absl::StrCat("row ", row + 1, " of the trace: ", what));
    };
    if (fields.size() != header.size()) return bad("it has another number of fields");
    const auto field = [&fields](int at) {
      return absl::StripAsciiWhitespace(fields[static_cast<size_t>(at)]);
    };
    double at_s = 0, runs_s = 0, slots = 0, within_s = 0;
    if (!ReadTime(field(submit), at_s)) return bad("submit_time is no time");
    if (!absl::SimpleAtod(field(duration), &runs_s) || !absl::SimpleAtod(field(gpus), &slots)) {
      return bad("duration or the number of GPUs is no number");
    }
    if (!(runs_s > 0) || !(slots >= 1)) continue;
    TraceJob& job = jobs.emplace_back();
    job.arrives = absl::UnixEpoch() + absl::Seconds(at_s);
    job.runs = absl::Seconds(runs_s);
    job.asks = job.runs * draw.Between(1, kMostAsked);
    job.slots = static_cast<int>(slots);
    job.owner = user < 0 ? "all" : std::string(field(user));
    if (priority >= 0 && !absl::SimpleAtoi(field(priority), &job.priority)) {
      return bad("priority is no whole number");
    }
    if (deadline >= 0 && !field(deadline).empty()) {
      if (!absl::SimpleAtod(field(deadline), &within_s)) return bad("deadline is no number");
      job.deadline = job.arrives + absl::Seconds(within_s);
    }
  }
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const TraceJob& a, const TraceJob& b) { return a.arrives < b.arrives; });
  return jobs;
}

}  // namespace traind
