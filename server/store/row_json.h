// The JSON texts in the database's rows.
#pragma once

#include <absl/status/status.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/publish/prediction.h"
#include "server/domain/spec.h"

namespace traind {

// Text from a Worker may not be UTF-8; invalid bytes are replaced, not refused.
inline std::string Dump(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

inline std::string ListText(const std::vector<std::string>& list) {
  return list.empty() ? "[]" : Dump(list);
}

// JSON has no NaN, so a score that is not a number is stored as null.
inline nlohmann::json MemberJson(const Member& m) {
  return {
      {"fold", m.fold},
      {"trial", m.trial},
      {"seed", m.seed},
      {"kind", m.kind},
      {"attempt", m.attempt},
      {"complete", m.complete},
      {"score", std::isfinite(m.score) ? nlohmann::json(m.score) : nlohmann::json()},
      {"epochs_done",
       std::isfinite(m.epochs_done) ? nlohmann::json(m.epochs_done) : nlohmann::json()},
      {"oof", m.oof},
      {"oof_sha256", m.oof_sha256},
      {"test", m.test},
      {"test_sha256", m.test_sha256},
      {"best_epoch", std::isfinite(m.best_epoch) ? nlohmann::json(m.best_epoch) : nlohmann::json()},
      {"step", m.step},
      {"weight", std::isfinite(m.weight) ? nlohmann::json(m.weight) : nlohmann::json()}};
}

// Returns the levels and both scores of each, as ReadQuantileScores takes them; empty where
// nothing is scored.
inline std::string QuantileScoresText(const PublishedPrediction& p) {
  if (p.quantile_scores.pinball.empty() && p.test_quantile_scores.pinball.empty()) return "";
  const auto scores = [](const QuantileScores& s) {
    return nlohmann::json{{"pinball", s.pinball}, {"below", s.below}};
  };
  return Dump({{"levels", p.quantiles.levels},
               {"oof", scores(p.quantile_scores)},
               {"test", scores(p.test_quantile_scores)}});
}

inline void ReadQuantileScores(const nlohmann::json& j, PublishedPrediction& p) {
  const auto read = [](const nlohmann::json& from, QuantileScores& to) {
    to.pinball = from.at("pinball").get<std::vector<double>>();
    to.below = from.at("below").get<std::vector<double>>();
  };
  p.quantiles.levels = j.at("levels").get<std::vector<double>>();
  read(j.at("oof"), p.quantile_scores);
  read(j.at("test"), p.test_quantile_scores);
}

inline nlohmann::json TrialsJson(const std::vector<Trial>& trials) {
  nlohmann::json list = nlohmann::json::array();
  for (const Trial& trial : trials) {
    list.push_back({{"name", trial.name},
                    {"kind", trial.kind},
                    {"epochs", trial.epochs},
                    {"patience", trial.patience}});
    if (trial.settings != nullptr) list.back()["settings"] = *trial.settings;
    if (trial.proposed) list.back()["proposed"] = trial.request_id;
  }
  return list;
}

inline std::string SearchText(const Search& search) {
  if (search.method.empty()) return "{}";
  nlohmann::json j = {{"method", search.method}, {"space", search.space}, {"seed", search.seed}};
  if (AsksClients(search)) j["wait_ms"] = absl::ToInt64Milliseconds(search.wait);
  return Dump(j);
}

inline Search SearchFromJson(const nlohmann::json& j) {
  Search search;
  search.method = j.at("method");
  search.space = j.at("space").get<Settings>();
  search.seed = j.at("seed");
  if (AsksClients(search)) search.wait = absl::Milliseconds(j.at("wait_ms").get<int64_t>());
  return search;
}

inline std::string ConstraintsText(const Constraints& constraints) {
  if (!constraints.any()) return "{}";
  return Dump({{"labels", constraints.labels},
               {"gpu", constraints.gpu},
               {"gpu_memory_bytes", constraints.gpu_memory_bytes}});
}

inline Constraints ConstraintsFromJson(const nlohmann::json& j) {
  Constraints constraints;
  constraints.labels = j.at("labels").get<std::set<std::string>>();
  constraints.gpu = j.at("gpu");
  constraints.gpu_memory_bytes = j.at("gpu_memory_bytes");
  return constraints;
}

inline Trial TrialFromJson(const nlohmann::json& j) {
  Trial trial;
  trial.name = j.at("name");
  trial.kind = j.at("kind");
  trial.epochs = j.at("epochs");
  trial.patience = j.at("patience");
  if (j.contains("settings")) {
    trial.settings = std::make_shared<const Settings>(j["settings"].get<Settings>());
  }
  trial.proposed = j.contains("proposed");
  if (trial.proposed) trial.request_id = j["proposed"];
  return trial;
}

inline double NumberOrNan(const nlohmann::json& value) {
  return value.is_number() ? value.get<double>() : NAN;
}

inline Member MemberFromJson(const nlohmann::json& j) {
  Member m;
  m.fold = j.at("fold");
  m.attempt = j.at("attempt");
  m.complete = j.at("complete");
  m.score = NumberOrNan(j.at("score"));
  m.epochs_done = NumberOrNan(j.at("epochs_done"));
  m.oof = j.at("oof");
  m.oof_sha256 = j.at("oof_sha256");
  m.test = j.at("test");
  m.test_sha256 = j.at("test_sha256");
  // Rows that an older traind wrote have none of these.
  if (j.contains("weight")) {
    m.best_epoch = NumberOrNan(j.at("best_epoch"));
    m.step = j.at("step");
    m.weight = NumberOrNan(j.at("weight"));
  }
  m.seed = j.value("seed", 0);
  m.trial = j.value("trial", 0);
  m.kind = j.value("kind", std::string());
  return m;
}

// Reads what Dump wrote. Errors: DataLoss.
template <typename Reader>
absl::Status Parse(const std::string& text, const char* column, Reader reader) {
  try {
    reader(nlohmann::json::parse(text));
  } catch (const nlohmann::json::exception& e) {
    return absl::DataLossError(std::string("database: ") + column + ": " + e.what());
  }
  return absl::OkStatus();
}

}  // namespace traind
