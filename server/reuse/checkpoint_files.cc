#include "server/reuse/checkpoint_files.h"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "common/base/digest_text.h"
#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/number_json.h"
#include "common/job_rules/task_rules.h"

namespace traind {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

double NumberOf(const Json& json, const char* key) {
  return json.contains(key) ? NumberFromJson(json.at(key)).value_or(0) : 0;
}

std::optional<ManifestedCheckpoint> OfNetwork(Json manifest) {
  const auto digest = manifest.find("manifest_sha256");
  if (digest == manifest.end() || !digest->is_string()) return std::nullopt;
  const std::string sha256 = *digest;
  manifest.erase("manifest_sha256");
  if (Sha256Hex(manifest.dump(-1, ' ', false, Json::error_handler_t::replace)) != sha256) {
    return std::nullopt;
  }
  ManifestedCheckpoint found;
  found.suffix = ".safetensors";
  found.saved.step = manifest.value("step", int64_t{0});
  found.saved.epoch = NumberOf(manifest, "epoch_fraction");
  found.saved.sha256 = manifest.value("tensors_sha256", "");
  found.saved.bytes = manifest.value("tensors_bytes", int64_t{0});
  found.saved.best_metric = NumberOf(manifest, "best_metric");
  return found;
}

std::optional<ManifestedCheckpoint> OfTrees(const std::string& text) {
  const auto body = CheckedBody("trees", text);
  if (!body.ok()) return std::nullopt;
  const Json trees = Json::parse(*body, nullptr, false);
  if (!trees.is_object()) return std::nullopt;
  ManifestedCheckpoint found;
  found.suffix = absl::StrCat(".", StateFileSuffix(trees.value("model", "")));
  found.saved.step = trees.value("rounds", int64_t{0});
  found.saved.epoch = NumberOf(trees, "epoch");
  found.saved.sha256 = trees.value("trees_sha256", "");
  found.saved.bytes = trees.value("trees_bytes", int64_t{0});
  found.saved.best_metric = NumberOf(trees, "best_metric");
  return found;
}

// Empty: the file cannot be read.
std::string DigestOf(const std::string& path) {
  const auto digest = DigestFile(path);
  return digest.ok() ? digest->sha256 : "";
}

}  // namespace

std::optional<ManifestedCheckpoint> ParseCheckpointManifest(const std::string& text) {
  try {
    const Json manifest = Json::parse(text, nullptr, false);
    if (!manifest.is_object()) return std::nullopt;
    return manifest.contains("trees") ? OfTrees(text) : OfNetwork(manifest);
  } catch (const Json::exception&) {
    return std::nullopt;  // of another type than it should be
  }
}

std::optional<facts::CheckpointSaved> FindSavedCheckpoint(const std::string& state_dir,
                                                          const std::string& job, int64_t attempt,
                                                          int64_t after, DataCheck check) {
  const std::string dir = AttemptDir(job, attempt);
  std::set<int64_t, std::greater<>> steps;
  std::error_code error;
  for (fs::directory_iterator entry(absl::StrCat(state_dir, "/", dir), error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    absl::string_view number = name;
    int64_t step;
    if (absl::ConsumePrefix(&number, kCheckpointPrefix) &&
        absl::ConsumeSuffix(&number, kCheckpointManifest) && absl::SimpleAtoi(number, &step) &&
        step > after) {
      steps.insert(step);
    }
  }
  for (const int64_t step : steps) {
    const std::string stem = absl::StrCat(dir, "/", kCheckpointPrefix, step);
    const std::string manifest = absl::StrCat(stem, kCheckpointManifest);
    const auto text = ReadFile(absl::StrCat(state_dir, "/", manifest));
    auto found = text.ok() ? ParseCheckpointManifest(*text) : std::nullopt;
    if (!found || found->saved.step != step) continue;
    const std::string data = absl::StrCat(state_dir, "/", stem, found->suffix);
    const uintmax_t size = fs::file_size(data, error);
    if (error || size != static_cast<uintmax_t>(found->saved.bytes)) continue;
    if (check == DataCheck::kDigest && DigestOf(data) != found->saved.sha256) continue;
    found->saved.manifest = manifest;
    return std::move(found->saved);
  }
  return std::nullopt;
}

}  // namespace traind
