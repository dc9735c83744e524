// The part of a spec that the control core knows, because decisions depend on it. The
// whole spec travels as JSON text that only Workers and clients read.
#pragma once

#include <absl/time/time.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/job_rules/program_rules.h"
#include "proto/plain/job.h"
#include "server/domain/constraints.h"

namespace traind {

enum class Policy { kAdaptive, kFixed };

// Shares of the window from acceptance to deadline (docs/DESIGN.md, the rules of the budget).
// Defaults here and below are those of proto/job.proto.
struct BudgetShares {
  double plan = plain::BudgetSpec().plan_share;              // B2
  double first_fold = plain::BudgetSpec().first_fold_share;  // B3
  double reserve = plain::BudgetSpec().reserve_share;        // B4
  double stop = plain::BudgetSpec().stop_share;              // B5
  // B4: once prediction was measured, this many times that,
  double reserve_margin = plain::BudgetSpec().reserve_margin;
  // and at least this.
  absl::Duration reserve_least = plain::BudgetSpec().reserve_least;
};

// Values of fields of the spec by their paths: "train.learning_rate", "0.01".
using Settings = std::vector<std::pair<std::string, std::string>>;

// A setting of a model, which is tried on all folds.
struct Trial {
  std::string name;  // for people
  std::string kind;  // of model: mlp, lightgbm, ...
  int epochs = 0;
  int patience = 0;
  // In a search: how the trial differs from the spec itself. Null: not drawn yet. Never changes
  // then.
  std::shared_ptr<const Settings> settings = nullptr;
  // A client has proposed these settings (kAskMethod), by the call with this id; it may be empty.
  bool proposed = false;
  std::string request_id = {};
};

// The method of a search whose trials a client proposes.
inline constexpr char kAskMethod[] = "ask";

// How the settings of a search's trials are drawn (SearchSpec).
struct Search {
  std::string method;  // auto, random, grid, tpe, asha or ask; empty: the Job does not search
  Settings space;      // ranges by path
  uint64_t seed = 0;
  // kAskMethod: how long the Job does nothing before it draws trials by itself.
  absl::Duration wait = absl::ZeroDuration();
};

inline bool AsksClients(const Search& search) { return search.method == kAskMethod; }

struct Spec {
  std::string name;
  std::string metric;
  bool higher_is_better = true;
  int folds = static_cast<int>(plain::DataSpec().folds);
  int epochs = static_cast<int>(plain::TrainSpec().epochs);
  int patience = static_cast<int>(plain::TrainSpec().patience);
  // The first one is that of the Plan; the others use time that is left. Empty: there is one, whose
  // kind is not known.
  std::vector<Trial> trials;
  Search search;
  int seeds = static_cast<int>(plain::TrainSpec().seeds);     // models per fold, at most
  int slots = static_cast<int>(plain::ResourceSpec().slots);  // Ranks per fold
  std::string device;                                         // cpu, cuda, or empty: any
  Constraints constraints;                                    // of the Workers that suit
  int batch = 0;                                              // 0: the Rank chooses
  std::string precision;                                      // empty: the Rank chooses
  absl::Duration checkpoint_every = absl::Minutes(1);
  int priority = 0;
  std::map<std::string, std::string> labels;
  bool has_test = false;    // there are rows to predict
  int64_t train_bytes = 0;  // file sizes at submit
  int64_t test_bytes = 0;
  std::optional<absl::Duration> budget;
  std::optional<absl::Time> deadline;
  Policy policy = Policy::kAdaptive;
  BudgetShares shares;
  bool subsample = false;  // epochs may be shortened (B2)
  // Digest of all that shapes training except the bytes of the files: Jobs with equal keys on equal
  // bytes train equal folds. Empty: this Job's folds are not given to others.
  std::string cache_key;
  // Digest of all that the time of a step depends on besides the data: Jobs with equal keys are as
  // fast.
  std::string speed_key;
  bool cache_read = false;     // takes over what others have trained
  std::string from;            // the Job that it goes on from; empty: none
  bool after_any_end = false;  // it runs however the Jobs have ended that it waits for
  std::string models_from;     // the Job whose models predict or serve; empty: it trains its own
};

// The epochs that the spec asks for in each fold of a trial.
inline int EpochsOf(const Spec& spec, int trial) {
  const auto at = static_cast<size_t>(trial);
  return trial > 0 && at < spec.trials.size() ? spec.trials[at].epochs : spec.epochs;
}

// The kind of model of a trial; empty: it is not known.
inline std::string KindOf(const Spec& spec, int trial) {
  const auto at = static_cast<size_t>(trial);
  return at < spec.trials.size() ? spec.trials[at].kind : std::string();
}

// Whether the Job runs a program of its user: its folds leave files, and no Prediction is made of
// them.
inline bool RunsProgram(const Spec& spec) { return KindOf(spec, 0) == kProgramKind; }

// Whether a program of its user trains the folds, be it for files or for the rows of `data`.
inline bool ProgramTrains(const Spec& spec) {
  return RunsProgram(spec) || KindOf(spec, 0) == kCommandKind;
}

}  // namespace traind
