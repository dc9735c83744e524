#include "server/http/metrics_page.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>
#include <absl/strings/str_split.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include "common/base/json_text.h"
#include "server/domain/names.h"

namespace traind {
namespace {

using Labels = std::vector<std::pair<absl::string_view, std::string>>;

constexpr JobState kLiveStates[] = {JobState::kQueued, JobState::kPlanning, JobState::kRunning,
                                    JobState::kFinalizing, JobState::kPaused};

class PageWriter {
 public:
  void Metric(absl::string_view name, absl::string_view type, absl::string_view help) {
    name_ = std::string(name);
    absl::StrAppend(&text_, "# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
  }
  void Sample(const Labels& labels, double value, absl::string_view suffix = "") {
    absl::StrAppend(&text_, name_, suffix);
    for (const auto& [key, label] : labels) {
      const std::string escaped =
          absl::StrReplaceAll(label, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}});
      absl::StrAppend(&text_, &key == &labels.front().first ? "{" : ",", key, "=\"", escaped, "\"");
    }
    absl::StrAppend(&text_, labels.empty() ? "" : "}", " ", JsonNumber(value), "\n");
  }
  void One(absl::string_view name, absl::string_view type, absl::string_view help, double value) {
    Metric(name, type, help);
    Sample({}, value);
  }
  void Histogram(const Labels& labels, const DurationCounts& counts) {
    uint64_t below = 0;
    Labels with_end = labels;
    with_end.emplace_back("le", "");
    for (size_t i = 0; i < counts.buckets.size(); ++i) {
      below += counts.buckets[i];
      with_end.back().second = i < kBucketEnds.size() ? absl::StrCat(kBucketEnds[i]) : "+Inf";
      Sample(with_end, static_cast<double>(below), "_bucket");
    }
    Sample(labels, counts.sum_s, "_sum");
    Sample(labels, static_cast<double>(counts.count), "_count");
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string name_, text_;
};

void WriteJobs(const MetricsInput& input, PageWriter& page) {
  std::map<JobState, int> states;
  std::map<std::string, int> waiting;
  int training = 0;
  for (const auto& job : input.active) {
    ++states[job->state];
    if (job->pending_reason != PendingReason::kNone) ++waiting[Name(job->pending_reason)];
    training +=
        static_cast<int>(std::count_if(job->tasks.begin(), job->tasks.end(), [](const Task& task) {
          return task.kind == TaskKind::kTrain && task.state == TaskState::kRunning;
        }));
  }
  page.Metric("traind_jobs", "gauge", "Jobs that are not over.");
  for (const JobState state : kLiveStates) page.Sample({{"state", Name(state)}}, states[state]);
  page.Metric("traind_jobs_waiting", "gauge", "Jobs that wait, by reason.");
  for (const auto& [reason, count] : waiting) page.Sample({{"reason", reason}}, count);
  page.One("traind_folds_running", "gauge", "Models that are being trained.", training);
  page.Metric("traind_jobs_ended_total", "counter", "Jobs that ended since the start.");
  for (const auto& [how, count] : input.loop.ended) {
    page.Sample({{"state", Name(how.first)}, {"reason", Name(how.second)}},
                static_cast<double>(count));
  }
  page.Metric("traind_deadlines_total", "counter",
              "Ended Jobs with a deadline that were not cancelled, by whether they kept it.");
  page.Sample({{"outcome", "met"}}, static_cast<double>(input.loop.deadlines_met));
  page.Sample({{"outcome", "missed"}}, static_cast<double>(input.loop.deadlines_missed));
}

void WriteJobsWithDeadlines(const MetricsInput& input, PageWriter& page) {
  std::vector<std::shared_ptr<const Job>> told;
  for (const auto& job : input.active) {
    if (job->deadline != absl::InfiniteFuture()) told.push_back(job);
  }
  std::sort(told.begin(), told.end(),
            [](const auto& a, const auto& b) { return a->deadline < b->deadline; });
  if (told.size() > kMostJobsTold) told.resize(kMostJobsTold);
  page.Metric("traind_job_deadline_slack_seconds", "gauge",
              "Time until the deadline of a Job that is not over.");
  for (const auto& job : told) {
    page.Sample({{"job", job->id}}, absl::ToDoubleSeconds(job->deadline - input.now));
  }
  page.Metric("traind_job_folds_done_ratio", "gauge",
              "Share of the planned models of a Job that are trained.");
  for (const auto& job : told) {
    double planned = 0, done = 0;
    for (const Task& task : job->tasks) {
      if (task.kind != TaskKind::kTrain) continue;
      ++planned;
      done += task.state == TaskState::kDone;
    }
    if (planned > 0) page.Sample({{"job", job->id}}, done / planned);
  }
}

void WriteWorkers(const MetricsInput& input, PageWriter& page) {
  int attached = 0, busy = 0, idle = 0;
  for (const v1::WorkerInfo& worker : input.workers.workers()) {
    if (!worker.connected()) continue;
    ++attached;
    for (const v1::SlotInfo& slot : worker.slots()) ++(slot.job().empty() ? idle : busy);
  }
  page.One("traind_workers", "gauge", "Workers that are attached.", attached);
  page.Metric("traind_slots", "gauge", "Slots of the Workers that are attached.");
  page.Sample({{"state", "busy"}}, busy);
  page.Sample({{"state", "idle"}}, idle);
}

using Figure = std::optional<double>;

Figure If(bool told, double value) { return told ? Figure(value) : std::nullopt; }

struct GpuMetric {
  absl::string_view name, type, help;
  Figure (*value)(const v1::SlotInfo& slot);  // none: the GPU does not tell it
};

// The names are those that other servers on GPUs have, too.
constexpr GpuMetric kGpuMetrics[] = {
    {"traind_gpu_utilization_ratio", "gauge", "Share of the last moment in which a kernel ran.",
     [](const v1::SlotInfo& slot) {
       return If(slot.figures().has_utilisation(), slot.figures().utilisation());
     }},
    {"traind_gpu_memory_used_bytes", "gauge", "Memory of the GPU that is in use.",
     [](const v1::SlotInfo& slot) {
       return If(slot.figures().has_memory_bytes(),
                 static_cast<double>(slot.figures().memory_bytes()));
     }},
    {"traind_gpu_memory_total_bytes", "gauge", "Memory of the GPU.",
     [](const v1::SlotInfo& slot) {
       return If(slot.memory_bytes() > 0, static_cast<double>(slot.memory_bytes()));
     }},
    {"traind_gpu_power_watts", "gauge", "Power that the GPU draws.",
     [](const v1::SlotInfo& slot) {
       return If(slot.figures().has_power_watts(), slot.figures().power_watts());
     }},
    {"traind_gpu_temperature_celsius", "gauge", "Temperature of the GPU.",
     [](const v1::SlotInfo& slot) {
       return If(slot.figures().has_temperature_celsius(), slot.figures().temperature_celsius());
     }},
    {"traind_gpu_energy_joules_total", "counter",
     "Energy that the GPU has used since its driver was loaded.",
     [](const v1::SlotInfo& slot) {
       return If(slot.figures().has_energy_joules(), slot.figures().energy_joules());
     }},
};

void WriteGpus(const MetricsInput& input, PageWriter& page) {
  for (const GpuMetric& metric : kGpuMetrics) {
    page.Metric(metric.name, metric.type, metric.help);
    for (const v1::WorkerInfo& worker : input.workers.workers()) {
      for (const v1::SlotInfo& slot : worker.slots()) {
        const Figure told = slot.has_figures() ? metric.value(slot) : std::nullopt;
        if (!told) continue;
        page.Sample({{"worker", worker.id()},
                     {"gpu", absl::StrCat(slot.index())},
                     {"uuid", slot.uuid()},
                     {"name", slot.name()}},
                    *told);
      }
    }
  }
}

void WriteCalls(absl::string_view transport, const CallFigures::Counts& counts, PageWriter& page) {
  page.Metric(absl::StrCat("traind_", transport, "_requests_total"), "counter",
              "Calls that were answered, by method and outcome.");
  for (const auto& [key, count] : counts.outcomes) {
    page.Sample({{"method", key.first}, {"code", key.second}}, static_cast<double>(count));
  }
  page.Metric(absl::StrCat("traind_", transport, "_request_duration_seconds"), "histogram",
              "Time until a call was answered.");
  for (const auto& [method, durations] : counts.durations) {
    page.Histogram({{"method", method}}, durations);
  }
}

void WriteProcess(PageWriter& page) {
  const ProcessFigures process = ReadProcessFigures();
  page.One("process_cpu_seconds_total", "counter", "Time that the process used of the cores.",
           process.cpu_s);
  page.One("process_resident_memory_bytes", "gauge", "Memory that is resident.",
           static_cast<double>(process.resident_bytes));
  page.One("process_virtual_memory_bytes", "gauge", "Address space.",
           static_cast<double>(process.virtual_bytes));
  page.One("process_open_fds", "gauge", "Open descriptors.",
           static_cast<double>(process.open_files));
  page.One("process_max_fds", "gauge", "How many descriptors may be open.",
           static_cast<double>(process.most_files));
  page.One("process_threads", "gauge", "Threads.", static_cast<double>(process.threads));
  page.One("process_start_time_seconds", "gauge", "When the process began, since the epoch.",
           process.started_s);
}

// The value behind `key` of /proc/.../status; 0: it is not there.
int64_t StatusValue(const std::string& status, absl::string_view key) {
  for (const absl::string_view line : absl::StrSplit(status, '\n')) {
    std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(": \t"), absl::SkipEmpty());
    int64_t value = 0;
    if (words.size() > 1 && words[0] == key && absl::SimpleAtoi(words[1], &value)) return value;
  }
  return 0;
}

std::string FileText(const char* path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// When the machine started, in seconds since the epoch.
double BootTime() { return static_cast<double>(StatusValue(FileText("/proc/stat"), "btime")); }

}  // namespace

ProcessFigures ReadProcessFigures() {
  ProcessFigures figures;
  const std::string status = FileText("/proc/self/status");
  figures.resident_bytes = StatusValue(status, "VmRSS") * 1024;
  figures.virtual_bytes = StatusValue(status, "VmSize") * 1024;
  figures.threads = StatusValue(status, "Threads");
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc/self/fd", error), end; it != end; ++it) {
    ++figures.open_files;
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    figures.most_files = static_cast<int64_t>(limit.rlim_cur);
  }
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    figures.cpu_s = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                    1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  }
  // The fields behind the program's name, which may contain anything but ')'.
  const std::string stat = FileText("/proc/self/stat");
  const std::vector<std::string> fields = absl::StrSplit(stat.substr(stat.rfind(')') + 1), ' ');
  constexpr size_t kStartField = 20;
  int64_t ticks = 0;
  if (fields.size() > kStartField && absl::SimpleAtoi(fields[kStartField], &ticks)) {
    figures.started_s =
        BootTime() + static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
  }
  return figures;
}

