#include "worker/trees/tree_checkpoint.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "common/base/digest_text.h"
#include "common/base/durable_file.h"
#include "common/base/number_json.h"
#include "common/base/status_macros.h"
#include "common/job_rules/task_rules.h"

namespace traind {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr char kBodyName[] = "trees";
constexpr char kPrefix[] = "checkpoint-";
constexpr char kManifest[] = ".json";
constexpr const char* kKinds[] = {"lightgbm", "xgboost", "kernel"};

std::string TreesPath(absl::string_view manifest, absl::string_view kind) {
  return absl::StrCat(absl::StripSuffix(manifest, kManifest), ".", StateFileSuffix(kind));
}

// The rounds of the folder's checkpoints, most first.
std::vector<int64_t> RoundsIn(const std::string& folder) {
  std::vector<int64_t> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    absl::string_view rest = name;
    int64_t rounds = 0;
    if (absl::ConsumePrefix(&rest, kPrefix) && absl::ConsumeSuffix(&rest, kManifest) &&
        absl::SimpleAtoi(rest, &rounds)) {
      found.push_back(rounds);
    }
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

std::string ManifestPath(absl::string_view dir, int64_t rounds) {
  return absl::StrCat(dir, dir.empty() ? "" : "/", kPrefix, rounds, kManifest);
}

Json BodyOf(const TreeCheckpoint& c, const std::string& sha256) {
  Json body = {{"format", kFormat},
               {"model", c.kind},
               {"job", c.job},
               {"attempt", c.attempt},
               {"fold", c.fold},
               {"seed", c.seed},
               {"table_sha256", c.table_sha256},
               {"rounds", c.rounds},
               {"epochs", c.epochs},
               {"rounds_in_epoch", c.rounds_in_epoch},
               {"epoch", NumberToJson<Json>(c.epoch)},
               {"has_best", c.has_best},
               {"best_rounds", c.best_rounds},
               {"best_metric", NumberToJson<Json>(c.best_metric)},
               {"best_epoch", NumberToJson<Json>(c.best_epoch)},
               {"trees_sha256", sha256},
               {"trees_bytes", c.trees.size()}};
  if (!c.best_smearing.empty()) body["best_smearing"] = c.best_smearing;
  return body;
}

double NumberAt(const Json& body, const char* key) {
  return NumberFromJson(body.at(key)).value_or(std::numeric_limits<double>::quiet_NaN());
}

// Throws nlohmann's exceptions if the JSON is not as it was written.
TreeCheckpoint FromBody(const Json& body) {
  TreeCheckpoint c;
  body.at("model").get_to(c.kind);
  body.at("job").get_to(c.job);
  body.at("attempt").get_to(c.attempt);
  body.at("fold").get_to(c.fold);
  body.at("seed").get_to(c.seed);
  body.at("table_sha256").get_to(c.table_sha256);
  body.at("rounds").get_to(c.rounds);
  body.at("epochs").get_to(c.epochs);
  body.at("rounds_in_epoch").get_to(c.rounds_in_epoch);
  c.epoch = NumberAt(body, "epoch");
  body.at("has_best").get_to(c.has_best);
  body.at("best_rounds").get_to(c.best_rounds);
  c.best_metric = NumberAt(body, "best_metric");
  c.best_epoch = NumberAt(body, "best_epoch");
  c.best_smearing = body.value("best_smearing", c.best_smearing);
  return c;
}

absl::Status CheckFits(const TreeCheckpoint& c, const TreeCheckpoint& expected,
                       absl::string_view path) {
  const auto differs = [&](absl::string_view what) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is of another ", what));
  };
  if (!expected.kind.empty() && c.kind != expected.kind) return differs("model");
  if (c.table_sha256 != expected.table_sha256) return differs("table");
  if (c.fold != expected.fold) return differs("fold");
  if (c.seed != expected.seed) return differs("seed");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SavedTrees> WriteTrees(const std::string& state_dir, const std::string& dir,
                                      const TreeCheckpoint& checkpoint) {
  SavedTrees saved;
  saved.manifest = ManifestPath(dir, checkpoint.rounds);
  const std::string path = absl::StrCat(state_dir, "/", TreesPath(saved.manifest, checkpoint.kind));
  RETURN_IF_ERROR(WriteFileDurably(path, checkpoint.trees));
  saved.sha256 = Sha256Hex(checkpoint.trees);
  saved.bytes = static_cast<int64_t>(checkpoint.trees.size());
  const std::string body =
      BodyOf(checkpoint, saved.sha256).dump(-1, ' ', false, Json::error_handler_t::replace);
  RETURN_IF_ERROR(
      WriteFileDurably(absl::StrCat(state_dir, "/", saved.manifest), WithDigest(kBodyName, body)));
  return saved;
}

absl::StatusOr<TreeCheckpoint> ReadTrees(const std::string& state_dir, const std::string& manifest,
                                         const TreeCheckpoint& expected) {
  const std::string path = absl::StrCat(state_dir, "/", manifest);
  ASSIGN_OR_RETURN(const std::string body, ReadBody(path, kBodyName));
  try {
    const Json json = Json::parse(body);
    TreeCheckpoint found = FromBody(json);
    RETURN_IF_ERROR(CheckFits(found, expected, path));
    ASSIGN_OR_RETURN(found.trees,
                     ReadFile(absl::StrCat(state_dir, "/", TreesPath(manifest, found.kind))));
    if (json.at("trees_sha256") != Sha256Hex(found.trees)) {
      return Damaged(path, "its trees have another digest");
    }
    return found;
  } catch (const Json::exception& e) {
    return Damaged(path, e.what());
  }
}

absl::StatusOr<TreeCheckpoint> FindTrees(const std::string& state_dir, const std::string& manifest,
                                         const TreeCheckpoint& expected,
                                         std::vector<std::string>& warnings) {
  return NewestTrees(state_dir, manifest.substr(0, manifest.rfind('/')), expected, warnings);
}

absl::StatusOr<TreeCheckpoint> NewestTrees(const std::string& state_dir, const std::string& dir,
                                           const TreeCheckpoint& expected,
                                           std::vector<std::string>& warnings) {
  for (const int64_t rounds : RoundsIn(absl::StrCat(state_dir, "/", dir))) {
    absl::StatusOr<TreeCheckpoint> found =
        ReadTrees(state_dir, ManifestPath(dir, rounds), expected);
    if (found.ok()) return found;
    warnings.push_back(std::string(found.status().message()));
  }
  return absl::NotFoundError(absl::StrCat(dir, " has no sound checkpoint of trees"));
}

bool HasTrees(const std::string& state_dir, const std::string& dir) {
  for (const int64_t rounds : RoundsIn(absl::StrCat(state_dir, "/", dir))) {
    const auto text = ReadFile(absl::StrCat(state_dir, "/", ManifestPath(dir, rounds)));
    if (!text.ok()) continue;
    const Json json = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
    if (json.is_object() && json.contains(kBodyName)) return true;
  }
  return false;
}

void PruneTrees(const std::string& state_dir, const std::string& dir, size_t newest) {
  const std::vector<int64_t> rounds = RoundsIn(absl::StrCat(state_dir, "/", dir));
  for (size_t i = newest; i < rounds.size(); ++i) {
    const std::string manifest = absl::StrCat(state_dir, "/", ManifestPath(dir, rounds[i]));
    unlink(manifest.c_str());
    for (const char* kind : kKinds) unlink(TreesPath(manifest, kind).c_str());
  }
}

}  // namespace traind
