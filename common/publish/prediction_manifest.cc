#include "common/publish/prediction_manifest.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cmath>
#include <nlohmann/json.hpp>

#include "common/base/digest_text.h"
#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/number_json.h"
#include "common/base/status_macros.h"

namespace traind {
namespace {

using Json = nlohmann::json;

constexpr char kTimeFormat[] = "%Y-%m-%dT%H:%M:%E3SZ";

Json Number(double value) { return NumberToJson<Json>(value); }
Json Number(const std::optional<double>& value) { return value ? Number(*value) : Json(nullptr); }

// Reads typed values from an object; the first invalid one is recorded.
class Fields {
 public:
  explicit Fields(const Json& object) : object_(object) {}

  const Json& At(const char* key) {
    static const Json kNothing = Json::object();
    const auto it = object_.find(key);
    if (it == object_.end()) return Wrong(key), kNothing;
    return *it;
  }
  void Read(const char* key, std::string& value) {
    const Json& json = At(key);
    if (json.is_string()) {
      value = json.get<std::string>();
    } else {
      Wrong(key);
    }
  }
  void Read(const char* key, bool& value) {
    const Json& json = At(key);
    if (json.is_boolean()) {
      value = json.get<bool>();
    } else {
      Wrong(key);
    }
  }
  // Reads a count, which is not negative.
  void Read(const char* key, int64_t& value) {
    const Json& json = At(key);
    if (json.is_number_unsigned() && json.get<uint64_t>() <= uint64_t{INT64_MAX}) {
      value = json.get<int64_t>();
    } else {
      Wrong(key);
    }
  }
  void Read(const char* key, int& value) {
    int64_t wide = 0;
    Read(key, wide);
    if (wide > INT_MAX) Wrong(key);
    value = static_cast<int>(wide);
  }
  void Read(const char* key, double& value) {
    const std::optional<double> number = NumberFromJson(At(key));
    if (!number) return Wrong(key);
    value = *number;
  }
  void Read(const char* key, std::optional<double>& value) {
    if (At(key).is_null()) return;
    value.emplace();
    Read(key, *value);
  }
  void Wrong(const char* key) {
    if (wrong_.empty()) wrong_ = key;
  }
  const std::string& wrong() const { return wrong_; }

