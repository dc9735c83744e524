#include "client/follow.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "client/exit_codes.h"
#include "client/fetch_file.h"
#include "client/fetch_results.h"
#include "client/progress.h"
#include "client/render_table.h"
#include "client/trials.h"
#include "client/verbs.h"
#include "common/base/duration.h"
#include "common/spec/field_text.h"
#include "common/wire/render_json.h"

namespace traind {
namespace {

constexpr absl::Duration kPlainInterval = absl::Seconds(10);

// The common part of both views: the Job, and the Decisions not shown yet.
class ProgressView : public FollowView {
 public:
  ProgressView(Environment& environment, bool verbose)
      : environment_(environment), verbose_(verbose), start_(environment.clock.MonotonicNow()) {}

  void OnJob(const v1::Job& job) override {
    const std::string change = job_.id().empty() ? "" : AnswerChange(job_, job);
    job_ = job;
    seen_ = environment_.clock.MonotonicNow();
    for (; decisions_ < job.decisions_size(); ++decisions_) {
      const v1::Decision& decision = job.decisions(decisions_);
      Note(absl::StrCat("decision ", ClockText(decision.at(), environment_.clock.WallNow()), " ",
                        DecisionText(decision, verbose_)));
    }
    if (!change.empty()) {
      Note(absl::StrCat("answer ", ClockText(job.predictions().at(), environment_.clock.WallNow()),
                        " ", change));
    }
    Show();
  }

 protected:
  virtual void Show() = 0;
  Moment now() const {
    return {environment_.clock.WallNow(), environment_.clock.MonotonicNow() - seen_};
  }
  absl::Duration elapsed() const { return environment_.clock.MonotonicNow() - start_; }

  Environment& environment_;
  v1::Job job_;

 private:
  const bool verbose_;
  const absl::Duration start_;
  absl::Duration seen_;
  int decisions_ = 0;
};

class PlainView final : public ProgressView {
 public:
  using ProgressView::ProgressView;
  void OnTick() override {
    if (elapsed() - shown_at_ >= kPlainInterval) Print();
  }
  void Note(const std::string& line) override { environment_.err << line << std::endl; }
  void Close() override {}

 private:
  void Show() override {
    std::string key = MilestoneKey(job_);
    if (key == shown_) return;
    shown_ = std::move(key);
    Print();
  }
  void Print() {
    shown_at_ = elapsed();
    if (HasEnded(job_)) return;  // the summary replaces it
    const int64_t s = absl::ToInt64Seconds(shown_at_);
    environment_.err << absl::StrCat("[", DurationToText(absl::Seconds(s)), "] ",
                                     PlainLine(job_, now()))
                     << std::endl;
  }

  std::string shown_;
  absl::Duration shown_at_;
};

class LiveView final : public ProgressView {
 public:
  using ProgressView::ProgressView;
  ~LiveView() override { Close(); }
  void OnTick() override { Draw(); }
  void Note(const std::string& line) override {
    Erase();
    environment_.err << line << "\n";
    Draw();
  }
  void Close() override { environment_.err.flush(); }

 private:
  void Show() override { Draw(); }
  void Draw() {
    if (job_.id().empty()) return;
    const TerminalSize size = environment_.err_size();
    std::vector<std::string> lines;
    // The summary shows the end. The last column stays free because some terminals wrap as soon as
    // it is filled.
    if (!HasEnded(job_)) {
      lines =
          ProgressLines(job_, now(), std::max(20, size.columns - 1), std::max(2, size.rows - 2));
    }
    if (lines == lines_ && size.columns == columns_) return;
    Erase();
    for (const std::string& line : lines) environment_.err << line << "\n";
    environment_.err.flush();
    lines_ = std::move(lines);
    columns_ = size.columns;
  }
  // Also works after the window became narrower and the terminal wrapped the lines.
  void Erase() {
    const int columns = std::max(1, environment_.err_size().columns);
    int rows = 0;
    for (const std::string& line : lines_) {
      rows += std::max(1, (DisplayWidth(line) + columns - 1) / columns);
    }
    if (rows > 0) environment_.err << "\x1b[" << rows << "A\r\x1b[J";
    lines_.clear();
  }

  std::vector<std::string> lines_;  // on the screen, above the cursor
  int columns_ = 0;                 // of the terminal when they were drawn
};

class QuietView final : public FollowView {
 public:
  explicit QuietView(Environment& environment) : environment_(environment) {}
  void OnJob(const v1::Job&) override {}
  void OnTick() override {}
  void Note(const std::string& line) override { environment_.err << line << std::endl; }
  void Close() override {}

