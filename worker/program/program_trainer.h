// Runs a user's program as a fold: from a Train message to the fold's files in the user's folder,
// or to its predictions for the rows of `data`.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/job_rules/program_rules.h"
#include "common/job_rules/user_program.h"
#include "proto/plain/job.h"
#include "worker/program/answer_sample.h"
#include "worker/program/kept_checkpoints.h"
#include "worker/program/log_quota.h"
#include "worker/program/report_lines.h"
#include "worker/program/row_answers.h"
#include "worker/program/running_program.h"
#include "worker/program/stop_schedule.h"
#include "worker/program/travelling_fold.h"
#include "worker/program/work_folder.h"
#include "worker/rank_protocol/messages.h"
#include "worker/task/answer_saver.h"
#include "worker/task/background_writer.h"
#include "worker/task/event_sink.h"
#include "worker/task/fold_trainer.h"
#include "worker/task/task_control.h"

namespace traind {

// Of a fold's folder: the files with its rows.
inline constexpr char kDataFolder[] = "data";
// A figure that a program has not told.
inline constexpr double kNotTold = std::numeric_limits<double>::quiet_NaN();

// Where the spec names epochs, a step is one of them. Else the program is one epoch, and a step is
// a hundredth of what it says that it means to do; where it says nothing, how long it ran tells
// what others like it take. Of a gang the first rank answers; the others run the program with ranks
// of their own. Threads, errors: those of FoldTrainer. USER_ERROR: the program cannot be started,
// has failed by itself or left no answer. INTERNAL: it was killed; another Attempt starts it again
// in the same folder.
class ProgramTrainer final : public FoldTrainer {
 public:
  // References outlive it.
  ProgramTrainer(rank_protocol::Train train, TaskControl& control, EventSink& sink,
                 const Clock& clock);
  ~ProgramTrainer() override;

  absl::Status Start() override;
  absl::StatusOr<Ending> TrainUntilStopped() override;
  absl::Status Finish(const Ending& ending) override;
  void Rescue() override;

 private:
  absl::Status LockFold();
  absl::Status MakeFolders();
  absl::Status AwaitFolders() const;
  std::string ProcessVariable() const;
  absl::Status ReadSpec();
  bool NeedsSetup() const;
  absl::Status Begin();
  absl::Status AfterSetup();
  PlaceholderValues Values() const;
  std::vector<std::string> Command(const std::vector<std::string>& words) const;
  std::vector<std::string> Environment() const;
  absl::Status Launch(const std::vector<std::string>& command);
  void SendStarted();

  void ReadOrders();
  StopCause WhyStop() const;
  void BeginStop(StopCause cause);
  void Escalate();
  void GuardDisk();
  absl::StatusOr<bool> BeginsAgain();
  absl::StatusOr<Ending> Ended();

  void TakeOutput(absl::string_view line);
  void TellLeftOut(absl::Duration now);
  void Take(const ProgramReport& report);
  void BeginEpochs(double done);
  void SendEpochs(double done, bool timed = true);
  void SendProgress();

  absl::StatusOr<std::vector<ResultFile>> Results();
  void RemoveUnsound(std::vector<ResultFile>& results, std::string& wrong) const;
  void KeepCheckpoints();
  void PackCheckpoints();
  void SaveInterim();
  rank_protocol::FoldSaved Saved() const;
  absl::Status SaveAnswer(StopCause cause, bool complete, bool last = true);
  bool WasKilled() const;
  bool TakeRows(const std::vector<ResultFile>& results, absl::Status& wrong);
  void SaveInterimRows(const std::vector<ResultFile>& results);
  void SendInterimRows();
  void KeepRows();
  void RescueRows();
  void RunPredict();
  absl::Status SaveRows(StopCause cause, bool complete);
  absl::Status WriteResults(const std::vector<ResultFile>& results, std::string& sha256) const;
  std::string WhyNotStarted(const KeeperReport& end) const;
  std::string Tail() const;
  std::string ResultsFolder() const;
  double Epochs() const;  // of the Plan
  bool TellsEpochs() const { return spec_.epochs > 0; }
  std::string InFold(absl::string_view name) const;
  void Log(const char* level, std::string text);

  const rank_protocol::Train train_;
  TaskControl& control_;
  EventSink& sink_;
  const Clock& clock_;

  UserProgram user_;
  plain::RunSpec spec_;   // of user_
  std::string fold_dir_;  // absolute
  int lock_ = -1;
  int64_t try_ = 0;
  FileMarks marks_;
  std::unique_ptr<RunningProgram> program_;
  bool setting_up_ = false;  // program_ is that of `setup`
  AnswerSample sample_;
  std::optional<KeptCheckpoints> checkpoints_;
  std::optional<TravellingFold> travelling_;
  absl::Duration keep_at_;  // checkpoints, not before

  TaskControl::Orders orders_;
  int64_t orders_version_ = 0;
  std::optional<StopSchedule> stop_;
  StopCause stop_cause_ = StopCause::kNone;
  bool terminated_ = false, killed_ = false;
  bool filled_disk_ = false;
  absl::Duration interim_at_;  // not before
  absl::Duration interim_took_;
  int64_t interim_newest_ = 0;  // when the newest file of the last interim answer was written

  // Where the program answers for rows.
  std::unique_ptr<RowAnswers> rows_;
  BackgroundWriter writer_;
  std::unique_ptr<AnswerSaver> saver_;
  std::optional<FoldAnswers> answers_;  // the last that were valid

  absl::Duration began_, progress_at_, epoch_at_;
  bool reports_ = false;  // it writes to descriptor 3
  double done_ = 0;       // epochs, or the share of its own
  int told_epochs_ = 0;
  bool began_epochs_ = false;            // this start has told of an epoch
  double total_ = 0;                     // epochs that it means to do; 0: not said
  std::optional<double> loss_, metric_;  // what it told last
  std::deque<std::string> tail_;         // the last lines of output
  LogQuota log_quota_;
};

}  // namespace traind
