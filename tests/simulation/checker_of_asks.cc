// Checks of Jobs that predict or serve with another one's models, of rows that are asked for at
// once, and of what is deleted meanwhile.
#include <algorithm>

#include "tests/simulation/history_checker.h"

namespace traind::simulation {
namespace {

constexpr int64_t kSecond = 1'000'000;
// From the end of a call's patience to its end.
constexpr int64_t kEndSlack = 100'000;
// A Rank starts and loads its models within so long.
constexpr int64_t kPatient = 5 * kSecond;
// Without a deadline nothing lasts longer, once nothing goes wrong any more.
constexpr int64_t kLongest = 90 * kSecond;

}  // namespace

bool Checker::ReadAsks(const json& r) {
  const std::string kind = r["kind"];
  if (kind == "asked") {
    asked_[r["job"]] = r;
  } else if (kind == "deleted") {
    ReadDeleted(r);
  } else if (kind == "ask_refused") {
    ++counts_["refused"];
    if (jobs_[r["source"]].deleted_at < 0) {
      Violation("job ", r["job"].get<std::string>(),
                " was refused: ", r["status"].get<std::string>());
    }
  } else if (kind == "to_go") {
    CheckToGo(r);
  } else if (kind == "calm") {
    calm_at_ = r["t"];
  } else if (kind == "model_gone") {
    Violation("attempt ", r["attempt"].get<int64_t>(), " of job ", r["job"].get<std::string>(),
              " needs ", r["path"].get<std::string>(), ", which was deleted");
  } else if (kind == "rows_given") {
    questions_[r["worker"]].insert(r["request"].get<int64_t>());
  } else if (kind == "rows_answered") {
    ReadRowsAnswered(r);
  } else if (kind == "rows_call") {
    const int64_t due = r["t"].get<int64_t>() + r["patience"].get<int64_t>();
    calls_[r["call"]] = {r["source"], due, r["patience"] >= kPatient, r["calm"], false};
  } else if (kind == "rows_end") {
    ReadRowsEnd(r);
  } else {
    return false;
  }
  return true;
}

// ---- Jobs

// A Job that is over goes, and one whose models no Job at work needs.
void Checker::ReadDeleted(const json& r) {
  const std::string id = r["job"];
  JobSeen& deleted = jobs_[id];
  deleted.deleted_at = r["t"];
  ++counts_["deleted_jobs"];
  if (deleted.last.is_null() || !Terminal(deleted.last["state"])) {
    Violation("job ", id, " was deleted and is not over");
  }
  for (const auto& [other, job] : jobs_) {
    if (job.last.is_null() || Terminal(job.last["state"])) continue;
    if (job.last["models_from"] == id) {
      Violation("job ", id, " was deleted, and job ", other, " uses its models");
    }
  }
}

// Retention leaves alone what a Job at work predicts with.
void Checker::CheckToGo(const json& r) {
  std::set<std::string> used;
  for (const auto& [id, job] : jobs_) {
    if (!job.last.is_null() && !Terminal(job.last["state"])) used.insert(job.last["models_from"]);
  }
  for (const char* what : {"jobs", "interim"}) {
    for (const json& id : r[what]) {
      if (used.count(id) == 0) continue;
      Violation("what job ", id.get<std::string>(), " has is to go (", what,
                "), and a job at work uses its models");
    }
  }
}

// It waits for no slot and takes none, and its models are there.
void Checker::ReadAskedJob(const json& r, JobSeen& job) {
  const std::string source = r["models_from"];
  if (source.empty()) return;
  const std::string id = r["job"];
  if (job.last.is_null()) job.first_at = r["t"];
  if (job.last.is_null() && jobs_[source].deleted_at >= 0) {
    Violation("job ", id, " was accepted, and job ", source, " with its models is deleted");
  }
  if (r.contains("plan")) Violation("job ", id, " trains nothing and has a plan");
  for (const json& attempt : r["attempts"]) {
    if (attempt[6] > 0) Violation("attempt ", attempt[0].dump(), " of job ", id, " takes slots");
  }
  const auto known = job.contents.find(r["number"]);
  if (known != job.contents.end() && known->second != r["content"]) {
    Violation("job ", id, ": prediction ", r["number"].dump(), " is not what was published");
  }
}

// A Prediction, once it stands, is never made again with another content.
void Checker::ReadContent(const json& r) {
  const auto [known, added] = jobs_[r["job"]].contents.emplace(r["number"], r["content"]);
  if (!added && known->second != r["content"]) {
    Violation("job ", r["job"].get<std::string>(), ": prediction ", r["number"].dump(),
              " was published twice");
  }
}

// As many predict files on a Worker as it has cores, but two at least.
void Checker::CheckPredicting(const json& r) {
  if (!r.value("predicts", false)) return;
  const std::string worker = r["worker"];
  std::set<int64_t>& predicting = predicts_[worker];
  predicting.insert(r["attempt"].get<int64_t>());
  const size_t most = std::max<size_t>(2, machines_[worker].slots.size());
  counts_["predicting_at_the_limit"] += predicting.size() == most;
  if (predicting.size() <= most) return;
  Violation(predicting.size(), " Ranks predict files on ", worker, ", which has ",
            machines_[worker].slots.size(), " cores");
}

void Checker::CheckAskedAtEnd(const std::string& id, const JobSeen& job) {
  const json& asked = asked_.at(id);
  const std::string state = job.last["state"];
  const bool predicts = asked["what"] == "PREDICT";
  ++counts_[predicts ? "predictions" : "servers"];
  ++counts_[(predicts ? "predictions_" : "servers_") + state];
  if (job.true_deadline >= 0) {
    CheckDeadline(id, job);
  } else if (!Terminal(state)) {
    Violation("job ", id, " without a deadline is still ", state);
  } else if (job.terminal_at > std::max(calm_at_, job.first_at) + kLongest) {
    Violation("job ", id, " was over ", (job.terminal_at - calm_at_) / kSecond,
              " s after the last fault");
  }
  if (predicts) return CheckPrediction(id, job, asked);
  if (state == "SUCCEEDED" || state == "CANCELLED") return;
  if (!faults_ || asked["calm"]) {
    Violation("job ", id, " serves and ended ", state,
              " without any fault: ", job.last["reason"].get<std::string>());
  }
}

void Checker::CheckPrediction(const std::string& id, const JobSeen& job, const json& asked) {
  const json& last = job.last;
  const std::string state = last["state"];
  const bool on_time = job.true_deadline < 0 || job.published_at <= job.true_deadline - 300'000;
  if (state == "FAILED" && job.published_at >= 0 && on_time && job.published_at < job.terminal_at) {
    Violation("job ", id, " FAILED though a prediction stands");
  }
  if (state == "SUCCEEDED" && last["number"] == 0) {
    Violation("job ", id, " SUCCEEDED without a prediction");
  }
  if (Terminal(state) && job.standing >= 0 && last["number"] != job.standing) {
    Violation("job ", id, " has prediction ", last["number"].dump(), ", and prediction ",
              job.standing, " stands");
  }
  if (Terminal(state) && last["number"] > job.number_on_disk) {
    Violation("job ", id, " names a prediction that is not on disk");
  }
  if (state == "CANCELLED" || asked["interrupted"]) return;
  if (!faults_ || asked["calm"]) CheckPredictedInTime(id, job, asked);
}

// Nothing went wrong.
void Checker::CheckPredictedInTime(const std::string& id, const JobSeen& job, const json& asked) {
  const json& last = job.last;
  const std::string state = last["state"], reason = last["reason"];
  if (asked["bad_data"]) {
    const bool told = state == "FAILED" && (reason == "DATA_ERROR" || reason == "BUDGET_REACHED");
    if (!told) Violation("job ", id, " cannot read its file and ended ", state, ": ", reason);
    return;
  }
  // A Rank starts, reads, and has its first model.
  const double first_s =
      3 + 2 * asked["read_s"].get<double>() + 3 * asked["predict_s"].get<double>();
  const bool fits = asked["window_s"] < 0 || asked["window_s"] > first_s;
  if (!fits) return;
  ++counts_["predictions_that_fit"];
  if (state != "SUCCEEDED") {
    Violation("job ", id, " ended ", state, " without any fault: ", reason);
  } else if (asked["window_s"] < 0 && last["quality"] != 3) {
    Violation("job ", id, " has time without end and not all models have answered");
  }
}

// ---- rows at once

void Checker::ReadRowsAnswered(const json& r) {
  const int64_t question = r["request"];
  if (questions_[r["worker"]].erase(question) == 0) {
    Violation("question ", question, " was answered by ", r["worker"].get<std::string>(),
              answered_.count(question) > 0 ? " twice" : " and not asked there");
  }
  answered_.insert(question);
  ++counts_["questions_answered"];
}

void Checker::ReadRowsEnd(const json& r) {
  RowsSeen& call = calls_[r["call"]];
  const std::string status = r["status"], why = r["why"];
  if (std::exchange(call.ended, true)) {
    Violation("call ", r["call"].dump(), " for rows was answered twice");
  }
  if (r["t"].get<int64_t>() > call.due + kEndSlack) {
    Violation("call ", r["call"].dump(), " for rows ended after its patience");
  }
  ++counts_["rows_" + status];
  if (status == "OK" && r["answered_by"] != call.source) {
    Violation("rows for job ", call.source, " were answered by the models of ",
              r["answered_by"].get<std::string>());
  }
  const bool lost = status == "UNAVAILABLE" || status == "ABORTED";
  if (lost && call.patient && (!faults_ || call.calm)) {
    Violation("rows for job ", call.source, " were not answered without any fault: ", why);
  }
}

// Each question that a living Worker has is answered, and each call ends.
void Checker::CheckRows() {
  for (const auto& [worker, open] : questions_) {
    for (const int64_t question : open) {
      Violation("question ", question, " was never answered by ", worker);
    }
  }
  for (const auto& [id, call] : calls_) {
    if (!call.ended) Violation("call ", id, " for rows never ended");
  }
}

}  // namespace traind::simulation
