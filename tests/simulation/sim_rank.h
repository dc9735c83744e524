// A process that works for a SimWorker: a Rank, or PREPARE. It takes and says the messages of
// worker/rank_protocol, takes as long as its Job's truth says, hangs and dies.
// Threads: confined to one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/simulation/sim_disk.h"
#include "tests/simulation/truth.h"
#include "tests/simulation/world.h"
#include "worker/daemon/programs.h"

namespace traind::simulation {

// A model of another Job, as traind has named it.
struct SimModel {
  std::string path;  // of its folder
  Member member;
};

// What is known of a PREDICT or SERVE task.
struct SimInference {
  std::string from;  // the Job whose models they are
  std::vector<SimModel> models;
  std::set<size_t> answered;  // of these, by place
  size_t next = 0;
  size_t published = 0;  // models of the last Prediction
  absl::Time answer_at = absl::InfiniteFuture();
  bool read = false;  // the file
  bool publishing = false;
  bool drops = false;  // nothing more is published
  // SERVE: questions that wait, and when the last one was answered.
  std::vector<rank_protocol::Rows> rows;
  bool serves = false;  // the models are loaded
  absl::Time idle_since;
};

// What a SimProcess is at.
struct SimTask {
  int chain_ = 0;  // grows when what it is at is interrupted
  bool over_ = true;
  int64_t attempt_ = 0;
  std::string job_;
  JobTruth truth_;
  rank_protocol::Train train_;
  absl::Time stop_at_, checkpoint_at_;
  int epochs_ = 0;
  double row_share_ = 1;
  bool gathered_ = false;
  bool stalled_ = false;  // another rank hangs, or it has failed
  bool stepped_ = false;  // has made a step
  bool stopping_ = false;
  bool predicts_ = true;  // when it stops
  StopCause cause_ = StopCause::kNone;
  bool damaged_ = false;  // the checkpoint that it was given cannot be read
  bool probing_ = false;
  double epochs_done_ = 0;  // of all rows, where one is not done
  absl::Time epoch_began_;
  double epoch_from_ = 0, epoch_s_ = 0;
  bool in_epoch_ = false;
  // On the disk, not synced yet.
  std::optional<facts::CheckpointSaved> checkpoint_;
  std::optional<facts::FoldSaved> predictions_;
  bool finishes_ = false;  // once the checkpoint is synced
  SimInference inference_;
};

class SimProcess : public std::enable_shared_from_this<SimProcess>, private SimTask {
 public:
  struct Surroundings {
    World* world;
    Disk* disk;
    const std::map<std::string, JobTruth>* truths;  // by request
    const Faults* faults;
    std::string worker;
    std::function<void(const rank_protocol::FromProcess&)> say;
    std::function<void(const worker::ExitStatus&)> exited;
  };
  SimProcess(Surroundings around, const worker::Program& program)
      : around_(std::move(around)), program_(program) {}

  void Start();
  void Take(const rank_protocol::ToProcess& message);
  // By a signal: it exits a moment later.
  void Kill();
  // With its Worker: at once, and nobody is told.
  void Vanish();

  // Whether the kernel counts work of it.
  bool works() const { return !dead_ && !hung_; }
  double epochs_done() const { return epochs_done_; }
  bool stepped() const { return stepped_; }
  const std::string& worker() const { return around_.worker; }

 private:
  using Step = void (SimProcess::*)();
  // Unless the task is over by then, or (chain) what it was at has been interrupted.
  void Schedule(absl::Duration delay, Step step, bool chain = true);
  // A fact of the task.
  template <class F>
  void Tell(F fact);
  void SayReady();
  void ReturnToIdle();
  void Exit(int status);
  void Gone(const worker::ExitStatus& status);
  absl::Time Moment(int64_t ms) const;

  void BeginTask(int64_t attempt, const std::string& job, int trial);
  void DrawFault(int ranks);
  // PREPARE.
  void Prepare(const rank_protocol::Prepare& prepare);
  void Read();
  void FitFloor();
  void BetterFloor();
  // TRAIN.
  void Train(const rank_protocol::Train& train);
  void ReadCheckpoint(const std::string& manifest);
  void JoinGang();
  void Gathered();
  void Unmet();
  void LoseGang();
  template <class Do>
  void TellGang(int most_ms, Do act);
  void Begin();
  void Probe();
  void NextEpoch();
  void AwaitEpoch();
  void EndEpoch();
  double EpochsTold(double done) const;
  void Tick();
  void Replan(const rank_protocol::Replan& replan);
  void Stop(const rank_protocol::Stop& stop);
  void ArmStop();
  void TimeIsUp();
  void StopTraining(StopCause cause, bool predict);
  void StopNow();
  void Predict();
  void Predicted();
  bool SaveCheckpoint();
  void CheckpointSynced();
  void SavePredictions(facts::FoldSaved saved);
  void PredictionsSynced();
  facts::FoldSaved Predictions(bool complete) const;
  void RecordEpochs();
  // PREDICT and SERVE: sim_inference.cc.
  bool infers() const { return !inference_.from.empty(); }
  void ReadModels(const std::string& spec_json);
  bool HasModel(size_t model) const;
  std::string ValuesPath(const std::string& attempt, size_t model) const;
  void PredictFile(const rank_protocol::Predict& predict);
  void ReadLater();
  void FindEarlierValues();
  void NextModel();
  void ModelDone();
  void AnswerInTime();
  void PublishAnswer(bool last);
  void AnswerStands(const absl::StatusOr<PublishedPrediction>& result, bool last);
  void RemoveScratch();
  void Serve(const rank_protocol::Serve& serve);
  void LoadModels();
  void TakeRows(const rank_protocol::Rows& rows);
  void AnswerRows();
  void LeaveIfIdle();
  void StopInference(bool predict);
  void Finish();
  void Fail(AttemptEndReason reason, const std::string& message);
  void Hang();
  void Stall();
  void Die();

  Surroundings around_;
  const worker::Program& program_;
  bool dead_ = false;
  bool hung_ = false;
  int task_ = 0;  // counted, so that nothing of an earlier one goes on
};

}  // namespace traind::simulation
