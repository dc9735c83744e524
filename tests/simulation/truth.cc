#include "tests/simulation/truth.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "tests/simulation/searches.h"

namespace traind::simulation {
namespace {

// Trials that cost less or more than the first, are better or worse, and may end early.
void AddTrials(JobTruth& truth, Chance& chance) {
  static const char* const kKinds[] = {"lightgbm", "xgboost", "mlp"};
  const auto kind = [&chance] { return kKinds[chance.Int(0, 2)]; };
  // Trees that ask for early stopping need not come to it.
  const bool patient = truth.early_stop > 0 || truth.spec.epochs % 3 == 0;
  truth.spec.trials.push_back({"trial-0", kind(), truth.spec.epochs, patient ? 5 : 0});
  // Without a deadline all of them are trained to their end.
  const bool bounded = truth.spec.budget || truth.spec.deadline;
  for (int t = bounded ? chance.Int(1, 12) : 2; t > 0; --t) {
    JobTruth trial = truth;
    trial.spec.trials.clear();
    trial.trials.clear();
    trial.step_s *= chance.LogUniform(0.2, bounded ? 10 : 1);
    trial.evaluate_s *= chance.LogUniform(0.5, 4);
    trial.predict_s *= chance.LogUniform(0.5, 4);
    trial.skill = chance.Uniform(0.6, 1.05);
    const int epochs = chance.Int(1, bounded ? 40 : truth.spec.epochs);
    trial.early_stop = chance.Happens(0.5) ? chance.Int(1, epochs) : 0;
    truth.spec.trials.push_back(
        {absl::StrCat("trial-", truth.spec.trials.size()), kind(), epochs, 0});
    truth.trials.push_back(std::move(trial));
  }
  if (chance.Happens(0.5)) AddSearch(truth.spec, chance);
}

}  // namespace

JobTruth MakeTruth(const std::string& request, const Setting& setting, Chance& chance) {
  JobTruth truth;
  truth.request = request;
  Spec& spec = truth.spec;
  spec.name = request;
  spec.metric = "accuracy";
  spec.folds = chance.Int(2, 8);
  spec.epochs = chance.Int(1, 40);
  spec.subsample = chance.Happens(0.25);
  if (spec.subsample) spec.epochs = chance.Int(1, 3);  // where one may be too much
  spec.slots = chance.Happens(0.15) ? 2 : 1;
  if (setting.spanned && chance.Happens(0.8)) {
    const int most = *std::max_element(setting.slots.begin(), setting.slots.end());
    spec.slots = chance.Int(1, std::accumulate(setting.slots.begin(), setting.slots.end(), 0));
    if (chance.Happens(0.6)) spec.slots = std::max(spec.slots, most + 1);
  }
  spec.has_test = chance.Happens(0.9);
  spec.priority = chance.Int(-1, 1);
  spec.checkpoint_every = absl::Seconds(chance.LogUniform(0.2, 20));
  spec.policy = chance.Happens(0.15) ? Policy::kFixed : Policy::kAdaptive;
  const double window = chance.LogUniform(1.5, 150);
  const bool unbounded = chance.Happens(0.1);
  if (!unbounded && chance.Happens(0.8)) spec.budget = absl::Seconds(window);
  if (!unbounded && !spec.budget) spec.deadline = setting.now + absl::Seconds(window);
  truth.read_s = chance.LogUniform(0.02, 0.6);
  truth.floor_s = chance.LogUniform(0.02, 0.6);
  truth.bad_data = chance.Happens(0.03);
  truth.start_s = chance.Happens(0.7) ? chance.Uniform(0.02, 0.15) : chance.Uniform(0.5, 2);
  // From far too little work for the window to far too much.
  // Without a deadline all of it is done, so that there it is little.
  const double all_s =
      unbounded ? 30 * chance.LogUniform(0.02, 1) : window * chance.LogUniform(0.02, 10);
  truth.steps = chance.Int(5, 400);
  truth.step_s =
      std::max(1e-4, all_s / spec.folds / spec.epochs / static_cast<double>(truth.steps));
  truth.evaluate_s = truth.step_s * static_cast<double>(truth.steps) * chance.Uniform(0.02, 0.2);
  truth.predict_s = std::min(truth.evaluate_s * chance.Uniform(1, 4), 0.05 * window) + 0.005;
  truth.probe_error = chance.Happens(0.3) ? chance.LogUniform(0.4, 2.5) : 1;
  truth.early_stop = chance.Happens(0.3) ? chance.Int(1, spec.epochs) : 0;
  truth.saves = chance.Happens(0.3) ? 0.3 : 0;
  if (chance.Happens(0.15)) {
    spec.cache_key = "key";
    spec.cache_read = true;
  }
  if (chance.Happens(0.4)) spec.seeds = chance.Int(2, 3);
  Chance of_trials(chance.Next());
  if (spec.seeds == 1 && of_trials.Happens(0.6)) AddTrials(truth, of_trials);
  return truth;
}

Faults DrawFaults(Chance& chance, bool& standalone) {
  Faults faults;
  const double theme = chance.Uniform();
  if (theme < 0.3) return faults;  // nothing goes wrong
  faults.heavy_tails = chance.Happens(0.5);
  if (theme < 0.65) {  // something of everything
    const auto maybe = [&chance](double most) {
      return chance.Happens(0.4) ? chance.Uniform(0, most) : 0.0;
    };
    faults.rank_dies = maybe(0.4);
    faults.rank_hangs = maybe(0.2);
    faults.diverges = maybe(0.3);
    faults.damaged = maybe(0.5);
    faults.worker_dies = maybe(0.7);
    faults.worker_returns = chance.Happens(0.3) ? 0.5 : 1.0;
    faults.link_breaks = maybe(2);
    faults.half_open = maybe(0.6);
    faults.partitions = maybe(0.5);
    faults.coordinator_dies = maybe(0.7);
    faults.crash_in_turn = maybe(0.05);
    faults.disk_full = maybe(0.3);
    faults.wall_jumps = maybe(0.5);
    faults.duplicates = maybe(0.1);
  } else if (theme < 0.75) {  // Workers out of reach for longer than a lease
    standalone = false;
    faults.link_breaks = chance.Uniform(0.5, 3);
    faults.partitions = 0.8;
    faults.half_open = chance.Uniform();
  } else if (theme < 0.83) {  // a wall clock that nobody can trust
    faults.wall_jumps = chance.Uniform(0.5, 3);
    faults.coordinator_dies = chance.Happens(0.5) ? 0.3 : 0;
  } else if (theme < 0.92) {  // traind away, Ranks that hang
    faults.coordinator_dies = chance.Uniform(0.5, 2);
    faults.rank_hangs = chance.Uniform(0, 0.3);
    faults.crash_in_turn = chance.Uniform(0, 0.05);
  } else {  // processes that die
    faults.rank_dies = chance.Uniform(0, 0.6);
    faults.worker_dies = chance.Uniform(0, 1.5);
    faults.diverges = chance.Uniform(0, 0.5);
    faults.damaged = chance.Uniform(0, 0.5);
    faults.disk_full = chance.Uniform(0, 1);
  }
  return faults;
}

}  // namespace traind::simulation
