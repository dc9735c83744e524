#include "client/job_array.h"

#include <absl/status/status.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/exit_codes.h"
#include "client/job_follower.h"
#include "client/request_id.h"
#include "client/spec_input.h"
#include "client/upload.h"
#include "client/verbs.h"
#include "common/spec/field_text.h"
#include "common/wire/render_json.h"

namespace traind {
namespace {

// As SubmitBatch takes at most, by number and by bytes.
constexpr size_t kMostInBatch = 1'000, kMostBytesInBatch = size_t{3} << 20;

// Splits at commas that stand in no brackets and no quotes.
std::vector<std::string> SplitValues(const std::string& text) {
  std::vector<std::string> values(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      values.emplace_back();
      continue;
    }
    values.back().push_back(c);
  }
  return values;
}

// "1..5" as its numbers; other texts as values.
absl::StatusOr<std::vector<std::string>> ValuesOf(const std::string& text) {
  const size_t dots = text.find("..");
  int64_t first = 0, last = 0;
  if (dots != text.npos && absl::SimpleAtoi(text.substr(0, dots), &first) &&
      absl::SimpleAtoi(text.substr(dots + 2), &last)) {
    if (last < first || last - first >= static_cast<int64_t>(kMostArrayJobs)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", Printable(text), "' is no range of 1 to ", kMostArrayJobs, " numbers"));
    }
    std::vector<std::string> values;
    for (int64_t value = first; value <= last; ++value) values.push_back(absl::StrCat(value));
    return values;
  }
  std::vector<std::string> values = SplitValues(text);
  if (std::any_of(values.begin(), values.end(), [](const auto& v) { return v.empty(); })) {
    return absl::InvalidArgumentError(absl::StrCat("'", Printable(text), "' has an empty value"));
  }
  return values;
}

// The arguments of a submit of one Job of the array. before: the Job that it runs after; empty:
// none.
Arguments ArgumentsOf(const Arguments& all, const std::string& array, size_t index,
                      const std::vector<ArraySetting>& settings, const std::string& before) {
  Arguments one = all;
  for (const auto& [field, value] : settings) one.sets.push_back(absl::StrCat(field, "=", value));
  one.labels.push_back(absl::StrCat(kArrayLabel, "=", array));
  one.labels.push_back(absl::StrCat(kArrayIndexLabel, "=", index));
  if (one.name) one.name = absl::StrCat(*one.name, "-", index);
  if (!before.empty()) {
    one.after = {before};
    one.sets.push_back("after.end=any");
  }
  return one;
}

struct Submitted {
  std::vector<std::string> ids;  // by index; empty: refused
  nlohmann::json jobs = nlohmann::json::array();
  size_t created = 0, refused = 0;
};

void NoteOutcome(const v1::SubmitOutcome& outcome, size_t index,
                 const std::vector<ArraySetting>& settings, Environment& environment,
                 Submitted& done) {
  const std::string text = absl::StrJoin(settings, " ", absl::PairFormatter("="));
  for (const std::string& warning : outcome.warnings()) {
    environment.err << "warning: " << index << " (" << Printable(text, 200)
                    << "): " << Printable(warning, 400) << "\n";
  }
  done.ids.push_back(outcome.id());
  if (outcome.id().empty()) {
    ++done.refused;
    environment.err << "refused: " << index << " (" << Printable(text, 200)
                    << "): " << Printable(outcome.message(), 1000) << "\n";
    return;
  }
  done.created += outcome.created();
  nlohmann::json job = {{"id", outcome.id()}, {"index", index}, {"created", outcome.created()}};
  for (const auto& [field, value] : settings) job["settings"][field] = value;
  done.jobs.push_back(std::move(job));
}

// One `submit --array`.
class ArraySubmission {
 public:
  ArraySubmission(const Arguments& arguments, Environment& environment,
                  const std::vector<std::vector<ArraySetting>>& jobs)
      : arguments_(arguments),
        environment_(environment),
        jobs_(jobs),
        request_(arguments.request_id.empty() ? RandomRequestId() : arguments.request_id),
        // The same request is the same array.
        array_(arguments.request_id.empty() ? request_.substr(0, 12) : arguments.request_id),
        lanes_(static_cast<size_t>(arguments.at_once.value_or(0))),
        client_(MakeClient(arguments, environment)) {}

