#include <absl/container/flat_hash_set.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client/exit_codes.h"
#include "client/plot.h"
#include "client/render_table.h"
#include "client/verbs.h"
#include "common/spec/field_text.h"
#include "common/wire/render_json.h"

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

// Draws a plot of each figure, with a curve for each Attempt; by default of the losses and the
// metric.
std::string Plots(const v1::MetricsReply& points, const std::string& names,
                  const PlotStyle& style) {
  std::string text;
  const std::vector<std::string> wanted = absl::StrSplit(
      names.empty() ? "train_loss,val_loss,val_metric" : names, ',', absl::SkipEmpty());
  for (const std::string& name : wanted) {
    std::map<int64_t, Curve> curves;  // by Attempt
    for (const v1::MetricPoint& point : points.points()) {
      if (point.name() == name) curves[point.attempt()].emplace_back(point.epoch(), point.value());
    }
    std::vector<Curve> drawn;
    for (auto& [attempt, curve] : curves) drawn.push_back(std::move(curve));
    const std::string title = absl::StrCat(Printable(name), "  (", drawn.size(),
                                           drawn.size() == 1 ? " curve)" : " curves)");
    absl::StrAppend(&text, text.empty() || drawn.empty() ? "" : "\n",
                    PlotCurves(title, "epoch", drawn, style));
  }
  return text;
}

PlotStyle StyleOf(const Environment& environment) {
  PlotStyle style;
  if (!environment.out_is_terminal) return style;
  style.columns = std::max(20, environment.err_size().columns - 1);
  style.braille = environment.utf8;
  return style;
}

// Tells which figures there are where none of those asked for is among them.
std::string NoSuchFigures(const std::string& asked, const std::set<std::string>& others) {
  if (others.empty()) return "there are no such figures yet";
  return absl::StrCat("there are no figures called ", Printable(asked), "; there are ",
                      Printable(absl::StrJoin(others, ", "), 1000));
}

// Prints the points as one document. others: the names of figures that were not asked for.
void PrintPoints(const Arguments& arguments, Environment& environment,
                 const v1::MetricsReply& points, const std::set<std::string>& others) {
  if (points.points().empty() && !arguments.metrics.empty()) {
    environment.err << NoSuchFigures(arguments.metrics, others) << "\n";
  }
  if (arguments.plot) {
    const std::string plots = Plots(points, arguments.metrics, StyleOf(environment));
    if (plots.empty() && arguments.metrics.empty()) {
      environment.err << NoSuchFigures("", {}) << "\n";
    }
    environment.out << plots;
  } else if (arguments.json) {
    environment.out << "{\n\"dropped\": " << points.dropped()
                    << ",\n\"points\": " << ToJsonArray(points, "points") << "\n}\n";
  } else if (!points.points().empty()) {
    environment.out << PointTable(points, environment.clock.WallNow());
  }
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
  std::set<std::string> others;  // figures that were not asked for
  const absl::Status status = client.GetMetrics(
      job->id(), arguments.follow, arguments.timeout.value_or(absl::InfiniteDuration()),
      [&](const v1::MetricsReply& reply) {
        all.set_dropped(all.dropped() + reply.dropped());
        for (const v1::MetricPoint& point : reply.points()) {
          if (!names.empty() && !names.contains(point.name())) {
            others.insert(point.name());
            continue;
          }
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
  if (!arguments.follow) PrintPoints(arguments, environment, all, others);
  if (all.dropped() > 0 && !arguments.json) {
    environment.err << all.dropped() << " points were dropped under load\n";
  }
  return kExitOk;
}

}  // namespace traind
