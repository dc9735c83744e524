// A caller whose answer was lost calls again: the second call answers as the first one did, and
// changes nothing. Every call of the service is here, or only reads.
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "tests/contract/stored_jobs.h"
#include "tests/server/rpc/rpc_house.h"

namespace traind {
namespace {

using Stub = v1::TrainingService::Stub;

// They change nothing, so they may be called as often as one likes.
const std::set<std::string>& Reads() {
  static const auto* const kReads = new std::set<std::string>{
      "Plan",        "GetJob",  "ListJobs",      "WatchJob", "ListTrials", "GetMetrics",
      "GetEvents",   "GetLogs", "FetchArtifact", "GetSpec",  "ListQuotas", "ListWorkers",
      "PredictRows",  // starts a Job that serves, or finds it
  };
  return *kReads;
}

// As text, without what the time alone changes.
std::string Untimed(const google::protobuf::Message& message) {
  std::vector<std::string> kept;
  for (const absl::string_view line : absl::StrSplit(message.DebugString(), '\n')) {
    if (!absl::StrContains(line, "remaining_s:")) kept.emplace_back(line);
  }
  return absl::StrJoin(kept, "\n");
}

class Repeats {
 public:
  // Calls twice, and compares the answers and what is there after each.
  template <typename Request, typename Reply>
  void Twice(grpc::Status (Stub::*call)(grpc::ClientContext*, const Request&, Reply*),
             const Request& request, const std::function<void(Reply*)>& forget = nullptr) {
    Reply first, second;
    const grpc::Status once = Call(call, request, &first);
    ASSERT_TRUE(once.ok()) << once.error_message();
    const std::string before = Everything();
    const grpc::Status again = Call(call, request, &second);
    ASSERT_TRUE(again.ok()) << again.error_message();
    if (forget) forget(&first), forget(&second);
    EXPECT_EQ(Untimed(first), Untimed(second));
    EXPECT_EQ(Everything(), before);
  }
  template <typename Request, typename Reply>
  grpc::Status Call(grpc::Status (Stub::*call)(grpc::ClientContext*, const Request&, Reply*),
                    const Request& request, Reply* reply) {
    grpc::ClientContext context;
    return (house.client().*call)(&context, request, reply);
  }
  // Of a call about one Job.
  template <typename Request, typename Reply>
  void TwiceOn(const std::string& job,
               grpc::Status (Stub::*call)(grpc::ClientContext*, const Request&, Reply*)) {
    Request request;
    request.set_id(job);
    Twice(call, request);
  }
  std::string Everything() {
    v1::ListJobsReply jobs;
    EXPECT_TRUE(Call(&Stub::ListJobs, v1::ListJobsRequest(), &jobs).ok());
    std::string text = Untimed(jobs);
    for (const v1::Job& job : jobs.jobs()) {
      grpc::ClientContext context;
      v1::GetEventsRequest request;
      request.set_id(job.id());
      const auto stream = house.client().GetEvents(&context, request);
      for (v1::EventsReply reply; stream->Read(&reply);)
        absl::StrAppend(&text, reply.DebugString());
    }
    v1::ListQuotasReply quotas;
    EXPECT_TRUE(Call(&Stub::ListQuotas, v1::ListQuotasRequest(), &quotas).ok());
    v1::ListWorkersReply workers;
    EXPECT_TRUE(Call(&Stub::ListWorkers, v1::ListWorkersRequest(), &workers).ok());
    for (v1::WorkerInfo& worker : *workers.mutable_workers()) worker.clear_last_seen();
    return absl::StrCat(text, Untimed(quotas), Untimed(workers));
  }
  std::string NewJob() { return house.Submit(house.GoodSpec()); }

