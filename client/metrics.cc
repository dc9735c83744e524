#include <absl/container/flat_hash_set.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_split.h>

#include <utility>

#include "client/exit_codes.h"
#include "common/wire/render_json.h"
#include "client/render_table.h"
#include "client/verbs.h"
#include "common/spec/field_text.h"

namespace traind {
namespace {

std::string PointLine(const v1::MetricPoint& point, absl::Time now) {
  return absl::StrFormat("%s  fold %d  epoch %.4g  step %d  %s %.6g\n", ClockText(point.at(), now),
                         point.fold(), point.epoch(), point.step(), Printable(point.name()),
                         point.value());
}

std::string PointTable(const v1::MetricsReply& points, absl::Time now) {
  TextTable table({"TIME", "FOLD", "EPOCH", "STEP", "NAME", "VALUE"});
  for (const v1::MetricPoint& point : points.points()) {
    table.Add({ClockText(point.at(), now), absl::StrCat(point.fold()),
               absl::StrFormat("%.4g", point.epoch()), absl::StrCat(point.step()), point.name(),
               absl::StrFormat("%.6g", point.value())});
  }
  return table.ToString();
}

}  // namespace

// With --follow, points are printed as they arrive (JSON: one per line), else as one document.
int RunMetrics(const Arguments& arguments, Environment& environment) {
  TrainingClient client = MakeClient(arguments, environment);
  const auto job = client.GetJob(arguments.job);
  if (!job.ok()) return ReportError(environment, job.status());
  const absl::flat_hash_set<std::string> names =
      absl::StrSplit(arguments.metrics, ',', absl::SkipEmpty());
  v1::MetricsReply all;
  const absl::Status status = client.GetMetrics(
      job->id(), arguments.follow, arguments.timeout.value_or(absl::InfiniteDuration()),
      [&](const v1::MetricsReply& reply) {
        all.set_dropped(all.dropped() + reply.dropped());
        for (const v1::MetricPoint& point : reply.points()) {
          if (!names.empty() && !names.contains(point.name())) continue;
          if (!arguments.follow) {
            *all.add_points() = point;
          } else if (arguments.json) {
            environment.out << ToJsonLine(point) << "\n";
          } else {
            environment.out << PointLine(point, environment.clock.WallNow());
          }
        }
        environment.out.flush();
        return environment.out.good();
      });
  if (!status.ok()) return ReportError(environment, status);
  if (!arguments.follow && arguments.json) {
    environment.out << "{\n\"dropped\": " << all.dropped()
                    << ",\n\"points\": " << ToJsonArray(all, "points") << "\n}\n";
  } else if (!arguments.follow && !all.points().empty()) {
    environment.out << PointTable(all, environment.clock.WallNow());
  }
  if (all.dropped() > 0 && !arguments.json) {
    environment.err << all.dropped() << " points were dropped under load\n";
  }
  return kExitOk;
}

}  // namespace traind