std::string MetricsPage(const MetricsInput& input) {
  PageWriter page;
  page.Metric("traind_build_info", "gauge", "1, with the version as a label.");
  page.Sample({{"version", input.version}}, 1);
  WriteJobs(input, page);
  WriteJobsWithDeadlines(input, page);
  WriteWorkers(input, page);
  WriteGpus(input, page);
  page.One("traind_events_total", "counter", "Events that the control loop has handled.",
           static_cast<double>(input.loop.events));
  page.Metric("traind_loop_turn_seconds", "histogram",
              "Time in which the control loop decides, commits and acts once.");
  page.Histogram({}, input.loop.turns);
  page.Metric("traind_store_commit_seconds", "histogram", "Time of a transaction of the store.");
  page.Histogram({}, input.loop.commits);
  page.One("traind_store_log_bytes", "gauge",
           "The store's write-ahead log that is not moved into the database yet. It stays above "
           "64 MiB only while another program keeps a read transaction of traind.db open.",
           static_cast<double>(input.loop.log_bytes));
  WriteCalls("grpc", input.grpc, page);
  WriteCalls("http", input.http, page);
  page.One("traind_http_connections", "gauge", "Open HTTP connections.", input.http_connections);
  page.One("traind_event_streams", "gauge", "Streams of events that are open.",
           input.event_streams);
  WriteProcess(page);
  return page.Take();
}

}  // namespace traind