  RpcHouse house;
};

v1::SetQuotaRequest NewQuota(const std::string& owner) {
  v1::SetQuotaRequest request;
  v1::Quota& quota = *request.mutable_quota();
  quota.mutable_subject()->set_owner(owner);
  quota.mutable_allowance()->set_seconds(100);
  quota.mutable_period()->set_seconds(86'400);
  request.set_add(true);
  return request;
}

void ForgetCreated(v1::SubmitReply* reply) {
  reply->clear_created();
  reply->clear_warnings();
}

const std::map<std::string, std::function<void(Repeats&)>>& Changes() {
  static const auto* const kChanges = new std::map<std::string, std::function<void(Repeats&)>>{
      {"Submit",
       [](Repeats& r) {
         v1::SubmitRequest request;
         *request.mutable_spec() = r.house.GoodSpec();
         request.set_request_id("r1");
         r.Twice(&Stub::Submit, request, {ForgetCreated});
       }},
      {"SubmitBatch",
       [](Repeats& r) {
         v1::SubmitBatchRequest request;
         for (const char* id : {"r1", "r2"}) {
           *request.add_submits()->mutable_spec() = r.house.GoodSpec(id);
           request.mutable_submits()->rbegin()->set_request_id(id);
         }
         r.Twice(&Stub::SubmitBatch, request, {[](v1::SubmitBatchReply* reply) {
           for (v1::SubmitOutcome& outcome : *reply->mutable_outcomes()) {
             EXPECT_EQ(outcome.status(), "OK");
             outcome.clear_created();
             outcome.clear_warnings();
           }
         }});
       }},
      {"Upload",
       [](Repeats& r) {
         v1::UploadRequest request;
         request.set_content("a,b\n1,2\n");
         request.set_sha256(Sha256Hex(request.content()));
         request.set_name("more.csv");
         request.set_size_bytes(static_cast<int64_t>(request.content().size()));
         r.Twice(&Stub::Upload, request);
       }},
      {"UploadParts",
       [](Repeats& r) {
         v1::UploadRequest request;
         request.set_content("a,b\n3,4\n");
         request.set_sha256(Sha256Hex(request.content()));
         request.set_name("more.csv");
         request.set_size_bytes(static_cast<int64_t>(request.content().size()));
         for (int i = 0; i < 2; ++i) {
           grpc::ClientContext context;
           v1::UploadReply reply;
           const auto writer = r.house.client().UploadParts(&context, &reply);
           writer->Write(request);
           writer->WritesDone();
           EXPECT_TRUE(writer->Finish().ok());
           EXPECT_TRUE(reply.present());
         }
       }},
      {"FinishJob", [](Repeats& r) { r.TwiceOn(r.NewJob(), &Stub::FinishJob); }},
      {"PauseJob", [](Repeats& r) { r.TwiceOn(r.NewJob(), &Stub::PauseJob); }},
      {"ResumeJob",
       [](Repeats& r) {
         const std::string id = r.NewJob();
         r.TwiceOn(id, &Stub::PauseJob);
         r.TwiceOn(id, &Stub::ResumeJob);
       }},
      {"UpdateJob",
       [](Repeats& r) {
         v1::UpdateJobRequest request;
         request.set_id(r.NewJob());
         request.mutable_budget()->set_seconds(900);
         request.set_priority(2);
         (*request.mutable_set_labels())["team"] = "a";
         request.add_remove_labels("none");
         r.Twice(&Stub::UpdateJob, request);
       }},
      {"CancelJob", [](Repeats& r) { r.TwiceOn(r.NewJob(), &Stub::CancelJob); }},
      {"Predict",
       [](Repeats& r) {
         Job done = FullJob();
         done.request_id.clear();
         ASSERT_EQ(r.house.store().Commit(Change({done})), absl::OkStatus());
         for (const Member& member : done.prediction->members) {
           const std::filesystem::path oof =
               absl::StrCat(r.house.folder(), "/", JobDir(done.id), "/", member.oof);
           std::filesystem::create_directories(oof.parent_path());
         }
         v1::PredictRequest request;
         request.set_id(done.id);
         request.set_data(r.house.folder() + "/test.csv");
         request.set_request_id("r1");
         r.Twice(&Stub::Predict, request, {ForgetCreated});
       }},
      {"ProposeTrial",
       [](Repeats& r) {
         v1::JobSpec spec = r.house.GoodSpec();
         spec.mutable_search()->set_method("ask");
         spec.mutable_search()->set_trials(3);
         (*spec.mutable_search()->mutable_space())["train.learning_rate"] = "log(1e-4, 1e-1)";
         v1::ProposeTrialRequest request;
         request.set_id(r.house.Submit(spec));
         (*request.mutable_settings())["train.learning_rate"] = "0.01";
         request.set_request_id("p1");
         r.Twice(&Stub::ProposeTrial, request,
                 {[](v1::ProposeTrialReply* reply) { reply->clear_created(); }});
       }},
      {"DeleteJob",
       [](Repeats& r) {
         const std::string id = r.NewJob();
         r.TwiceOn(id, &Stub::CancelJob);
         v1::DeleteJobRequest request;
         request.set_id(id);
         r.Twice(&Stub::DeleteJob, request,
                 {[](v1::DeleteJobReply* reply) { reply->clear_bytes(); }});
       }},
      {"PinJob",
       [](Repeats& r) {
         v1::PinJobRequest request;
         request.set_id(r.NewJob());
         request.set_pinned(true);
         r.Twice(&Stub::PinJob, request);
       }},
      {"CollectGarbage",
       [](Repeats& r) { r.Twice(&Stub::CollectGarbage, v1::CollectGarbageRequest()); }},
      {"UpdateWorker",
       [](Repeats& r) {
         ScriptedWorker worker(r.house, "w1", 1);
         v1::UpdateWorkerRequest request;
         request.set_id("w1");
         request.set_mode(v1::WORKER_MODE_CORDONED);
         r.Twice(&Stub::UpdateWorker, request,
                 {[](v1::WorkerInfo* info) { info->clear_last_seen(); }});
       }},
      {"SetQuota", [](Repeats& r) { r.Twice(&Stub::SetQuota, NewQuota("ann")); }},
      {"RemoveQuota",
       [](Repeats& r) {
         r.Twice(&Stub::SetQuota, NewQuota("ann"));
         v1::RemoveQuotaRequest request;
         request.mutable_subject()->set_owner("ann");
         v1::RemoveQuotaReply reply;
         EXPECT_TRUE(r.Call(&Stub::RemoveQuota, request, &reply).ok());
         const std::string before = r.Everything();
         // As for any name without a quota, since a misspelt one looks the same.
         EXPECT_EQ(r.Call(&Stub::RemoveQuota, request, &reply).error_code(),
                   grpc::StatusCode::NOT_FOUND);
         EXPECT_EQ(r.Everything(), before);
       }},
  };
  return *kChanges;
}

TEST(RepeatTest, EveryCallIsHereOrReads) {
  const google::protobuf::ServiceDescriptor* const service =
      v1::SubmitRequest::descriptor()->file()->service(0);
  for (int m = 0; m < service->method_count(); ++m) {
    const std::string& name = service->method(m)->name();
    EXPECT_EQ(Reads().count(name) + Changes().count(name), 1u) << name;
  }
}

class RepeatedCallTest : public testing::TestWithParam<std::string> {};

TEST_P(RepeatedCallTest, AnswersAsBeforeAndChangesNothing) {
  Repeats repeats;
  Changes().at(GetParam())(repeats);
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const auto& [name, call] : Changes()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Calls, RepeatedCallTest, testing::ValuesIn(Names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace traind
