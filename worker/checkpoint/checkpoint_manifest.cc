#include "worker/checkpoint/checkpoint_manifest.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "common/base/json_text.h"
#include "common/base/number_json.h"
#include "common/base/status_macros.h"

namespace traind {
namespace {

using Json = nlohmann::ordered_json;

// Format 1 has AdamW's four slots and lacks the fields of VisitNewFields. Format 2 has any
// slots.
constexpr int kFormat = 2;
constexpr int kMostDepth = 8;
constexpr char kDigest[] = "manifest_sha256";
constexpr char kPasses[] = "passes";
constexpr char kWindow[] = "window";
constexpr char kBodySteps[] = "body_steps";
constexpr char kLayerSteps[] = "layer_steps";
constexpr char kFrozenPasses[] = "frozen_passes";
constexpr char kAveraged[] = "averaged";
constexpr char kRateFound[] = "rate_found";
constexpr char kAnswersIn[] = "answers_in";
constexpr char kSmearing[] = "best_smearing";

// Visits the fields of the manifest; both directions use it.
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

// Visits the fields since format 2.
template <class Visitor>
bool VisitNewFields(Checkpoint& c, Visitor&& visit) {
  return visit("model", c.model) && visit("optimizer", c.optimizer) &&
         visit("step_rows", c.step_rows) && visit("recompute", c.recompute);
}

struct Writer {
  Json& json;
  bool operator()(const char* key, double& value) {
    return json[key] = NumberToJson<Json>(value), true;
  }
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
  // Reads a count, which must not be negative.
  bool operator()(const char* key, int64_t& value) {
    return Take(
        key,
        [](const Json& j) { return j.is_number_unsigned() && j.get<uint64_t>() <= kMostCount; },
        value);
  }
  bool operator()(const char* key, std::vector<int64_t>& values) {
    const auto is_counts = [](const Json& j) {
      return j.is_array() && std::all_of(j.begin(), j.end(), [](const Json& count) {
               return count.is_number_unsigned() && count.get<uint64_t>() <= kMostCount;
             });
    };
    return Take(key, is_counts, values);
  }
  bool operator()(const char* key, std::vector<std::vector<double>>& values) {
    const auto are_numbers = [](const Json& j) {
      return j.is_array() && std::all_of(j.begin(), j.end(), [](const Json& of_target) {
               return of_target.is_array() &&
                      std::all_of(of_target.begin(), of_target.end(),
                                  [](const Json& number) { return number.is_number(); });
             });
    };
    return Take(key, are_numbers, values);
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
  static constexpr auto kMostCount = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());

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

Json FieldsToJson(const Checkpoint& checkpoint) {
  Json json = {{"format", kFormat}};
  Checkpoint& fields = const_cast<Checkpoint&>(checkpoint);  // the writer only reads
  VisitFields(fields, Writer{json});
  VisitNewFields(fields, Writer{json});
  json[kPasses] = NumberToJson<Json>(checkpoint.epochs_seen);
  if (checkpoint.window > 0) json[kWindow] = checkpoint.window;
  if (checkpoint.body_steps != checkpoint.optimizer_steps) json[kBodySteps] = checkpoint.body_steps;
  if (!checkpoint.layer_steps.empty()) json[kLayerSteps] = checkpoint.layer_steps;
  if (checkpoint.frozen_passes > 0) {
    json[kFrozenPasses] = NumberToJson<Json>(checkpoint.frozen_passes);
  }
  if (checkpoint.averaged > 0) json[kAveraged] = checkpoint.averaged;
  if (checkpoint.rate_found) json[kRateFound] = true;
  if (!checkpoint.answers_in.empty()) json[kAnswersIn] = checkpoint.answers_in;
  if (!checkpoint.best_smearing.empty()) json[kSmearing] = checkpoint.best_smearing;
  return json;
}

// Returns the manifest's text, with the digest of everything else in it.
std::string Seal(Json manifest) {
  manifest.erase(kDigest);
  manifest[kDigest] = Sha256Hex(manifest.dump(-1, ' ', false, Json::error_handler_t::replace));
  return manifest.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::StatusOr<Checkpoint> FieldsFromJson(const Json& json, Reader& reader) {
  Checkpoint checkpoint;
  if (!VisitFields(checkpoint, reader) ||
      (json["format"] != 1 && !VisitNewFields(checkpoint, reader))) {
    return absl::DataLossError("\"" + reader.failed + "\" is missing or has the wrong type");
  }
  if (checkpoint.world_size < 1 || checkpoint.batch < 1) {
    return absl::DataLossError("world_size or batch is 0");
  }
  // Before epochs could be shortened there was none.
  checkpoint.epochs_seen = static_cast<double>(checkpoint.epoch);
  if (json.contains(kPasses) && !reader(kPasses, checkpoint.epochs_seen)) {
    return absl::DataLossError("\"passes\" is of another type");
  }
  if (json.contains(kWindow) && !reader(kWindow, checkpoint.window)) {
    return absl::DataLossError("\"window\" has the wrong type");
  }
  // Without these keys the body was trained in all steps.
  checkpoint.body_steps = checkpoint.optimizer_steps;
  if ((json.contains(kBodySteps) && !reader(kBodySteps, checkpoint.body_steps)) ||
      (json.contains(kLayerSteps) && !reader(kLayerSteps, checkpoint.layer_steps)) ||
      (json.contains(kFrozenPasses) && !reader(kFrozenPasses, checkpoint.frozen_passes)) ||
      (json.contains(kAveraged) && !reader(kAveraged, checkpoint.averaged)) ||
      (json.contains(kRateFound) && !reader(kRateFound, checkpoint.rate_found)) ||
      (json.contains(kAnswersIn) && !reader(kAnswersIn, checkpoint.answers_in)) ||
      (json.contains(kSmearing) && !reader(kSmearing, checkpoint.best_smearing))) {
    return absl::DataLossError("\"" + reader.failed + "\" has the wrong type");
  }
  if (json["format"] == 1) {
    checkpoint.step_rows = static_cast<int64_t>(checkpoint.batch) * checkpoint.world_size;
  }
  return checkpoint;
}

bool IsSlotName(const std::string& name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && name != "last" && std::all_of(name.begin(), name.end(), allowed);
}

absl::StatusOr<std::vector<std::string>> SlotsFromJson(const Json& json) {
  if (json["format"] == 1) {
    return std::vector<std::string>{"best_weights", "weights", "exp_avg", "exp_avg_sq"};
  }
  const auto found = json.find("slots");
  std::vector<std::string> slots;
  if (found == json.end() || !found->is_array()) {
    return absl::DataLossError("\"slots\" is missing or not a list");
  }
  for (const Json& slot : *found) {
    if (!slot.is_string() || !IsSlotName(slot.get<std::string>())) {
      return absl::DataLossError("\"slots\" contains something that is not the name of a slot");
    }
    slots.push_back(slot.get<std::string>());
  }
  return slots;
}

}  // namespace

std::string SlotPrefix(const std::string& slot) {
  if (slot == "best_weights") return "";
  if (slot == "weights") return "last.";
  return slot + ".";
}

std::string EncodeFields(const Checkpoint& checkpoint) {
  return FieldsToJson(checkpoint).dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<Checkpoint> DecodeFields(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("format")) {
    return absl::DataLossError("the fields of the checkpoint are not a JSON object");
  }
  Reader reader{json, ""};
  return FieldsFromJson(json, reader);
}

std::string EncodeManifest(const Checkpoint& checkpoint, const FileDigest& tensors) {
  Json json = FieldsToJson(checkpoint);
  json["slots"] = Json::array({"best_weights"});
  for (const auto& [slot, values] : checkpoint.slots) {
    if (slot != "best_weights") json["slots"].push_back(slot);
  }
  json["tensors_sha256"] = tensors.sha256;
  json["tensors_bytes"] = tensors.bytes;
  return Seal(std::move(json));
}

absl::StatusOr<CheckpointManifest> DecodeManifest(const std::string& text,
                                                  const std::string& path) {
  const auto bad = [&path](absl::string_view what) {
    return absl::DataLossError(absl::StrCat("checkpoint ", path, ": ", what));
  };
  if (NestedDeeper(text, kMostDepth)) return bad("it is no manifest: its lists nest too deep");
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) return bad("it is not a JSON object");
  if (!json.contains("format") || (json["format"] != kFormat && json["format"] != 1)) {
    return bad(absl::StrCat("its format is not 1 or ", kFormat));
  }
  if (Seal(json) != text) return bad("it is damaged: its digest does not match its text");
  CheckpointManifest manifest;
  Reader reader{json, ""};
  absl::StatusOr<Checkpoint> fields = FieldsFromJson(json, reader);
  if (!fields.ok()) return bad(fields.status().message());
  manifest.fields = *std::move(fields);
  absl::StatusOr<std::vector<std::string>> slots = SlotsFromJson(json);
  if (!slots.ok()) return bad(slots.status().message());
  manifest.slots = *std::move(slots);
  if (!reader("tensors_sha256", manifest.tensors.sha256) ||
      !reader("tensors_bytes", manifest.tensors.bytes)) {
    return bad("\"" + reader.failed + "\" is missing or has the wrong type");
  }
  return manifest;
}

}  // namespace traind