  // The exit code.
  int Run() {
    while (done_.ids.size() < jobs_.size()) {
      v1::SubmitBatchRequest batch;
      if (const int code = Fill(batch); code != kExitOk) return code;
      if (const int code = Send(batch); code != kExitOk) return code;
    }
    Tell();
    return done_.refused > 0 ? kExitError : kExitOk;
  }

 private:
  // Adds the next Jobs. With lanes each Job waits for the one before it in its lane, which has to
  // be there.
  int Fill(v1::SubmitBatchRequest& batch) {
    const size_t first = done_.ids.size();
    const size_t most = lanes_ > 0 ? std::min(lanes_ - first % lanes_, kMostInBatch) : kMostInBatch;
    size_t bytes = 0;
    for (size_t i = first; i < jobs_.size() && i < first + most; ++i) {
      if (const int code = Add(i, batch); code != kExitOk) return code;
      bytes += batch.submits(batch.submits_size() - 1).ByteSizeLong();
      if (bytes > kMostBytesInBatch) break;
    }
    return kExitOk;
  }

  // The last Job of this one's lane that was not refused; empty: there is none.
  std::string BeforeInLane(size_t index) const {
    for (size_t i = index; lanes_ > 0 && i >= lanes_; i -= lanes_) {
      if (const std::string& id = done_.ids[i - lanes_]; !id.empty()) return id;
    }
    return "";
  }

  int Add(size_t index, v1::SubmitBatchRequest& batch) {
    const std::string before = BeforeInLane(index);
    SpecInput input;
    if (!LoadSpec(ArgumentsOf(arguments_, array_, index, jobs_[index], before), environment_,
                  done_.ids.empty() ? "nothing submitted" : "no more of the array are submitted",
                  input)) {
      return kExitUsage;
    }
    if (lanes_ > 0 && before.empty() && input.read.spec.has_after()) {
      environment_.err << "trainctl: `after` of the spec " << kNotWithLanes << "\n";
      return kExitUsage;
    }
    if (index == 0 && arguments_.upload) {
      const absl::Status sent = UploadFilesOf(input.read.spec, client_, environment_);
      if (!sent.ok()) return ReportRefusal(environment_, input, sent, "nothing submitted");
    }
    v1::SubmitRequest& submit = *batch.add_submits();
    *submit.mutable_spec() = std::move(input.read.spec);
    submit.set_spec_text(std::move(input.text));
    submit.set_owner(arguments_.owner);
    submit.set_request_id(absl::StrCat(request_, "-", index));
    return kExitOk;
  }

  int Send(const v1::SubmitBatchRequest& batch) {
    const auto reply = client_.SubmitBatch(batch);
    if (!reply.ok()) {
      environment_.err << "trainctl: " << done_.ids.size() << " of " << jobs_.size()
                       << " Jobs of the array were submitted; the same command with --request-id "
                       << Printable(request_, 200) << " goes on with it\n";
      return ReportError(environment_, reply.status());
    }
    for (const v1::SubmitOutcome& outcome : reply->outcomes()) {
      NoteOutcome(outcome, done_.ids.size(), jobs_[done_.ids.size()], environment_, done_);
    }
    if (reply->outcomes_size() == batch.submits_size()) return kExitOk;
    return ReportError(environment_, absl::InternalError("traind answered only a part of a batch"));
  }

  void Tell() {
    if (arguments_.json) {
      environment_.out << nlohmann::json({{"array", array_}, {"jobs", done_.jobs}}).dump(1) << "\n";
      return;
    }
    environment_.out << "array " << Printable(array_) << ": " << done_.jobs.size() << " Jobs, "
                     << done_.created << " new\n";
    SuggestNext(arguments_, environment_,
                {"list --array " + Printable(array_), "wait --array " + Printable(array_)});
  }

