// What the control core knows of a spec: the part that decisions depend on. The
// whole spec travels as JSON text that only Workers and clients read.
#pragma once

#include <absl/time/time.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace traind {

enum class Policy { kAdaptive, kFixed };

// Shares of the window from acceptance to deadline (docs/DESIGN.md, the rules of
// the budget); defaults in proto/job.proto.
struct BudgetShares {
  double plan = 0.8;                                       // B2
  double first_fold = 0.2;                                 // B3
  double reserve = 0.15;                                   // B4
  double stop = 0.7;                                       // B5
  double reserve_margin = 1.3;                             // B4: times what was measured,
  absl::Duration reserve_least = absl::Milliseconds(400);  // and at least this
};

struct Spec {
  std::string name;
  std::string metric;
  bool higher_is_better = true;
  int folds = 5;
  int epochs = 20;
  int patience = 5;
  int seeds = 1;          // models per fold, at most
  int slots = 1;          // Ranks per fold
  std::string device;     // cpu, cuda, or empty: any
  int batch = 0;          // 0: the Rank chooses
  std::string precision;  // empty: the Rank chooses
  absl::Duration checkpoint_every = absl::Seconds(60);
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
  // Of all that shapes training but the bytes of the files: Jobs with equal keys on equal
  // bytes train equal folds. Empty: this Job's folds are not given to others.
  std::string cache_key;
  // Of what a step's time depends on besides the data: Jobs with equal keys are as fast.
  std::string speed_key;
  bool cache_read = false;  // takes over what others have trained
  std::string from;         // the Job that it goes on from; empty: none
};

}  // namespace traind
