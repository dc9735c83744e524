#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "client/exit_codes.h"
#include "client/progress.h"
#include "client/render_table.h"
#include "client/verbs.h"
#include "common/base/duration.h"
#include "common/spec/field_text.h"

namespace traind {
namespace {

constexpr absl::Duration kEvery = absl::Seconds(2);

// Returns a line for each Job that is not over, as `watch` has it, and the table of slots.
absl::StatusOr<std::string> Look(const Arguments& arguments, Environment& environment,
                                 TrainingClient& client) {
  v1::ListJobsRequest request;
  for (const v1::JobState state :
       {v1::JOB_STATE_RUNNING, v1::JOB_STATE_PLANNING, v1::JOB_STATE_FINALIZING,
        v1::JOB_STATE_PAUSED, v1::JOB_STATE_QUEUED}) {
    request.add_states(state);
  }
  request.set_page_size(1000);
  const auto jobs = client.ListJobs(request);
  if (!jobs.ok()) return jobs.status();
  const auto workers = client.ListWorkers();
  if (!workers.ok()) return workers.status();
  int slots = 0, busy = 0;
  for (const v1::WorkerInfo& worker : workers->workers()) {
    slots += worker.slots_size();
    busy += static_cast<int>(std::count_if(worker.slots().begin(), worker.slots().end(),
                                           [](const v1::SlotInfo& s) { return !s.job().empty(); }));
  }
  const absl::Time now = environment.clock.WallNow();
  std::string text =
      absl::StrCat(absl::FormatTime("%H:%M:%S", now, absl::LocalTimeZone()), "  ",
                   jobs->jobs_size(), jobs->jobs_size() == 1 ? " Job" : " Jobs", ", ", busy, " of ",
                   slots, " slots busy, ", arguments.server, "\n\n");
  const int width = environment.out_is_terminal ? environment.err_size().columns - 1 : 0;
  for (const v1::Job& job : jobs->jobs()) {
    absl::StrAppend(&text, JobLine(job, {now, absl::ZeroDuration()}, width), "\n");
  }
  return absl::StrCat(text, jobs->jobs().empty() ? "" : "\n", WorkerTable(*workers, now, false));
}

// Returns the first `rows` lines, which is what the terminal shows at once.
std::string FirstLines(const std::string& text, int rows) {
  size_t end = 0;
  for (int i = 0; i < rows; ++i) {
    const size_t next = text.find('\n', end);
    if (next == std::string::npos) return text;
    end = next + 1;
  }
  return text.substr(0, end);
}

// Waits, in short steps so that Ctrl-C is noticed. Returns false if it was pressed.
bool Pause(Environment& environment, absl::Duration time) {
  const absl::Duration until = environment.clock.MonotonicNow() + time;
  while (environment.clock.MonotonicNow() < until) {
    if (environment.interrupted != nullptr && environment.interrupted->load()) return false;
    absl::SleepFor(std::min(absl::Milliseconds(50), time));
  }
  return true;
}

}  // namespace

int RunTop(const Arguments& arguments, Environment& environment) {
  absl::Duration every = kEvery;
  if (!arguments.every.empty()) {
    const auto read = DurationFromText(arguments.every);
    if (!read.ok()) {
      environment.err << "trainctl: --every " << read.status().message() << "\n";
      return kExitUsage;
    }
    every = std::max(*read, absl::Milliseconds(100));
  }
  const bool live = environment.out_is_terminal && !arguments.once;
  TrainingClient client = MakeClient(arguments, environment);
  const absl::Duration until =
      environment.clock.MonotonicNow() + arguments.timeout.value_or(absl::InfiniteDuration());
  environment.hold_interrupts(live, "");
  int exit_code = kExitOk;
  do {
    const auto text = Look(arguments, environment, client);
    if (!text.ok()) {
      exit_code = ReportError(environment, text.status());
      break;
    }
    if (!live) {
      environment.out << *text;
      break;
    }
    environment.out << "\x1b[H\x1b[J"
                    << FirstLines(*text, std::max(2, environment.err_size().rows - 1))
                    << std::flush;
  } while (environment.clock.MonotonicNow() < until && Pause(environment, every));
  environment.hold_interrupts(false, "");
  return exit_code;
}

}  // namespace traind