  const Arguments& arguments_;
  Environment& environment_;
  const std::vector<std::vector<ArraySetting>>& jobs_;
  const std::string request_, array_;
  const size_t lanes_;  // of Jobs that run one after the other; 0: all may run at once
  TrainingClient client_;
  Submitted done_;
};

}  // namespace

absl::StatusOr<std::vector<std::vector<ArraySetting>>> ExpandArray(
    const std::vector<std::string>& texts) {
  std::vector<std::vector<ArraySetting>> jobs(1);
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == text.npos || equals == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", Printable(text), "' has no values; write it like train.learning_rate=0.1,0.01"));
    }
    const auto values = ValuesOf(text.substr(equals + 1));
    if (!values.ok()) return values.status();
    if (jobs.size() * values->size() > kMostArrayJobs) {
      return absl::InvalidArgumentError(
          absl::StrCat("more than ", kMostArrayJobs, " Jobs in one array"));
    }
    std::vector<std::vector<ArraySetting>> combined;
    for (const std::vector<ArraySetting>& job : jobs) {
      for (const std::string& value : *values) {
        combined.push_back(job);
        combined.back().emplace_back(text.substr(0, equals), value);
      }
    }
    jobs = std::move(combined);
  }
  return jobs;
}

int SubmitArray(const Arguments& arguments, Environment& environment) {
  const auto jobs = ExpandArray(arguments.arrays);
  if (!jobs.ok()) {
    environment.err << "trainctl: --array " << jobs.status().message() << "\n";
    return kExitUsage;
  }
  return ArraySubmission(arguments, environment, *jobs).Run();
}

absl::StatusOr<std::vector<v1::Job>> JobsOfArray(TrainingClient& client, const std::string& array) {
  v1::ListJobsRequest request;
  (*request.mutable_labels())[kArrayLabel] = array;
  request.set_page_size(1000);
  std::vector<v1::Job> jobs;
  const absl::Status status = client.EachPage(request, [&jobs](v1::ListJobsReply page) {
    for (v1::Job& job : *page.mutable_jobs()) jobs.push_back(std::move(job));
  });
  if (!status.ok()) return status;
  if (jobs.empty()) {
    return absl::NotFoundError(absl::StrCat("no Job is of the array ", Printable(array)));
  }
  const auto index = [](const v1::Job& job) {
    int64_t number = 0;
    const auto label = job.labels().find(kArrayIndexLabel);
    if (label != job.labels().end() && !absl::SimpleAtoi(label->second, &number)) number = 0;
    return number;
  };
  std::stable_sort(jobs.begin(), jobs.end(),
                   [&](const v1::Job& a, const v1::Job& b) { return index(a) < index(b); });
  return jobs;
}

// Those that wait for others first: the end of a Job starts the next one of its lane.
int CancelArray(const Arguments& arguments, Environment& environment) {
  TrainingClient client = MakeClient(arguments, environment);
  auto jobs = JobsOfArray(client, arguments.array);
  if (!jobs.ok()) return ReportError(environment, jobs.status());
  v1::ListJobsReply cancelled;
  for (auto job = jobs->rbegin(); job != jobs->rend(); ++job) {
    if (HasEnded(*job)) continue;
    auto changed = client.CancelJob(job->id());
    // It may have ended by itself meanwhile.
    if (absl::IsFailedPrecondition(changed.status())) continue;
    if (!changed.ok()) return ReportError(environment, changed.status());
    *cancelled.add_jobs() = *std::move(changed);
  }
  if (arguments.json) {
    environment.out << "{\n\"jobs\": " << ToJsonArray(cancelled, "jobs") << "\n}\n";
  } else {
    environment.out << cancelled.jobs_size() << " of " << jobs->size() << " Jobs cancelled\n";
  }
  return kExitOk;
}

}  // namespace traind