 private:
  const Json& object_;
  std::string wrong_;
};

Json MemberJson(const Member& member) {
  return {{"fold", member.fold},
          {"trial", member.trial},
          {"seed", member.seed},
          {"kind", member.kind},
          {"attempt", member.attempt},
          {"complete", member.complete},
          {"score", Number(member.score)},
          {"epochs_done", Number(member.epochs_done)},
          {"oof", member.oof},
          {"oof_sha256", member.oof_sha256},
          {"test", member.test},
          {"test_sha256", member.test_sha256},
          {"best_epoch", Number(member.best_epoch)},
          {"step", member.step},
          {"weight", Number(member.weight)}};
}

std::string ParseMember(const Json& json, Member& member) {
  Fields fields(json);
  fields.Read("fold", member.fold);
  fields.Read("attempt", member.attempt);
  fields.Read("complete", member.complete);
  fields.Read("score", member.score);
  fields.Read("epochs_done", member.epochs_done);
  fields.Read("oof", member.oof);
  fields.Read("oof_sha256", member.oof_sha256);
  fields.Read("test", member.test);
  fields.Read("test_sha256", member.test_sha256);
  // The first files of format 1 lack these fields.
  if (json.contains("weight")) {
    fields.Read("best_epoch", member.best_epoch);
    fields.Read("step", member.step);
    fields.Read("weight", member.weight);
  }
  if (json.contains("seed")) fields.Read("seed", member.seed);
  if (json.contains("trial")) {
    fields.Read("trial", member.trial);
    fields.Read("kind", member.kind);
  }
  return fields.wrong();
}

std::vector<PredictionFile> ParseFiles(const Json& list) {
  std::vector<PredictionFile> files;
  for (const Json& item : list) {
    PredictionFile& file = files.emplace_back();
    Fields fields(item);
    fields.Read("name", file.name);
    fields.Read("sha256", file.sha256);
    fields.Read("bytes", file.bytes);
    if (!fields.wrong().empty()) files.pop_back();
  }
  return files;
}

Json ScoresJson(const QuantileScores& scores) {
  return {{"pinball", scores.pinball}, {"below", scores.below}};
}

Json QuantilesJson(const Quantiles& quantiles) {
  Json targets = Json::array();
  for (const TargetOffsets& target : quantiles.targets) {
    targets.push_back({{"answers", target.at},
                       {"offsets", target.offsets},
                       {"not_negative", target.not_negative}});
    if (target.steps.empty()) continue;
    targets.back()["steps"] = target.steps;
    targets.back()["scales"] = target.scales;
  }
  return {{"levels", quantiles.levels}, {"targets", std::move(targets)}};
}

bool ReadNumbers(const Json& list, std::vector<double>& to) {
  if (!list.is_array()) return false;
  for (const Json& item : list) {
    if (!item.is_number() || !std::isfinite(item.get<double>())) return false;
    to.push_back(item.get<double>());
  }
  return true;
}

// False: they are damaged.
bool ParseClasses(const Json& json, std::vector<int>& classes) {
  if (!json.is_array()) return false;
  for (const Json& item : json) {
    if (!item.is_number_integer()) return false;
    const auto index = item.get<int64_t>();
    if (index < 0 || index > INT_MAX) return false;
    classes.push_back(static_cast<int>(index));
  }
  return true;
}

// False: it is damaged.
bool ParsePowers(const Json& json, std::vector<TrialPower>& powers) {
  if (!json.is_array()) return false;
  for (const Json& item : json) {
    if (!item.is_object() || !item.contains("trial") || !item.contains("exponent") ||
        !item["trial"].is_number_integer() || !item["exponent"].is_number()) {
      return false;
    }
    const auto trial = item["trial"].get<int64_t>();
    const double exponent = item["exponent"].get<double>();
    if (trial < -1 || trial > INT_MAX || !(exponent > 0) || !std::isfinite(exponent)) return false;
    powers.push_back({static_cast<int>(trial), exponent});
  }
  return true;
}

// False: they are damaged.
bool ParseScores(const Json& scores, const char* key, size_t levels, QuantileScores& to) {
  if (!scores.is_object() || !scores.contains(key)) return true;
  const Json& of = scores[key];
  return of.is_object() && of.contains("pinball") && of.contains("below") &&
         ReadNumbers(of["pinball"], to.pinball) && ReadNumbers(of["below"], to.below) &&
         to.pinball.size() == levels && to.below.size() == levels;
}

// False: it is damaged.
bool ParseQuantiles(const Json& json, Quantiles& quantiles) {
  const auto has = [](const Json& object, const char* key) {
    return object.is_object() && object.contains(key);
  };
  if (!has(json, "levels") || !has(json, "targets") || !json["targets"].is_array() ||
      !ReadNumbers(json["levels"], quantiles.levels)) {
    return false;
  }
  for (const Json& item : json["targets"]) {
    TargetOffsets& target = quantiles.targets.emplace_back();
    if (!has(item, "answers") || !has(item, "offsets") || !has(item, "not_negative") ||
        !item["not_negative"].is_boolean() || !ReadNumbers(item["answers"], target.at) ||
        !ReadNumbers(item["offsets"], target.offsets) ||
        target.offsets.size() != target.at.size() * quantiles.levels.size() ||
        !std::is_sorted(target.at.begin(), target.at.end())) {
      return false;
    }
    target.not_negative = item["not_negative"].get<bool>();
    if (!has(item, "steps")) continue;
    if (!has(item, "scales") || !ReadNumbers(item["steps"], target.steps) ||
        !ReadNumbers(item["scales"], target.scales) ||
        target.steps.size() != target.scales.size() ||
        !std::is_sorted(target.steps.begin(), target.steps.end())) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::string EncodeManifest(const PredictionManifest& manifest) {
  const PublishedPrediction& p = manifest.prediction;
  Json members = Json::array();
  for (const Member& member : p.members) members.push_back(MemberJson(member));
  Json files = Json::array();
  for (const PredictionFile& file : p.files) {
    files.push_back({{"name", file.name}, {"sha256", file.sha256}, {"bytes", file.bytes}});
  }
  Json json = {
      {"format", 1},
      {"job", manifest.job},
      {"number", p.number},
      {"quality", QualityName(p.quality)},
      {"at", absl::FormatTime(kTimeFormat, p.at, absl::UTCTimeZone())},
      {"predictions",
       {{"name", kPredictionsFile}, {"sha256", p.sha256}, {"bytes", p.bytes}, {"rows", p.rows}}},
      {"metric", manifest.metric},
      {"scores",
       {{"oof", Number(p.oof_score)},
        {"comparable", p.comparable},
        {"test", Number(p.test_score)},
        {"floor", Number(p.floor_score)}}},
      {"members", std::move(members)},
      {"left_out", p.left_out},
      {"ensemble", p.ensemble},
      {"files", std::move(files)},
      {"models_from", manifest.models_from},
      {"floor",
       {{"model", manifest.floor_model},
        {"test_sha256", manifest.floor_test_sha256},
        {"weight", p.floor_weight}}},
  };
  for (const Member& member : manifest.idle) json["idle"].push_back(MemberJson(member));
  if (p.tuned.temperature != 1) json["temperature"] = p.tuned.temperature;
  if (p.tuned.threshold) json["threshold"] = *p.tuned.threshold;
  for (const TrialPower& power : p.tuned.powers) {
    json["powers"].push_back({{"trial", power.trial}, {"exponent", power.exponent}});
  }
  if (!p.tuned.largest.empty()) json["largest_components"] = p.tuned.largest;
  if (p.weighed_score) json["scores"]["weighed"] = Number(p.weighed_score);
  if (!p.quantiles.levels.empty()) {
    json["quantiles"] = QuantilesJson(p.quantiles);
    Json& scores = json["quantiles"]["scores"];
    if (!p.quantile_scores.pinball.empty()) scores["oof"] = ScoresJson(p.quantile_scores);
    if (!p.test_quantile_scores.pinball.empty()) {
      scores["test"] = ScoresJson(p.test_quantile_scores);
    }
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::StatusOr<PredictionManifest> ParseManifest(absl::string_view text, absl::string_view name) {
  const auto damaged = [&](absl::string_view what) { return Damaged(name, what); };
  const Json json = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!json.is_object()) return damaged("it is not a JSON object");
  PredictionManifest manifest;
  PublishedPrediction& p = manifest.prediction;
  std::string quality, at;
  Fields top(json);
  top.Read("job", manifest.job);
  top.Read("number", p.number);
  top.Read("quality", quality);
  top.Read("at", at);
  top.Read("metric", manifest.metric);
  Fields file(top.At("predictions"));
  file.Read("sha256", p.sha256);
  file.Read("bytes", p.bytes);
  file.Read("rows", p.rows);
  Fields scores(top.At("scores"));
  scores.Read("oof", p.oof_score);
  scores.Read("comparable", p.comparable);
  scores.Read("test", p.test_score);
  scores.Read("floor", p.floor_score);
  if (top.At("scores").contains("weighed")) scores.Read("weighed", p.weighed_score);
  Fields floor(top.At("floor"));
  floor.Read("model", manifest.floor_model);
  floor.Read("test_sha256", manifest.floor_test_sha256);
  if (json.contains("ensemble")) {
    top.Read("ensemble", p.ensemble);
    top.Read("models_from", manifest.models_from);
    floor.Read("weight", p.floor_weight);
    p.files = ParseFiles(top.At("files"));
  }
  if (json.contains("temperature")) {
    top.Read("temperature", p.tuned.temperature);
    if (!(p.tuned.temperature > 0) || !std::isfinite(p.tuned.temperature)) top.Wrong("temperature");
  }
  if (json.contains("threshold")) {
    p.tuned.threshold.emplace();
    top.Read("threshold", *p.tuned.threshold);
    if (!std::isfinite(*p.tuned.threshold)) top.Wrong("threshold");
  }
  if (json.contains("powers") && !ParsePowers(json["powers"], p.tuned.powers)) {
    top.Wrong("powers");
  }
  if (json.contains("largest_components") &&
      !ParseClasses(json["largest_components"], p.tuned.largest)) {
    top.Wrong("largest_components");
  }
  if (json.contains("quantiles")) {
    const Json& quantiles = json["quantiles"];
    if (!ParseQuantiles(quantiles, p.quantiles)) {
      top.Wrong("quantiles");
    } else if (quantiles.contains("scores")) {
      const Json& of = quantiles["scores"];
      const size_t levels = p.quantiles.levels.size();
      if (!ParseScores(of, "oof", levels, p.quantile_scores) ||
          !ParseScores(of, "test", levels, p.test_quantile_scores)) {
        top.Wrong("quantiles.scores");
      }
    }
  }
  p.quality = QualityByName(quality);
  if (p.quality == Quality::kNone) top.Wrong("quality");
  if (!absl::ParseTime(absl::RFC3339_full, at, &p.at, nullptr)) top.Wrong("at");
  const Json& left_out = top.At("left_out");
  if (!left_out.is_array()) top.Wrong("left_out");
  for (const Json& fold : left_out) {
    if (!fold.is_number_unsigned() || fold.get<uint64_t>() > uint64_t{INT_MAX}) {
      return damaged("left_out");
    }
    p.left_out.push_back(fold.get<int>());
  }
  const Json& members = top.At("members");
  if (!members.is_array()) top.Wrong("members");
  for (const Fields* fields : {&top, &file, &scores, &floor}) {
    if (!fields->wrong().empty()) return damaged(fields->wrong());
  }
  const auto parse = [](const Json& list, std::vector<Member>& to) {
    for (const Json& item : list) {
      std::string wrong = ParseMember(item, to.emplace_back());
      if (!wrong.empty()) return wrong;
    }
    return std::string();
  };
  std::string wrong = parse(members, p.members);
  if (wrong.empty() && json.contains("idle")) wrong = parse(json["idle"], manifest.idle);
  if (!wrong.empty()) return damaged(absl::StrCat(wrong, " of a member"));
  p.path = absl::StrCat(PredictionDir(manifest.job, p.number), "/", kPredictionsFile);
  return manifest;
}

absl::StatusOr<PredictionManifest> ReadStandingManifest(const std::string& state_dir,
                                                        const std::string& job) {
  const std::string link = absl::StrCat(state_dir, "/", CurrentLink(job));
  // The link is read only once, because it may be switched between two reads.
  char target[256];
  const ssize_t size = readlink(link.c_str(), target, sizeof target);
  if (size < 0) return ErrnoStatus(errno, absl::StrCat("cannot read ", link));
  absl::string_view number_text(target, static_cast<size_t>(size));
  int number = 0;
  if (!absl::ConsumePrefix(&number_text, "prediction-") ||
      !absl::SimpleAtoi(number_text, &number)) {
    return absl::DataLossError(absl::StrCat(link, " does not point to a prediction"));
  }
  const std::string path =
      absl::StrCat(state_dir, "/", PredictionDir(job, number), "/", kManifestFile);
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  ASSIGN_OR_RETURN(PredictionManifest manifest, ParseManifest(text, path));
  if (manifest.prediction.number != number || manifest.job != job) {
    return absl::DataLossError(absl::StrCat(path, " is damaged: it is of another prediction"));
  }
  return manifest;
}

absl::StatusOr<PublishedPrediction> ReadStandingPrediction(const std::string& state_dir,
                                                           const std::string& job) {
  ASSIGN_OR_RETURN(PredictionManifest manifest, ReadStandingManifest(state_dir, job));
  return std::move(manifest.prediction);
}

}  // namespace traind
