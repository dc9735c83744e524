// The calls that read logs, and the spec of a Job.
#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>
#include <absl/time/clock.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "common/base/worker_log_file.h"
#include "common/spec/spec_rules.h"
#include "server/domain/names.h"
#include "server/rpc/job_conversion.h"
#include "server/rpc/log_reader.h"
#include "server/rpc/training_calls.h"

namespace traind {
namespace {

constexpr size_t kLinesPerReply = 500;
constexpr size_t kBytesPerReply = 1 << 20;
// How long a call sleeps at most before it looks whether its client is gone.
constexpr absl::Duration kLookAround = absl::Milliseconds(500);

absl::StatusOr<LogFilter> FilterOf(const v1::GetLogsRequest& request) {
  LogFilter filter;
  const std::string level = absl::AsciiStrToLower(request.level());
  if (level == "warning") {
    filter.least = LogLevel::kWarning;
  } else if (level == "error") {
    filter.least = LogLevel::kError;
  } else if (!level.empty() && level != "info") {
    return absl::InvalidArgumentError("level: must be one of: info, warning, error");
  }
  if (request.has_since()) {
    filter.since = absl::FromUnixSeconds(request.since().seconds()) +
                   absl::Nanoseconds(request.since().nanos());
  }
  if (request.tail() < 0) return absl::InvalidArgumentError("tail: is negative");
  if (request.grep().empty()) return filter;
  auto grep = std::make_shared<RE2>(request.grep(), RE2::Quiet);
  if (!grep->ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("grep: is no regular expression: ", grep->error()));
  }
  filter.grep = std::move(grep);
  return filter;
}

// Returns the ranks that have logs in an Attempt's folder, ascending.
std::vector<int> RanksWithLogs(const std::string& folder) {
  std::vector<int> ranks;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    absl::string_view name = at->path().filename().native();
    int rank = 0;
    if (absl::ConsumePrefix(&name, "rank") && absl::ConsumeSuffix(&name, ".log") &&
        absl::SimpleAtoi(name, &rank)) {
      ranks.push_back(rank);
    }
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

// Sends lines in replies of some hundred.
// Threads: confined to one.
class LogSender {
 public:
  explicit LogSender(const ReplySink<v1::LogsReply>& replies) : replies_(replies) {}

  bool Send(v1::LogLine line) {
    bytes_ += line.text().size();
    *reply_.add_lines() = std::move(line);
    return reply_.lines_size() < static_cast<int>(kLinesPerReply) && bytes_ < kBytesPerReply
               ? true
               : Flush();
  }
  bool Flush(bool end = false) {
    reply_.set_end(end);
    const bool sent = (reply_.lines().empty() && !end) || replies_.write(reply_);
    reply_.Clear();
    bytes_ = 0;
    return sent;
  }

 private:
  const ReplySink<v1::LogsReply>& replies_;
  v1::LogsReply reply_;
  size_t bytes_ = 0;
};

v1::LogLine LineOf(LogRecord record) {
  v1::LogLine line;
  line.set_offset(record.offset);
  if (record.at != absl::InfinitePast()) *line.mutable_at() = ToProto(record.at);
  line.set_level(record.level == LogLevel::kInfo      ? "info"
                 : record.level == LogLevel::kWarning ? "warning"
                                                      : "error");
  line.set_text(std::move(record.text));
  return line;
}

// The logs of a Job's Attempts, in the order of the Attempts.
// Threads: confined to one.
class JobLogs {
 public:
  JobLogs(std::string state_dir, const v1::GetLogsRequest& request, LogFilter filter)
      : state_dir_(std::move(state_dir)), request_(request), filter_(std::move(filter)) {
    for (const v1::LogPosition& position : request.after()) {
      begin_[{position.attempt(), position.rank()}] = position.offset();
    }
  }

  // Sends what was added since the last call. Returns false if the client is gone.
  bool Send(const Job& job, LogSender& sender) {
    for (const Attempt& attempt : job.attempts) {
      if (read_.count(attempt.id) > 0 || !Wanted(attempt)) continue;
      if (!SendAttempt(job.id, attempt, sender)) return false;
      if (attempt.ended_at != absl::InfiniteFuture()) read_.insert(attempt.id);
    }
    return true;
  }

 private:
  bool Wanted(const Attempt& attempt) const {
    return !request_.has_fold() || attempt.fold == request_.fold();
  }

  bool SendAttempt(const std::string& job, const Attempt& attempt, LogSender& sender) {
    const bool whole = attempt.ended_at != absl::InfiniteFuture();
    for (const int rank :
         RanksWithLogs(absl::StrCat(state_dir_, "/", AttemptDir(job, attempt.id)))) {
      if (request_.has_rank() && request_.rank() != rank) continue;
      const std::pair<int64_t, int> key(attempt.id, rank);
      std::unique_ptr<LogFile>& file = files_[key];
      const bool first = file == nullptr;
      if (first) {
        file = std::make_unique<LogFile>(
            absl::StrCat(state_dir_, "/", RankLogPath(job, attempt.id, rank)), begin_[key]);
      }
      const bool sent =
          file->Read(filter_, first ? request_.tail() : 0, whole, [&](LogRecord record) {
            v1::LogLine line = LineOf(std::move(record));
            line.set_attempt(attempt.id);
            line.set_task(TaskName(attempt));
            line.set_rank(rank);
            return sender.Send(std::move(line));
          });
      if (!sent) return false;
      if (whole) files_.erase(key);
    }
    return true;
  }

  const std::string state_dir_;
  const v1::GetLogsRequest& request_;
  const LogFilter filter_;
  std::map<std::pair<int64_t, int>, int64_t> begin_;                   // (attempt, rank)
  std::map<std::pair<int64_t, int>, std::unique_ptr<LogFile>> files_;  // that may grow
  std::set<int64_t> read_;                                             // Attempts, to their end
};

// The log of the standalone Worker.
// Threads: confined to one.
class WorkerLog {
 public:
  WorkerLog(const std::string& state_dir, const v1::GetLogsRequest& request, LogFilter filter)
      : file_(absl::StrCat(state_dir, "/", kWorkerLogFile),
              request.after().empty() ? 0 : request.after(0).offset()),
        tail_(request.tail()),
        filter_(std::move(filter)) {}

  // Sends what was added since the last call. Returns false if the client is gone.
  bool Send(LogSender& sender) {
    return file_.Read(filter_, std::exchange(tail_, 0), /*whole=*/false,
                      [&](LogRecord record) { return sender.Send(LineOf(std::move(record))); });
  }

 private:
  LogFile file_;
  int tail_;
  const LogFilter filter_;
};

}  // namespace

absl::Status TrainingCalls::GetLogs(const v1::GetLogsRequest& request,
                                    const ReplySink<v1::LogsReply>& replies) {
  absl::StatusOr<LogFilter> filter = FilterOf(request);
  if (!filter.ok()) return filter.status();
  LogSender sender(replies);
  std::string id;
  if (!request.worker()) {
    ASSIGN_OR_RETURN(const auto found, Find(request.id()));
    id = found->id;
  }
  WorkerLog worker(state_dir_, request, *filter);
  JobLogs logs(state_dir_, request, *filter);
  while (!replies.cancelled()) {
    // Looked at before the logs: the Attempts of what is over write nothing afterwards.
    const JobViews::View view = loop_->views().Find(id);
    bool last = !request.follow();
    if (request.worker()) {
      if (!worker.Send(sender)) break;
    } else {
      std::shared_ptr<const Job> job = view.job;
      if (job == nullptr) {
        ASSIGN_OR_RETURN(job, Find(id));
      }
      last = last || IsTerminal(job->state);
      if (!logs.Send(*job, sender)) break;
    }
    if (!sender.Flush(last)) break;
    if (last) return absl::OkStatus();
    if (request.worker()) {
      absl::SleepFor(kLookAround);
    } else {
      loop_->views().Wait(id, view.change, kLookAround);
    }
    if (loop_->views().closed()) {
      return absl::UnavailableError("traind is stopping; ask again when it is back");
    }
  }
  return absl::CancelledError();
}

absl::Status TrainingCalls::GetSpec(const v1::GetSpecRequest& request, v1::GetSpecReply* reply) {
  ASSIGN_OR_RETURN(const auto job, Find(request.id()));
  ASSIGN_OR_RETURN(*reply->mutable_resolved(), SpecFromJson(job->spec_json));
  reply->set_text(job->spec_text);
  reply->set_id(job->id);
  return absl::OkStatus();
}

}  // namespace traind
