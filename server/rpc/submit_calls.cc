// TrainingCalls: checking and accepting specs.
#include <absl/strings/ascii.h>
#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "common/base/suggest.h"
#include "common/publish/floor_files.h"
#include "common/publish/publisher.h"
#include "common/spec/spec_rules.h"
#include "server/domain/after_rule.h"
#include "server/intake/models.h"
#include "server/intake/search_trials.h"
#include "server/rpc/training_calls.h"

namespace traind {
namespace {

constexpr char kOwner[] = "local";
constexpr size_t kMaxOwner = 63;
constexpr size_t kMaxSpecText = 1 << 20;
constexpr int kSuggestAmong = 200;  // of the newest Jobs

}  // namespace

absl::StatusOr<std::string> TrainingCalls::OwnerOf(const Caller& caller, const std::string& named) {
  if (named.empty()) return caller.known() ? caller.name : std::string(kOwner);
  if (!caller.MayChange(named)) {
    return absl::PermissionDeniedError(absl::StrCat("owner: this token is ", caller.name,
                                                    "'s; only an admin acts for ",
                                                    absl::CHexEscape(named.substr(0, kMaxOwner))));
  }
  const auto fits = [](char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
  };
  if (named.size() <= kMaxOwner && std::all_of(named.begin(), named.end(), fits)) return named;
  return absl::InvalidArgumentError(
      absl::StrCat("owner: '", absl::CHexEscape(named.substr(0, 2 * kMaxOwner)),
                   "' is no name: letters, digits, - _ and ., at most ", kMaxOwner));
}

std::string TrainingCalls::CountedOwner(const Caller& caller, const std::string& owner) {
  const std::string& named = caller.known() ? caller.name : owner;
  return named.empty() ? kOwner : named.substr(0, kMaxOwner);
}

absl::Status TrainingCalls::CountSubmit(const Caller& caller, const std::string& owner) {
  return submit_rate_.Take(CountedOwner(caller, owner), 1, loop_->Now());
}

absl::StatusOr<v1::JobSpec> TrainingCalls::WithSource(const v1::JobSpec& spec) const {
  if (spec.from().empty()) return spec;
  const auto source = Find(spec.from());
  if (!source.ok()) {
    return absl::Status(source.status().code(), absl::StrCat("from: ", source.status().message()));
  }
  if (!IsTerminal((*source)->state)) {
    return absl::FailedPreconditionError(
        absl::StrCat("from: job ", (*source)->id, " is not over; `update` gives it more time"));
  }
  if (const absl::Status files = CheckFilesOf(**source); !files.ok()) {
    return absl::Status(files.code(), absl::StrCat("from: ", files.message()));
  }
  ASSIGN_OR_RETURN(const v1::JobSpec base, SpecFromJson((*source)->spec_json));
  v1::JobSpec merged = GoOnFrom(base, spec);
  merged.set_from((*source)->id);
  std::vector<std::string> wrong;
  for (const std::string& field : FieldsAgainstSource(base, merged)) {
    wrong.push_back(absl::StrCat(field, ": differs from that of job ", (*source)->id,
                                 ", whose folds would be of no use; submit it without `from`"));
  }
  if (!wrong.empty()) return absl::InvalidArgumentError(absl::StrJoin(wrong, "\n"));
  return merged;
}

absl::StatusOr<v1::JobSpec> TrainingCalls::WithAfter(v1::JobSpec spec) const {
  if (!spec.has_after()) return spec;
  for (std::string& id : *spec.mutable_after()->mutable_jobs()) {
    const auto job = Find(id);
    if (job.ok()) {
      id = (*job)->id;
      continue;
    }
    std::string hint;
    if (absl::IsNotFound(job.status())) {
      std::vector<std::string> words;
      JobFilter newest;
      newest.limit = kSuggestAmong;
      if (const auto page = store_->ListJobs(newest); page.ok()) {
        for (const auto& known : page->jobs) {
          words.push_back(known->id);
          words.push_back(known->spec.name);
        }
      }
      hint = DidYouMean(id, words);
    }
    return absl::InvalidArgumentError(absl::StrCat("after.jobs: ", job.status().message(), hint));
  }
  auto& ids = *spec.mutable_after()->mutable_jobs();
  std::set<std::string> seen;
  ids.erase(std::remove_if(ids.begin(), ids.end(),
                           [&seen](const std::string& id) { return !seen.insert(id).second; }),
            ids.end());
  return spec;
}

absl::StatusOr<std::vector<std::string>> TrainingCalls::AwaitedBy(const v1::JobSpec& spec) const {
  std::vector<std::string> awaited;
  for (const std::string& id : spec.after().jobs()) {
    ASSIGN_OR_RETURN(const auto job, Find(id));
    if (!IsTerminal(job->state)) {
      awaited.push_back(id);
    } else {
      RETURN_IF_ERROR(MayBeginAfter(id, job->state, spec.after().end() == "any"));
    }
  }
  return awaited;
}

absl::StatusOr<CheckedSpec> TrainingCalls::CheckKind(const v1::JobSpec& spec,
                                                     absl::Time now) const {
  if (!UsesModelsOfAnother(spec)) {
    ASSIGN_OR_RETURN(CheckedSpec checked, intake_->Check(spec, now));
    if (!spec.from().empty() && spec.has_search()) {
      ASSIGN_OR_RETURN(const auto source, Find(spec.from()));
      TakeDrawnTrials(source->spec, checked.spec);
    }
    return checked;
  }
  const bool predicts = spec.has_predict();
  const std::string& from = predicts ? spec.predict().from() : spec.serve().from();
  const auto source = Find(from);
  if (!source.ok()) {
    return absl::Status(source.status().code(), absl::StrCat(predicts ? "predict" : "serve",
                                                             ".from: ", source.status().message()));
  }
  RETURN_IF_ERROR(CheckFilesOf(**source));
  std::optional<PublishedPrediction> standing;
  if (auto read = ReadStandingPrediction(state_dir_, (*source)->id); read.ok()) {
    standing = *std::move(read);
  }
  std::error_code unknown;
  const std::string floor = absl::StrCat(state_dir_, "/", FloorDir((*source)->id), "/");
  const bool floor_is_kept = std::filesystem::exists(floor + kFloorModelFile, unknown) ||
                             std::filesystem::exists(floor + kSeriesFloorModelFile, unknown) ||
                             std::filesystem::exists(floor + kVolumeFloorModelFile, unknown);
  ASSIGN_OR_RETURN(const v1::ModelSet models, ModelsOf(**source, standing, floor_is_kept));
  for (const v1::ModelRef& model : models.models()) {
    const std::string folder = absl::StrCat(state_dir_, "/", model.path());
    if (std::filesystem::exists(folder, unknown)) continue;
    return absl::FailedPreconditionError(absl::StrCat("the model of fold ", model.fold(),
                                                      " of job ", (*source)->id,
                                                      " is gone: somebody has removed ", folder));
  }
  return intake_->CheckInference(spec, **source, models, now);
}

absl::Status TrainingCalls::CheckKnown(const Job& known, const AskedSpec& spec) {
  if (known.spec_sha256 == spec.sha256) return absl::OkStatus();
  std::string fields = "the spec";
  const auto before = SpecFromJson(known.spec_json), asked = SpecFromJson(spec.json);
  if (before.ok() && asked.ok()) {
    fields = absl::StrJoin(DifferingFields(*before, *asked), ", ");
  }
  return absl::AlreadyExistsError(
      absl::StrCat("request_id: job ", known.id,
                   " was submitted under it with another spec; what differs: ", fields));
}

absl::StatusOr<TrainingCalls::Asked> TrainingCalls::AskedBy(const Caller& caller,
                                                            const v1::SubmitRequest& request,
                                                            const std::string& spec_json) {
  if (request.request_id().size() > kMaxRequestId) {
    return absl::InvalidArgumentError(
        absl::StrCat("request_id: longer than ", kMaxRequestId, " characters"));
  }
  if (request.spec_text().size() > kMaxSpecText) {
    return absl::InvalidArgumentError("spec_text: longer than 1 MiB");
  }
  ASSIGN_OR_RETURN(std::string owner, OwnerOf(caller, request.owner()));
  return Asked{std::move(owner), request.request_id(), Sha256Hex(spec_json), request.spec_text()};
}

absl::StatusOr<v1::JobSpec> TrainingCalls::Completed(const v1::JobSpec& spec,
                                                     const std::string& owner) const {
  ASSIGN_OR_RETURN(v1::JobSpec merged, WithSource(spec));
  ASSIGN_OR_RETURN(v1::JobSpec completed, WithAfter(std::move(merged)));
  RETURN_IF_ERROR(intake_->CheckOwner(completed, owner));
  return completed;
}

void TrainingCalls::Submit(const Caller& caller, const v1::SubmitRequest& request,
                           v1::SubmitReply* reply, Done done) {
  auto asked = AskedBy(caller, request, SpecToJson(request.spec()));
  if (!asked.ok()) return done(asked.status());
  if (const auto known = FindRepeated(*asked)) {
    *reply->mutable_job() = Describe(*known);
    return done(absl::OkStatus());
  }
  if (const absl::Status many = CountSubmit(caller, request.owner()); !many.ok()) {
    return done(many);
  }
  auto spec = Completed(request.spec(), asked->owner);
  if (!spec.ok()) return done(spec.status());
  SubmitSpec(*std::move(spec), *std::move(asked), reply, std::move(done));
}

std::optional<Job> TrainingCalls::FindRepeated(const Asked& asked) const {
  if (asked.request_id.empty()) return std::nullopt;
  auto known = store_->FindByRequest(asked.owner, asked.request_id);
  if (!known.ok() || known->asked_sha256 != asked.sha256) return std::nullopt;
  // The views know what is not stored.
  const auto view = loop_->views().Find(known->id);
  return view.job != nullptr ? *view.job : *std::move(known);
}

absl::StatusOr<Job> TrainingCalls::MakeJob(const v1::JobSpec& spec, const Asked& asked) const {
  const absl::Time now = loop_->Now();
  ASSIGN_OR_RETURN(const CheckedSpec checked, CheckKind(spec, now));
  ASSIGN_OR_RETURN(std::vector<std::string> after, AwaitedBy(spec));
  Job job = JobOf(checked, asked, now);
  job.after = std::move(after);
  return job;
}

Job TrainingCalls::JobOf(const CheckedSpec& checked, const Asked& asked, absl::Time now) const {
  Job job = intake_->MakeJob(checked, asked.owner, asked.request_id, asked.spec_text, now);
  job.asked_sha256 = asked.sha256;
  return job;
}

void TrainingCalls::SubmitSpec(v1::JobSpec spec, Asked asked, v1::SubmitReply* reply, Done done) {
  checks_.Add([this, spec = std::move(spec), asked = std::move(asked), reply,
               done = std::move(done)] { CheckAndSubmit(spec, asked, reply, done); },
              absl::InfinitePast());  // in the order of arrival
}

void TrainingCalls::CheckAndSubmit(const v1::JobSpec& spec, const Asked& asked,
                                   v1::SubmitReply* reply, const Done& done) {
  auto job = MakeJob(spec, asked);
  if (!job.ok()) return done(job.status());
  AskedSpec kept{job->spec_sha256, job->spec_json};
  loop_->Submit(*std::move(job), [this, reply, kept = std::move(kept), done](const Reply& answer) {
    absl::Status status = answer.status;
    if (answer.job != nullptr && !answer.created) {
      status = CheckKnown(*answer.job, kept);
      if (status.ok()) *reply->mutable_job() = Describe(*answer.job);
    } else if (answer.job != nullptr && status.ok()) {
      *reply->mutable_job() = Describe(*answer.job);
      reply->set_created(true);
      for (const std::string& warning : answer.job->warnings) reply->add_warnings(warning);
    }
    done(status);
  });
}

}  // namespace traind
