#include "worker/checkpoint/checkpoint.h"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "common/durable_file.h"
#include "common/status_macros.h"
#include "worker/checkpoint/safetensors.h"

namespace traind {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr char kStem[] = "checkpoint-";
constexpr char kManifestSuffix[] = ".json";
constexpr char kTensorsSuffix[] = ".safetensors";

// What the file's names begin with. A plain name holds the weights that predict, so
// that any reader finds the model under the names its layers have.
std::string PrefixOf(const std::string& slot) {
  if (slot == "best_weights") return "";
  if (slot == "weights") return "last.";
  return slot + ".";
}

// Of manifests that do not say.
constexpr char kSlotsOfOld[] = "best_weights,exp_avg,exp_avg_sq,weights";

// Fields of the manifest, once for both directions.
template <class Visitor>
bool VisitFields(Checkpoint& c, Visitor&& visit) {
  return visit("job", c.job) && visit("attempt", c.attempt) && visit("fold", c.fold) &&
         visit("seed", c.seed) && visit("table_sha256", c.table_sha256) && visit("step", c.step) &&
         visit("epoch", c.epoch) && visit("position", c.position) &&
         visit("epoch_fraction", c.epoch_fraction) && visit("epoch_loss_sum", c.epoch_loss_sum) &&
         visit("epoch_loss_rows", c.epoch_loss_rows) && visit("world_size", c.world_size) &&
         visit("batch", c.batch) && visit("precision", c.precision) &&
         visit("planned_epochs", c.planned_epochs) && visit("warmup_steps", c.warmup_steps) &&
         visit("learning_rate", c.learning_rate) && visit("optimizer_steps", c.optimizer_steps) &&
         visit("loss_scale", c.loss_scale) && visit("growth_tracker", c.growth_tracker) &&
         visit("has_best", c.has_best) && visit("best_metric", c.best_metric) &&
         visit("best_loss", c.best_loss) && visit("best_epoch", c.best_epoch) &&
         visit("epochs_without_better", c.epochs_without_better) &&
         visit("patience_metric", c.patience_metric);
}

Json NumberToJson(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

std::optional<double> NumberFromJson(const Json& json) {
  if (json.is_number()) return json.get<double>();
  if (json == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (json == "Infinity") return std::numeric_limits<double>::infinity();
  if (json == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

struct Writer {
  Json& json;
  bool operator()(const char* key, double& value) { return json[key] = NumberToJson(value), true; }
  template <class T>
  bool operator()(const char* key, T& value) {
    return json[key] = value, true;
  }
};

struct Reader {
  const Json& json;
  std::string failed;

  bool operator()(const char* key, std::string& value) {
    return Take(
        key, [](const Json& j) { return j.is_string(); }, value);
  }
  bool operator()(const char* key, bool& value) {
    return Take(
        key, [](const Json& j) { return j.is_boolean(); }, value);
  }
  bool operator()(const char* key, uint64_t& value) {
    return Take(
        key, [](const Json& j) { return j.is_number_unsigned(); }, value);
  }
  // Counts: none is below 0.
  bool operator()(const char* key, int64_t& value) {
    constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    return Take(
        key, [](const Json& j) { return j.is_number_unsigned() && j.get<uint64_t>() <= kMost; },
        value);
  }
  bool operator()(const char* key, int& value) {
    constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int>::max());
    return Take(
        key, [](const Json& j) { return j.is_number_unsigned() && j.get<uint64_t>() <= kMost; },
        value);
  }
  bool operator()(const char* key, double& value) {
    const auto found = json.find(key);
    const auto number = found == json.end() ? std::nullopt : NumberFromJson(*found);
    if (!number.has_value()) return Fail(key);
    value = *number;
    return true;
  }

 private:
  template <class Check, class T>
  bool Take(const char* key, Check&& check, T& value) {
    const auto found = json.find(key);
    if (found == json.end() || !check(*found)) return Fail(key);
    value = found->template get<T>();
    return true;
  }
  bool Fail(const char* key) {
    failed = key;
    return false;
  }
};

std::string ManifestPath(const std::string& dir, int64_t step) {
  return absl::StrCat(dir, "/", kStem, step, kManifestSuffix);
}

// The step in "checkpoint-<step><suffix>".
std::optional<int64_t> StepOf(absl::string_view name, absl::string_view suffix) {
  int64_t step = 0;
  if (!absl::ConsumePrefix(&name, kStem) || !absl::ConsumeSuffix(&name, suffix) ||
      !absl::SimpleAtoi(name, &step) || step < 0) {
    return std::nullopt;
  }
  return step;
}

std::pair<std::string, std::string> SplitPath(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

absl::Status CheckRelative(const std::string& path) {
  const std::vector<std::string> parts = absl::StrSplit(path, '/');
  if (absl::StartsWith(path, "/") || std::find(parts.begin(), parts.end(), "..") != parts.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("checkpoint \"", path, "\" is not a path inside the state folder"));
  }
  return absl::OkStatus();
}

// Steps of the manifests in a folder, newest first; empty where it cannot be read.
std::vector<int64_t> ManifestSteps(const std::string& absolute_dir) {
  std::vector<int64_t> steps;
  std::error_code error;
  for (std::filesystem::directory_iterator it(absolute_dir, error), end; !error && it != end;
       it.increment(error)) {
    const auto step = StepOf(it->path().filename().string(), kManifestSuffix);
    if (step.has_value()) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end(), std::greater<>());
  return steps;
}

// The manifest's text, with the digest of all the rest in it.
std::string SealManifest(Json manifest) {
  constexpr char kDigest[] = "manifest_sha256";
  manifest.erase(kDigest);
  manifest[kDigest] = Sha256Hex(manifest.dump(-1, ' ', false, Json::error_handler_t::replace));
  return manifest.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

struct TensorsFile {
  FileDigest digest;
  std::string slots;
};

absl::StatusOr<Checkpoint> ParseManifest(const std::string& text, const std::string& path,
                                         TensorsFile& tensors) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto bad = [&path](const std::string& what) {
    return absl::DataLossError(absl::StrCat("checkpoint ", path, ": ", what));
  };
  if (json.is_discarded() || !json.is_object()) return bad("no JSON object");
  if (!json.contains("format") || json["format"] != kFormat) {
    return bad(absl::StrCat("its format is not ", kFormat));
  }
  if (SealManifest(json) != text) return bad("it is damaged: its digest is not that of its text");
  Checkpoint checkpoint;
  Reader reader{json, ""};
  if (!VisitFields(checkpoint, reader) || !reader("tensors_sha256", tensors.digest.sha256) ||
      !reader("tensors_bytes", tensors.digest.bytes) ||
      (json.contains("slots") && !reader("slots", tensors.slots))) {
    return bad("\"" + reader.failed + "\" is missing or of another type");
  }
  if (tensors.slots.empty()) tensors.slots = kSlotsOfOld;
  return checkpoint;
}

absl::Status CheckBelongs(const Checkpoint& found, const Checkpoint& expected,
                          const std::string& path) {
  const auto other = [&path](const char* what) {
    return absl::FailedPreconditionError(
        absl::StrCat("checkpoint ", path, " is of another ", what));
  };
  if (found.table_sha256 != expected.table_sha256) return other("table");
  if (found.fold != expected.fold) return other("fold");
  if (found.seed != expected.seed) return other("seed");
  return absl::OkStatus();
}

// slots: the names of checkpoint.slots, with commas between.
absl::Status ReadSlots(const SafetensorsFile& file, const ParameterLayout& layout,
                       const std::string& slots, const std::string& path, Checkpoint& checkpoint) {
  for (const absl::string_view slot : absl::StrSplit(slots, ',')) {
    std::vector<float>& values = checkpoint.slots[std::string(slot)];
    const std::string prefix = PrefixOf(std::string(slot));
    values.reserve(static_cast<size_t>(TotalSize(layout)));
    for (const ParameterInfo& parameter : layout) {
      const std::string name = prefix + parameter.name;
      const auto found = file.tensors.find(name);
      if (found == file.tensors.end() || found->second.shape != parameter.shape) {
        return absl::FailedPreconditionError(absl::StrCat("checkpoint ", path,
                                                          " is of another model: tensor \"", name,
                                                          "\" is missing or has another shape"));
      }
      ASSIGN_OR_RETURN(const std::vector<float> part, FloatsOf(file, name, parameter.size));
      values.insert(values.end(), part.begin(), part.end());
    }
  }
  if (file.tensors.size() != layout.size() * checkpoint.slots.size()) {
    return absl::FailedPreconditionError(
        absl::StrCat("checkpoint ", path, " is of another model: it has more tensors"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SavedCheckpoint> WriteCheckpoint(const std::string& state_dir,
                                                const std::string& dir,
                                                const ParameterLayout& layout,
                                                const Checkpoint& checkpoint) {
  std::vector<NamedTensorView> tensors;
  std::vector<std::string> names;
  for (const auto& [slot, values] : checkpoint.slots) {
    names.push_back(slot);
    const char* bytes = reinterpret_cast<const char*>(values.data());
    for (const ParameterInfo& parameter : layout) {
      const size_t size = static_cast<size_t>(parameter.size) * sizeof(float);
      tensors.push_back({PrefixOf(slot) + parameter.name,
                         {DType::kF32, parameter.shape, absl::string_view(bytes, size)}});
      bytes += size;
    }
  }
  const std::string file = EncodeSafetensors(tensors, {{"format", "pt"}, {"job", checkpoint.job}});
  SavedCheckpoint saved;
  saved.sha256 = Sha256Hex(file);
  saved.bytes = static_cast<int64_t>(file.size());
  saved.manifest = ManifestPath(dir, checkpoint.step);
  const std::string tensors_path =
      absl::StrCat(state_dir, "/", dir, "/", kStem, checkpoint.step, kTensorsSuffix);
  RETURN_IF_ERROR(WriteFileDurably(tensors_path, file));

  Json manifest = {{"format", kFormat}};
  Checkpoint& fields = const_cast<Checkpoint&>(checkpoint);  // the writer only reads
  VisitFields(fields, Writer{manifest});
  manifest["slots"] = absl::StrJoin(names, ",");
  manifest["tensors_sha256"] = saved.sha256;
  manifest["tensors_bytes"] = saved.bytes;
  const std::string text = SealManifest(std::move(manifest));
  RETURN_IF_ERROR(WriteFileDurably(absl::StrCat(state_dir, "/", saved.manifest), text));
  return saved;
}

absl::StatusOr<Checkpoint> ReadCheckpoint(const std::string& state_dir, const std::string& manifest,
                                          const ParameterLayout& layout,
                                          const Checkpoint& expected) {
  RETURN_IF_ERROR(CheckRelative(manifest));
  ASSIGN_OR_RETURN(const std::string text, ReadFile(absl::StrCat(state_dir, "/", manifest)));
  TensorsFile tensors;
  ASSIGN_OR_RETURN(Checkpoint checkpoint, ParseManifest(text, manifest, tensors));
  RETURN_IF_ERROR(CheckBelongs(checkpoint, expected, manifest));
  const std::string tensors_path =
      absl::StrCat(state_dir, "/", absl::StripSuffix(manifest, kManifestSuffix), kTensorsSuffix);
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(tensors_path));
  if (static_cast<int64_t>(bytes.size()) != tensors.digest.bytes ||
      Sha256Hex(bytes) != tensors.digest.sha256) {
    return absl::DataLossError(
        absl::StrCat(tensors_path, " is damaged: its SHA-256 is not its manifest's"));
  }
  ASSIGN_OR_RETURN(const SafetensorsFile file, ParseSafetensors(bytes));
  RETURN_IF_ERROR(ReadSlots(file, layout, tensors.slots, manifest, checkpoint));
  return checkpoint;
}

absl::StatusOr<FoundCheckpoint> FindCheckpoint(const std::string& state_dir,
                                               const std::string& manifest,
                                               const ParameterLayout& layout,
                                               const Checkpoint& expected,
                                               std::vector<std::string>& warnings) {
  RETURN_IF_ERROR(CheckRelative(manifest));
  const auto [dir, name] = SplitPath(manifest);
  std::vector<std::string> candidates{manifest};
  const auto named = StepOf(name, kManifestSuffix);
  for (const int64_t step : ManifestSteps(absl::StrCat(state_dir, "/", dir))) {
    if (named.has_value() && step < *named) candidates.push_back(ManifestPath(dir, step));
  }
  for (const std::string& candidate : candidates) {
    absl::StatusOr<Checkpoint> checkpoint = ReadCheckpoint(state_dir, candidate, layout, expected);
    if (checkpoint.ok()) return FoundCheckpoint{*std::move(checkpoint), candidate};
    warnings.push_back(std::string(checkpoint.status().message()));
  }
  return absl::NotFoundError(absl::StrCat("no sound checkpoint at ", manifest, " or before it"));
}

absl::Status PruneCheckpoints(const std::string& state_dir, const std::string& dir, int keep) {
  const std::string absolute = absl::StrCat(state_dir, "/", dir);
  const std::vector<int64_t> steps = ManifestSteps(absolute);
  for (size_t i = static_cast<size_t>(keep); i < steps.size(); ++i) {
    for (const char* suffix : {kManifestSuffix, kTensorsSuffix}) {
      const std::string path = absl::StrCat(absolute, "/", kStem, steps[i], suffix);
      std::error_code error;
      std::filesystem::remove(path, error);
      if (error) return absl::InternalError(absl::StrCat("remove ", path, ": ", error.message()));
    }
  }
  return absl::OkStatus();
}

}  // namespace traind
