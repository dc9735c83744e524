// A checkpoint of boosted trees is checkpoint-<round>.txt (LightGBM) or .ubj (XGBoost), the trees
// in the library's own format, and then its manifest checkpoint-<round>.json, which holds the
// SHA-256 of the former. Without a manifest there is no checkpoint. A kernel (kernel_booster.h) has
// checkpoint-<round>.safetensors in place of the trees.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace traind {

struct TreeCheckpoint {
  // The owner. A resume with other values is refused.
  std::string job;
  int64_t attempt = 0;  // the one that wrote it; another one may resume it
  int fold = 0;
  uint64_t seed = 0;
  std::string table_sha256;
  std::string kind;  // lightgbm, xgboost, kernel

  int64_t rounds = 0;
  int64_t epochs = 0;           // whole ones done
  int64_t rounds_in_epoch = 0;  // of the running one
  double epoch = 0;             // epochs done, with the part of the running one
  bool has_best = false;
  int64_t best_rounds = 0;  // how many rounds predict best
  double best_metric = 0;
  double best_epoch = 0;
  // Of transformed targets: worker/data/target_transform.h.
  std::vector<std::vector<double>> best_smearing;

  std::string trees;  // of Booster::Save()
};

struct SavedTrees {
  std::string manifest;  // relative to the state folder
  std::string sha256;    // of the trees' file
  int64_t bytes = 0;
};

// Durable on return. dir: an existing folder, relative to the state folder.
// Errors: those of WriteFileDurably.
absl::StatusOr<SavedTrees> WriteTrees(const std::string& state_dir, const std::string& dir,
                                      const TreeCheckpoint& checkpoint);

// Errors: NotFound; DataLoss says how it is damaged; FailedPrecondition: it is sound, but of
// another kind (unless expected.kind is empty), table, fold or seed than `expected`.
absl::StatusOr<TreeCheckpoint> ReadTrees(const std::string& state_dir, const std::string& manifest,
                                         const TreeCheckpoint& expected);

// Reads the newest sound checkpoint in the folder of `manifest`, as FindCheckpoint does
// (worker/checkpoint/checkpoint.h). Adds a warning for each that was passed over. NotFound: there
// is none.
absl::StatusOr<TreeCheckpoint> FindTrees(const std::string& state_dir, const std::string& manifest,
                                         const TreeCheckpoint& expected,
                                         std::vector<std::string>& warnings);
// The newest sound one of a folder. Errors: as above.
absl::StatusOr<TreeCheckpoint> NewestTrees(const std::string& state_dir, const std::string& dir,
                                           const TreeCheckpoint& expected,
                                           std::vector<std::string>& warnings);

// Whether checkpoints of trees or kernels, and not of a network, lie in the folder.
bool HasTrees(const std::string& state_dir, const std::string& dir);

// Removes all checkpoints of a folder but the newest `newest`, each manifest first.
void PruneTrees(const std::string& state_dir, const std::string& dir, size_t newest);

}  // namespace traind
