#include "server/end_hook.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>
#include <absl/time/clock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/log.h"
#include "common/base/start_program.h"
#include "common/base/status_macros.h"
#include "server/domain/names.h"

namespace traind {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(30);
constexpr absl::Duration kPauses[] = {absl::Seconds(1), absl::Seconds(10)};  // between tries
constexpr absl::Duration kLook = absl::Milliseconds(20);
constexpr absl::Duration kIdleLook = absl::Milliseconds(200);

// Returns the error that a wait status stands for; OK: the program has succeeded.
absl::Status StatusOfEnd(int ended) {
  if (WIFSIGNALED(ended)) {
    return absl::AbortedError(absl::StrCat("it was ended by signal ", WTERMSIG(ended)));
  }
  if (WEXITSTATUS(ended) == 0) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("it ended with status ", WEXITSTATUS(ended)));
}

}  // namespace

EndHook::EndHook(std::string state_dir, std::string program, const JobViews* views, Store* store,
                 TrainingCalls* calls)
    : state_dir_(std::move(state_dir)),
      program_(std::move(program)),
      views_(views),
      store_(store),
      api_(calls, {"", [](const std::function<void()>& work) { work(); }}) {}

absl::Status EndHook::Start() {
  const std::string mark = absl::StrCat(state_dir_, "/", kEndHookFile);
  if (program_.empty()) {
    if (unlink(mark.c_str()) != 0 && errno != ENOENT) {
      return ErrnoStatus(errno, absl::StrCat("cannot remove ", mark));
    }
    return absl::OkStatus();
  }
  const absl::StatusOr<std::string> text = ReadFile(mark);
  int64_t since = 0;
  if (text.ok() && absl::SimpleAtoi(absl::StripSuffix(*text, "\n"), &since)) {
    since_ = absl::FromUnixMicros(since);
  } else {
    since_ = SystemClock().WallNow();
    RETURN_IF_ERROR(WriteFileDurably(mark, absl::StrCat(absl::ToUnixMicros(since_), "\n")));
  }
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

void EndHook::Stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

void EndHook::Run() {
  CollectStored();
  while (!stopping_) {
    CollectEnded();
    if (ended_.empty()) {
      views_->WaitAny(seen_, kIdleLook);
      continue;
    }
    const std::string id = std::move(ended_.front());
    ended_.pop_front();
    Tell(id);
  }
}

void EndHook::CollectStored() {
  JobFilter over;
  over.states = {JobState::kSucceeded, JobState::kFailed, JobState::kCancelled};
  do {
    const auto page = store_->ListJobs(over);
    if (!page.ok()) {
      TRAIND_LOG(ERROR) << "--on-end: cannot read which Jobs have ended: " << page.status();
      return;
    }
    // Newest first; they are told in the other order.
    for (const auto& job : page->jobs) {
      if (job->finished_at >= since_ && !IsTold(job->id)) ended_.push_front(job->id);
    }
    over.page_token = page->next_page_token;
  } while (!over.page_token.empty() && !stopping_);
}

bool EndHook::IsTold(const std::string& id) const {
  return access(absl::StrCat(state_dir_, "/", EndToldMark(id)).c_str(), F_OK) == 0;
}

void EndHook::CollectEnded() {
  const uint64_t before = std::exchange(seen_, views_->WaitAny(seen_, absl::ZeroDuration()));
  for (const std::string& id : views_->Ended(before)) ended_.push_back(id);
}

void EndHook::Tell(const std::string& id) {
  if (IsTold(id)) return;
  const absl::StatusOr<RenderedJob> job = api_.RenderJob(id);
  if (!job.ok()) {
    if (!absl::IsNotFound(job.status())) TRAIND_LOG(ERROR) << "--on-end: " << job.status();
    return;  // it was deleted meanwhile
  }
  const std::string file = absl::StrCat(state_dir_, "/", EndedJobFile(id));
  const auto try_once = [&]() -> absl::Status {
    RETURN_IF_ERROR(MakeDirs(absl::StrCat(state_dir_, "/", JobDir(id))));
    RETURN_IF_ERROR(WriteFileDurably(file, absl::StrCat(job->json, "\n")));
    return RunOnce(id, file);
  };
  absl::Status told = try_once();
  for (const absl::Duration pause : kPauses) {
    if (told.ok()) break;
    TRAIND_LOG(WARNING) << "--on-end " << program_ << " of job " << id << ": " << told.message()
                        << "; it is tried again in " << absl::FormatDuration(pause);
    if (!Sleep(pause)) return;
    told = try_once();
  }
  if (!told.ok() && stopping_) return;  // it is told after the next start
  if (!told.ok()) {
    TRAIND_LOG(ERROR) << "--on-end " << program_ << " of job " << id << ": " << told.message()
                      << "; it is not tried again";
  }
  const absl::Status marked = WriteFileDurably(absl::StrCat(state_dir_, "/", EndToldMark(id)), "");
  if (!marked.ok()) TRAIND_LOG(ERROR) << "--on-end: job " << id << " is told again: " << marked;
}

absl::Status EndHook::RunOnce(const std::string& job, const std::string& file) {
  std::shared_ptr<const Job> ended_job = views_->Find(job).job;
  if (ended_job == nullptr) {
    ASSIGN_OR_RETURN(Job stored, store_->GetJob(job));
    ended_job = std::make_shared<const Job>(std::move(stored));
  }
  ProgramStart start;
  start.arguments = {program_, job, Name(ended_job->state), file};
  start.group = ProgramStart::kOwnGroup;  // what it starts is killed with it
  ASSIGN_OR_RETURN(const pid_t child, StartProgram(start));
  const absl::Duration end = SystemClock().MonotonicNow() + kPatience;
  while (true) {
    int ended = 0;
    const pid_t waited = waitpid(child, &ended, WNOHANG);
    if (waited == child) return StatusOfEnd(ended);
    if (waited < 0 && errno != EINTR) return ErrnoStatus(errno, "cannot wait for it");
    const bool late = SystemClock().MonotonicNow() >= end;
    if (!late && Sleep(kLook)) continue;
    kill(-child, SIGKILL);
    while (waitpid(child, &ended, 0) < 0 && errno == EINTR) continue;
    return absl::DeadlineExceededError(
        late ? absl::StrCat("it did not end within ", absl::FormatDuration(kPatience))
             : "traind stops");
  }
}

bool EndHook::Sleep(absl::Duration time) {
  const absl::Duration end = SystemClock().MonotonicNow() + time;
  while (!stopping_) {
    CollectEnded();
    const absl::Duration left = end - SystemClock().MonotonicNow();
    if (left <= absl::ZeroDuration()) return true;
    absl::SleepFor(std::min(left, kLook));
  }
  return false;
}

}  // namespace traind
