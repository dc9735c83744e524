// How long a fold of boosted trees takes, beside the same library calls in a bare loop.
//
//   tree_bench STATE TABLE JOB SPEC_JSON THREADS
//
// STATE is a state folder that a Job has left, TABLE its column cache (relative), JOB its id; fold
// 0 is trained. SPEC_JSON names the model, which must not stop early. Prints seconds: the whole
// fold, its share in the loop of rounds, and the bare loop that makes the same data sets, rounds
// and validation scores.
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/time/time.h>

#include <cstdio>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "worker/task/task_control.h"
#include "worker/treefold/tree_fold.h"
#include "worker/treefold/tree_trainer.h"
#include "worker/trees/booster.h"

namespace traind {
namespace {

class Silent final : public EventSink {
 public:
  void Send(const rank_protocol::FromProcess&) override {}
  void SendProgress(const rank_protocol::Progress&) override {}
};

double SecondsSince(absl::Duration began) {
  return absl::ToDoubleSeconds(SystemClock().MonotonicNow() - began);
}

absl::Status Run(const rank_protocol::Train& train) {
  const Clock& clock = SystemClock();
  const absl::StatusOr<TreeSpec> spec = ParseTreeSpec(train.spec_json, 0);
  if (!spec.ok()) return spec.status();
  {  // opens the library, and warms up the file's pages
    const absl::StatusOr<TreeFold> fold = LoadTreeFold(train, *spec);
    if (!fold.ok()) return fold.status();
    BoosterOptions options;
    options.spec = *spec;
    const auto booster = NewBooster(options, fold->DataOf(*spec));
    if (!booster.ok()) return booster.status();
  }
  for (int run = 0; run < 3; ++run) {
    absl::Duration began = clock.MonotonicNow();
    TaskControl control(train, clock);
    Silent sink;
    TreeTrainer trainer(train, control, sink, clock);
    if (const absl::Status started = trainer.Start(); !started.ok()) return started;
    const double start = SecondsSince(began);
    const absl::Duration loop = clock.MonotonicNow();
    const absl::StatusOr<Ending> ending = trainer.TrainUntilStopped();
    if (!ending.ok()) return ending.status();
    const double trained = SecondsSince(loop);
    if (const absl::Status finished = trainer.Finish(*ending); !finished.ok()) return finished;
    const double whole = SecondsSince(began);

    const absl::StatusOr<TreeFold> fold = LoadTreeFold(train, *spec);
    BoosterOptions options;
    options.spec = *spec;
    options.threads = train.threads;
    began = clock.MonotonicNow();
    auto booster = NewBooster(options, fold->DataOf(*spec));
    const double created = SecondsSince(began);
    began = clock.MonotonicNow();
    std::vector<float> answers;
    for (int64_t i = 0; i < spec->rounds; ++i) {
      if (!(*booster)->TrainRound().ok() || !(*booster)->AnswerValidation(answers).ok()) {
        return absl::InternalError("a round failed");
      }
    }
    std::printf("fold %.3f (start %.3f, loop %.3f); bare: start %.3f, loop %.3f\n", whole, start,
                trained, created, SecondsSince(began));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace traind

int main(int argc, char** argv) {
  if (argc != 6) return std::fprintf(stderr, "see the head of tree_bench.cc\n"), 2;
  traind::rank_protocol::Train train;
  train.attempt = 1000000;
  train.state_dir = argv[1];
  train.table = argv[2];
  train.job = argv[3];
  train.spec_json = argv[4];
  train.epochs = 100000;
  if (!absl::SimpleAtoi(argv[5], &train.threads)) return 2;
  const absl::Status status = traind::Run(train);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