 private:
  Environment& environment_;
};

}  // namespace

std::unique_ptr<FollowView> MakeFollowView(Environment& environment, bool progress, bool verbose) {
  if (!progress) return std::make_unique<QuietView>(environment);
  if (environment.err_is_terminal) return std::make_unique<LiveView>(environment, verbose);
  return std::make_unique<PlainView>(environment, verbose);
}

FollowResult FollowJob(TrainingClient& client, v1::Job job, absl::Duration limit,
                       Environment& environment, FollowView& view) {
  const absl::Duration until = environment.clock.MonotonicNow() + limit;
  JobFollower follower(client, std::move(job), until, environment.clock, view);
  const auto end = [&follower](FollowResult::End how, absl::Status status = absl::OkStatus()) {
    return FollowResult{how, follower.job(), std::move(status)};
  };
  view.OnJob(follower.job());
  while (!HasEnded(follower.job())) {
    if (environment.interrupted != nullptr && environment.interrupted->load()) {
      return end(FollowResult::End::kDetached);
    }
    if (environment.clock.MonotonicNow() >= until) return end(FollowResult::End::kTimedOut);
    const absl::Status status = follower.Step(kFollowTick);
    if (!status.ok()) return end(FollowResult::End::kError, status);
    view.OnTick();
  }
  return end(FollowResult::End::kTerminal);
}

int FollowToTheEnd(const Arguments& arguments, Environment& environment, TrainingClient& client,
                   v1::Job job, const std::string& output, bool show_progress,
                   const std::string& results_to) {
  const std::string id = job.id();
  const std::string again = absl::StrCat("trainctl ", arguments.reach, "watch ", Printable(id));
  environment.hold_interrupts(true, "");
  FollowResult result;
  {
    const auto view =
        MakeFollowView(environment, show_progress && arguments.progress, arguments.verbose);
    result = FollowJob(client, std::move(job), arguments.timeout.value_or(absl::InfiniteDuration()),
                       environment, *view);
    view->Close();
  }
  environment.hold_interrupts(false, "");
  switch (result.end) {
    case FollowResult::End::kDetached:
      environment.err << "detached; " << Printable(id) << " goes on. To come back: " << again
                      << "\n";
      return kExitInterrupted;
    case FollowResult::End::kTimedOut:
      environment.err << "trainctl: " << Printable(id) << " is still "
                      << StateText(result.job.state(), false) << " after "
                      << DurationToText(*arguments.timeout)
                      << "; it goes on. To come back: " << again << "\n";
      return kExitTimeout;
    case FollowResult::End::kError:
      return ReportError(environment, result.status);
    case FollowResult::End::kTerminal:
      break;
  }
  int exit_code = ExitCodeOfEnd(result.job);
  std::string copied, fetch;  // fetch: the command that copies what could not be copied
  if (!output.empty() && result.job.has_predictions() && exit_code == kExitOk) {
    const auto file = FetchToFile(client, id, "", output, absl::InfiniteDuration());
    if (file.ok()) {
      copied = output;
    } else {
      exit_code = ReportError(environment, file.status());
      fetch = absl::StrCat("fetch ", Printable(id), " --to FILE");
    }
  }
  if (!results_to.empty()) {
    // A Job that failed may have left some, too.
    const auto files = FetchResults(client, id, results_to, absl::InfiniteDuration());
    if (files.ok()) {
      copied =
          absl::StrCat(results_to, " (", files->files, files->files == 1 ? " file)" : " files)");
    } else if (absl::IsNotFound(files.status())) {
      environment.err << "the program has left no files\n";
    } else {
      const int failed = ReportError(environment, files.status());
      if (exit_code == kExitOk) exit_code = failed;
      fetch = absl::StrCat("fetch ", Printable(id), " --out DIR");
    }
  }
  if (arguments.json) {
    environment.out << ToJson(result.job) << "\n";
  } else {
    environment.out << JobSummary(result.job, environment.clock.WallNow(),
                                  StyleOf(arguments, environment, client, result.job));
    if (!copied.empty()) environment.out << "  copied to   " << Printable(copied, 4096) << "\n";
  }
  environment.out.flush();
  if (!fetch.empty()) {
    SuggestNext(arguments, environment, {fetch});
  } else if (results_to.empty() && KeepsResults(result.job)) {
    SuggestNext(arguments, environment, {"fetch " + Printable(id), "logs " + Printable(id)});
  } else if (exit_code == kExitOk && !result.job.has_predictions()) {
    SuggestNext(arguments, environment, {"logs " + Printable(id)});
  } else if (exit_code == kExitOk) {
    std::vector<std::string> next = {"metrics " + Printable(id) + " --plot"};
    if (!ProgramsAnswer(result.job) && result.job.models_from().empty()) {
      next.push_back("predict " + Printable(id) + " --data FILE --out predictions.csv");
    }
    SuggestNext(arguments, environment, next);
  } else if (exit_code == kExitError) {
    SuggestNext(arguments, environment, {"logs " + Printable(id) + " --level warning"});
  }
  return exit_code;
}

}  // namespace traind
