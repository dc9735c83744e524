#include "server/rpc/training_service.h"

#include <absl/strings/str_cat.h>
#include <absl/synchronization/notification.h>
#include <absl/time/clock.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "common/base/clock.h"
#include "common/base/durable_file.h"
#include "proto/rpc_status.pb.h"
#include "tests/server/rpc/rpc_house.h"

namespace traind {
namespace {

using grpc::StatusCode;
using testing::HasSubstr;

grpc::Status Cancel(RpcHouse& house, const std::string& id, v1::Job* job) {
  grpc::ClientContext context;
  v1::CancelJobRequest request;
  request.set_id(id);
  return house.client().CancelJob(&context, request, job);
}

grpc::Status Finish(RpcHouse& house, const std::string& id, v1::Job* job) {
  grpc::ClientContext context;
  v1::FinishJobRequest request;
  request.set_id(id);
  return house.client().FinishJob(&context, request, job);
}

grpc::Status GetError(RpcHouse& house, const std::string& id) {
  grpc::ClientContext context;
  v1::GetJobRequest request;
  request.set_id(id);
  v1::Job job;
  return house.client().GetJob(&context, request, &job);
}

TEST(TrainingServiceTest, JobsOfOneNameAreListedWithTheirTimes) {
  RpcHouse house;
  v1::SubmitReply first, second;
  ASSERT_TRUE(house.Submit(house.GoodSpec(), "r1", &first).ok());
  ASSERT_TRUE(house.Submit(house.GoodSpec(), "r2", &second).ok());
  const grpc::Status status = GetError(house, "digits");
  EXPECT_EQ(status.error_code(), StatusCode::FAILED_PRECONDITION);
  for (const v1::Job& job : {first.job(), second.job()}) {
    EXPECT_THAT(status.error_message(),
                HasSubstr(absl::StrCat("\n  ", job.id(), "  QUEUED, accepted 20")));
  }
}

TEST(TrainingServiceTest, ASubmittedJobIsThereAtOnce) {
  RpcHouse house;
  v1::SubmitReply reply;
  v1::JobSpec spec = house.GoodSpec();
  spec.mutable_labels()->insert({"team", "a"});
  const grpc::Status status = house.Submit(spec, "r1", &reply);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(reply.created());
  EXPECT_EQ(reply.job().state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(reply.job().name(), "digits");
  EXPECT_EQ(reply.job().folds_size(), 2);
  EXPECT_GT(reply.job().remaining_s(), 500);
  EXPECT_LE(reply.job().remaining_s(), 600);
  EXPECT_EQ(reply.job().results_dir(), absl::StrCat(house.folder(), "/jobs/", reply.job().id()));
  EXPECT_EQ(reply.job().deadline().seconds() - reply.job().accepted_at().seconds(), 600);
  EXPECT_EQ(house.Get(reply.job().id()).id(), reply.job().id());
  EXPECT_EQ(house.Get("digits").id(), reply.job().id());  // the only one of that name
  // And in the store: an answer is never ahead of it.
  EXPECT_TRUE(house.store().GetJob(reply.job().id()).ok());
}

TEST(TrainingServiceTest, AWrongSpecIsRefusedWithEveryPlace) {
  RpcHouse house;
  v1::JobSpec spec = house.GoodSpec();
  spec.mutable_task()->set_type("guess");
  spec.mutable_data()->set_folds(1000);
  v1::SubmitReply reply;
  const grpc::Status status = house.Submit(spec, "", &reply);
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("task.type"));
  EXPECT_THAT(status.error_message(), HasSubstr("\ndata.folds"));
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_EQ(details.code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(details.message(), status.error_message());
  std::vector<std::string> fields;
  for (const auto& detail : details.details()) {
    google::rpc::ErrorInfo info;
    ASSERT_TRUE(detail.UnpackTo(&info));
    EXPECT_EQ(info.reason(), "INVALID_FIELD");
    fields.push_back(info.metadata().at("field"));
  }
  EXPECT_THAT(fields, testing::IsSupersetOf({"task.type", "data.folds"}));
  EXPECT_EQ(house.Submit(house.GoodSpec(), std::string(129, 'r'), &reply).error_code(),
            StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(house.loop().views().Active().empty());
}

TEST(TrainingServiceTest, AnErrorWithManyPlacesStillReachesTheClient) {
  RpcHouse house;
  v1::JobSpec spec = house.GoodSpec();
  for (int i = 0; i < 40; ++i) {
    (*spec.mutable_labels())[absl::StrCat("label/", i)] = std::string(100, '/');
  }
  v1::SubmitReply reply;
  const grpc::Status status = house.Submit(spec, "", &reply);
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT) << status.error_message();
}

TEST(TrainingServiceTest, OneRequestIdIsOneJobAlsoWhenManyCallAtOnce) {
  RpcHouse house;
  std::vector<std::thread> threads;
  std::set<std::string> ids;
  int created = 0;
  absl::Mutex mutex;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&] {
      v1::SubmitReply reply;
      const grpc::Status status = house.Submit(house.GoodSpec(), "same", &reply);
      EXPECT_TRUE(status.ok()) << status.error_message();
      absl::MutexLock lock(&mutex);
      ids.insert(reply.job().id());
      created += reply.created();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ids.size(), 1u);
  EXPECT_EQ(created, 1);
}

TEST(TrainingServiceTest, ARequestIdStaysOneJobWhileThatJobEnds) {
  RpcHouse house;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&house, t] {
      for (int i = 0; i < 25; ++i) {
        // Two threads share each request id; one of them ends the Job.
        const std::string request_id = absl::StrCat("r", t / 2, "-", i);
        v1::SubmitReply reply;
        const grpc::Status status = house.Submit(house.GoodSpec(), request_id, &reply);
        ASSERT_TRUE(status.ok()) << status.error_message();
        const std::string id = reply.job().id();
        v1::Job job;
        if (t % 2 == 0) Cancel(house, id, &job).ok();
        ASSERT_TRUE(house.Submit(house.GoodSpec(), request_id, &reply).ok());
        ASSERT_EQ(reply.job().id(), id);
        ASSERT_FALSE(reply.created());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(TrainingServiceTest, ARepeatedSubmitIsAnsweredWithItsJobWhateverBecameOfItsFiles) {
  RpcHouse house;
  const v1::JobSpec spec = house.GoodSpec();
  const std::string id = house.Submit(spec, "r1");
  ASSERT_EQ(rename((house.folder() + "/train.csv").c_str(), (house.folder() + "/moved").c_str()),
            0);
  v1::SubmitReply reply;
  const grpc::Status again = house.Submit(spec, "r1", &reply);
  ASSERT_TRUE(again.ok()) << again.error_message();
  EXPECT_EQ(reply.job().id(), id);
  EXPECT_FALSE(reply.created());
  EXPECT_FALSE(house.Submit(spec, "r2", &reply).ok());
}

TEST(TrainingServiceTest, ARequestIdWithAnotherSpecIsAConflictThatNamesTheFields) {
  RpcHouse house;
  const std::string id = house.Submit(house.GoodSpec(), "r1");
  v1::JobSpec other = house.GoodSpec();
  other.mutable_train()->set_epochs(3);
  other.mutable_data()->set_seed(9);
  for (const bool terminal : {false, true}) {
    v1::Job job;
    if (terminal) {
      ASSERT_TRUE(Cancel(house, id, &job).ok());
    }
    v1::SubmitReply reply;
    const grpc::Status status = house.Submit(other, "r1", &reply);
    EXPECT_EQ(status.error_code(), StatusCode::ALREADY_EXISTS);
    EXPECT_THAT(status.error_message(), HasSubstr(id));
    EXPECT_THAT(status.error_message(), HasSubstr("data.seed, train.epochs"));
    // The same spec is the same Job, also when that is over.
    const grpc::Status again = house.Submit(house.GoodSpec(), "r1", &reply);
    ASSERT_TRUE(again.ok()) << again.error_message();
    EXPECT_EQ(reply.job().id(), id);
    EXPECT_FALSE(reply.created());
    EXPECT_EQ(reply.job().state(), terminal ? v1::JOB_STATE_CANCELLED : v1::JOB_STATE_QUEUED);
  }
}

TEST(TrainingServiceTest, CancelIsForEver) {
  RpcHouse house;
  const std::string id = house.Submit(house.GoodSpec());
  v1::Job job;
  ASSERT_TRUE(Cancel(house, id, &job).ok());
  EXPECT_EQ(job.state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(job.end_reason(), v1::JOB_END_REASON_CANCELLED_BY_USER);
  EXPECT_TRUE(job.has_finished_at());
  EXPECT_FALSE(job.has_remaining_s());
  EXPECT_TRUE(Cancel(house, id, &job).ok());
  EXPECT_EQ(Finish(house, id, &job).error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(house.Get(id).state(), v1::JOB_STATE_CANCELLED);
}

TEST(TrainingServiceTest, WhatNobodyHasIsNotFound) {
  RpcHouse house;
  v1::Job job;
  EXPECT_EQ(GetError(house, "nobody").error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(GetError(house, "").error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Cancel(house, "nobody", &job).error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(Finish(house, "nobody", &job).error_code(), StatusCode::NOT_FOUND);
}

TEST(TrainingServiceTest, ANameOfSeveralJobsIsAskedBack) {
  RpcHouse house;
  const std::string a = house.Submit(house.GoodSpec("twin")),
                    b = house.Submit(house.GoodSpec("twin"));
  const grpc::Status status = GetError(house, "twin");
  EXPECT_EQ(status.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr(a));
  EXPECT_THAT(status.error_message(), HasSubstr(b));
}

TEST(TrainingServiceTest, ListGoesByPagesAndFilters) {
  RpcHouse house;
  for (int i = 0; i < 5; ++i) {
    v1::JobSpec spec = house.GoodSpec(absl::StrCat("j", i));
    spec.mutable_labels()->insert({"odd", i % 2 ? "yes" : "no"});
    house.Submit(spec);
  }
  v1::Job job;
  ASSERT_TRUE(Cancel(house, "j4", &job).ok());
  const auto list = [&](v1::ListJobsRequest request) {
    std::string names;
    do {
      grpc::ClientContext context;
      v1::ListJobsReply reply;
      const grpc::Status status = house.client().ListJobs(&context, request, &reply);
      EXPECT_TRUE(status.ok()) << status.error_message();
      for (const v1::Job& listed : reply.jobs()) absl::StrAppend(&names, listed.name(), " ");
      request.set_page_token(reply.next_page_token());
    } while (!request.page_token().empty());
    return names;
  };
  v1::ListJobsRequest request;
  request.set_page_size(2);
  EXPECT_EQ(list(request), "j4 j3 j2 j1 j0 ");
  request.add_states(v1::JOB_STATE_QUEUED);
  EXPECT_EQ(list(request), "j3 j2 j1 j0 ");
  request.mutable_labels()->insert({"odd", "yes"});
  EXPECT_EQ(list(request), "j3 j1 ");
  request.set_page_size(1001);
  grpc::ClientContext context;
  v1::ListJobsReply reply;
  EXPECT_EQ(house.client().ListJobs(&context, request, &reply).error_code(),
            StatusCode::INVALID_ARGUMENT);
  grpc::ClientContext again;
  request.set_page_size(10);
  request.set_page_token("x");
  EXPECT_EQ(house.client().ListJobs(&again, request, &reply).error_code(),
            StatusCode::INVALID_ARGUMENT);
}

TEST(TrainingServiceTest, WatchTellsEachChangeAndEndsWithTheTerminalJob) {
  RpcHouse house;
  const std::string id = house.Submit(house.GoodSpec());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  v1::WatchJobRequest request;
  request.set_id(id);
  const auto stream = house.client().WatchJob(&context, request);
  v1::Job job;
  ASSERT_TRUE(stream->Read(&job));
  EXPECT_EQ(job.state(), v1::JOB_STATE_QUEUED);
  v1::Job cancelled;
  ASSERT_TRUE(Cancel(house, id, &cancelled).ok());
  while (stream->Read(&job)) {
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(job.state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(job.version(), cancelled.version());

  // One that is over is told once, whatever version the caller has.
  grpc::ClientContext late;
  request.set_since_version(0);
  const auto second = house.client().WatchJob(&late, request);
  ASSERT_TRUE(second->Read(&job));
  EXPECT_EQ(job.state(), v1::JOB_STATE_CANCELLED);
  EXPECT_FALSE(second->Read(&job));
  EXPECT_TRUE(second->Finish().ok());
}

TEST(TrainingServiceTest, WatchSinceAVersionWaitsForTheNext) {
  RpcHouse house;
  const std::string id = house.Submit(house.GoodSpec());
  const int64_t version = house.Get(id).version();
  grpc::ClientContext context;
  v1::WatchJobRequest request;
  request.set_id(id);
  request.set_since_version(version);
  const auto stream = house.client().WatchJob(&context, request);
  v1::Job cancelled, job;
  ASSERT_TRUE(Cancel(house, id, &cancelled).ok());
  ASSERT_TRUE(stream->Read(&job));
  EXPECT_GT(job.version(), version);
}

TEST(TrainingServiceTest, TooManyWatchersAreTurnedAway) {
  RpcHouse house;
  const std::string id = house.Submit(house.GoodSpec());
  v1::WatchJobRequest request;
  request.set_id(id);
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::Job>>> streams;
  // One connection has at most 64 of the 256 streams.
  std::vector<std::unique_ptr<v1::TrainingService::Stub>> clients;
  v1::Job job;
  for (const std::string reason : {"64 streams of this connection", "64 streams of this connection",
                                   "64 streams of this connection", "256 streams are open"}) {
    clients.push_back(v1::TrainingService::NewStub(house.Connect()));
    for (int i = 0; i < 64; ++i) {
      contexts.push_back(std::make_unique<grpc::ClientContext>());
      streams.push_back(clients.back()->WatchJob(contexts.back().get(), request));
      ASSERT_TRUE(streams.back()->Read(&job)) << i;
    }
    grpc::ClientContext context;
    const auto one_more = clients.back()->WatchJob(&context, request);
    EXPECT_FALSE(one_more->Read(&job));
    const grpc::Status refused = one_more->Finish();
    EXPECT_EQ(refused.error_code(), StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_THAT(refused.error_message(), HasSubstr(reason));
  }
  // Others are served meanwhile, and a place that is given up is free again.
  EXPECT_EQ(house.Get(id).id(), id);
  contexts[0]->TryCancel();
  EXPECT_EQ(streams[0]->Finish().error_code(), StatusCode::CANCELLED);
  EXPECT_TRUE(Eventually([&] {
    grpc::ClientContext next;
    const auto stream = house.client().WatchJob(&next, request);
    const bool served = stream->Read(&job);
    next.TryCancel();
    stream->Finish().ok();
    return served;
  }));
  for (auto& open : contexts) open->TryCancel();
  for (size_t i = 1; i < streams.size(); ++i) streams[i]->Finish().ok();
}

TEST(TrainingServiceTest, ALargeFileHoldsUpNobodyButItsOwnSubmit) {
  RpcHouse house;
  const std::string id = house.Submit(house.GoodSpec());
  const std::string weights = house.folder() + "/w.safetensors";
  ASSERT_EQ(WriteFileDurably(weights, ""), absl::OkStatus());
  ASSERT_EQ(truncate(weights.c_str(), off_t{1} << 29), 0);
  v1::JobSpec slow = house.GoodSpec("slow");
  slow.mutable_model()->mutable_pretrained()->set_file(weights);
  // As many as gRPC has threads for calls that hold none.
  std::vector<absl::Duration> took(4);
  std::atomic<int> left{static_cast<int>(took.size())};
  std::vector<std::thread> threads;
  for (absl::Duration& submit : took) {
    threads.emplace_back([&] {
      const absl::Duration begin = SystemClock().MonotonicNow();
      v1::SubmitReply reply;
      const grpc::Status status = house.Submit(slow, "", &reply);
      EXPECT_TRUE(status.ok()) << status.error_message();
      submit = SystemClock().MonotonicNow() - begin;
      --left;
    });
  }
  absl::Duration longest;
  while (left > 0) {
    const absl::Duration begin = SystemClock().MonotonicNow();
    grpc::ClientContext context;
    v1::UpdateJobRequest request;
    request.set_id(id);
    (*request.mutable_set_labels())["at"] = "now";
    v1::Job job;
    ASSERT_TRUE(house.client().UpdateJob(&context, request, &job).ok());
    longest = std::max(longest, SystemClock().MonotonicNow() - begin);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LT(longest, *std::min_element(took.begin(), took.end()) / 2);
}

TEST(TrainingServiceTest, ModelsOfAFewJobsAreHeldReadyAtATime) {
  RpcHouse house;
  for (int i = 0; i < 32; ++i) {
    Job server;
    server.id = absl::StrCat("serve-", i);
    server.accepted_at = house.loop().Now();
    server.spec.models_from = absl::StrCat("source-", i);
    server.tasks.emplace_back().kind = TaskKind::kServe;
    absl::Notification stored;
    house.loop().Submit(server, [&stored](const Reply& reply) {
      EXPECT_EQ(reply.status, absl::OkStatus());
      stored.Notify();
    });
    stored.WaitForNotification();
  }
  const std::string id = house.Submit(house.GoodSpec());
  grpc::ClientContext context;
  v1::PredictRowsRequest request;
  request.set_id(id);
  request.add_columns("a");
  request.add_rows()->add_values("1");
  v1::PredictRowsReply reply;
  const grpc::Status status = house.client().PredictRows(&context, request, &reply);
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("models of 32 jobs are held ready"));
}

TEST(TrainingServiceTest, PlanIsADryRun) {
  RpcHouse house;
  grpc::ClientContext context;
  v1::PlanRequest request;
  *request.mutable_spec() = house.GoodSpec();
  v1::PlanReply reply;
  const grpc::Status status = house.client().Plan(&context, request, &reply);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(reply.resolved().train().epochs(), 20);
  EXPECT_EQ(reply.plan().folds(), 2);
  EXPECT_GT(reply.estimate_p50().nanos() + reply.estimate_p50().seconds(), 0);
  EXPECT_THAT(reply.basis(), HasSubstr("guess"));
  EXPECT_GT(reply.train_bytes(), 0);
  EXPECT_TRUE(house.store().ListJobs({})->jobs.empty());
}

TEST(TrainingServiceTest, APlanForImagesCountsTheirFilesAndTheirPixels) {
  RpcHouse house;
  std::string table = "file,kind\n";
  for (int i = 0; i < 2000; ++i) absl::StrAppend(&table, "1.png,", i % 2 == 0 ? "a\n" : "b\n");
  ASSERT_TRUE(WriteFileDurably(absl::StrCat(house.folder(), "/images.csv"), table).ok());
  ASSERT_TRUE(
      WriteFileDurably(absl::StrCat(house.folder(), "/1.png"), std::string(5000, 'x')).ok());
  v1::PlanRequest request;
  v1::JobSpec& spec = *request.mutable_spec();
  spec = house.GoodSpec();
  spec.mutable_data()->clear_test();
  spec.mutable_data()->clear_id();
  spec.mutable_data()->set_train(absl::StrCat(house.folder(), "/images.csv"));
  spec.mutable_data()->set_target("kind");
  spec.clear_model();
  spec.clear_budget();
  const auto estimate = [&](int size) {
    spec.mutable_data()->mutable_image()->set_size(size);
    grpc::ClientContext context;
    v1::PlanReply reply;
    const grpc::Status status = house.client().Plan(&context, request, &reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_GT(reply.train_bytes(), 2000 * 5000);
    return static_cast<double>(reply.estimate_p50().seconds());
  };
  const double small = estimate(16), large = estimate(64);
  EXPECT_GT(small, 5);
  EXPECT_GT(large, 10 * small);
}

TEST(TrainingServiceTest, AFullDiskIsSaidAndNothingIsKeptUntilItHeals) {
  RpcHouse house;
  const std::string before = house.Submit(house.GoodSpec("before"));
  house.store().FailCommits(absl::ResourceExhaustedError("database or disk is full"));
  v1::SubmitReply reply;
  const grpc::Status status = house.Submit(house.GoodSpec(), "r1", &reply);
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  EXPECT_EQ(GetError(house, "digits").error_code(), StatusCode::NOT_FOUND);
  house.store().FailCommits(absl::OkStatus());
  ASSERT_TRUE(Eventually([&] { return house.Submit(house.GoodSpec(), "r1", &reply).ok(); }));
  EXPECT_TRUE(reply.created());
  EXPECT_EQ(house.Get(before).state(), v1::JOB_STATE_QUEUED);
}

TEST(TrainingServiceTest, ACommitOfUnknownOutcomeIsUnavailable) {
  RpcHouse house;
  house.store().FailCommits(absl::InternalError("disk I/O error"));
  v1::SubmitReply reply;
  EXPECT_EQ(house.Submit(house.GoodSpec(), "r1", &reply).error_code(), StatusCode::UNAVAILABLE);
  EXPECT_TRUE(house.loop().WaitForFatal(absl::Seconds(20)));
}

TEST(TrainingServiceTest, CallsAfterTheLoopHasStoppedAreUnavailable) {
  RpcHouse house;
  house.StopLoop();
  v1::SubmitReply reply;
  EXPECT_EQ(house.Submit(house.GoodSpec(), "", &reply).error_code(), StatusCode::UNAVAILABLE);
}

TEST(TrainingServiceTest, AMessageBeyondTheLimitIsRefused) {
  RpcHouse house;
  grpc::ClientContext context;
  v1::SubmitRequest request;
  *request.mutable_spec() = house.GoodSpec();
  request.set_spec_text(std::string(5 << 20, 'x'));
  v1::SubmitReply reply;
  EXPECT_EQ(house.client().Submit(&context, request, &reply).error_code(),
            StatusCode::RESOURCE_EXHAUSTED);
}

grpc::Status Fetch(RpcHouse& house, const std::string& id, const std::string& name,
                   std::string* bytes, std::vector<v1::FetchArtifactReply>* replies = nullptr) {
  grpc::ClientContext context;
  v1::FetchArtifactRequest request;
  request.set_id(id);
  request.set_name(name);
  const auto stream = house.client().FetchArtifact(&context, request);
  v1::FetchArtifactReply reply;
  while (stream->Read(&reply)) {
    *bytes += reply.data();
    if (replies) replies->push_back(reply);
  }
  return stream->Finish();
}

TEST(TrainingServiceTest, EventsAreReadFromAnyOneOnAndFollowed) {
  RpcHouse house;
  const std::string id = house.Submit(house.GoodSpec());
  grpc::ClientContext context;
  v1::GetEventsRequest request;
  request.set_id(id);
  request.set_follow(true);
  const auto stream = house.client().GetEvents(&context, request);
  v1::EventsReply reply;
  ASSERT_TRUE(stream->Read(&reply));
  ASSERT_GT(reply.events_size(), 0);
  EXPECT_EQ(reply.events(0).sequence(), 1);
  EXPECT_EQ(reply.events(0).kind(), "state");
  EXPECT_GT(reply.events(0).at().seconds(), 0);
  v1::Job job;
  ASSERT_TRUE(Cancel(house, id, &job).ok());
  std::string last;
  while (!reply.end()) {
    ASSERT_TRUE(stream->Read(&reply));
    for (const auto& event : reply.events()) last = event.detail();
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_THAT(last, HasSubstr("CANCELLED"));

  grpc::ClientContext again;
  request.set_follow(false);
  request.set_after_sequence(1);
  const auto rest = house.client().GetEvents(&again, request);
  ASSERT_TRUE(rest->Read(&reply));
  EXPECT_TRUE(reply.end());
  EXPECT_EQ(reply.events(0).sequence(), 2);
}

TEST(TrainingServiceTest, FetchSendsTheStandingPredictionInPartsWithItsDigest) {
  RpcHouse house;
  const std::string id = house.Submit(house.GoodSpec());
  std::string bytes;
  EXPECT_EQ(Fetch(house, id, "", &bytes).error_code(), StatusCode::NOT_FOUND);
  const std::string folder = absl::StrCat(house.folder(), "/jobs/", id);
  ASSERT_EQ(MakeDirs(absl::StrCat(folder, "/prediction-1")), absl::OkStatus());
  std::string content(2'500'000, 'p');
  content += "end";
  ASSERT_EQ(WriteFileDurably(absl::StrCat(folder, "/prediction-1/predictions.csv"), content),
            absl::OkStatus());
  ASSERT_EQ(symlink("prediction-1", absl::StrCat(folder, "/current").c_str()), 0);
  std::vector<v1::FetchArtifactReply> replies;
  ASSERT_TRUE(Fetch(house, id, "", &bytes, &replies).ok());
  EXPECT_EQ(bytes, content);
  EXPECT_EQ(replies[0].sha256(), Sha256Hex(content));
  EXPECT_EQ(replies[0].bytes(), static_cast<int64_t>(content.size()));
  for (const auto& reply : replies) EXPECT_LE(reply.data().size(), size_t{1} << 20);
}

v1::JobSpec ProgramSpec(const std::string& folder) {
  v1::JobSpec spec;
  spec.set_name("mine");
  spec.mutable_run()->add_command("true");
  spec.mutable_run()->set_folder(folder);
  spec.mutable_budget()->mutable_time()->set_seconds(600);
  return spec;
}

TEST(TrainingServiceTest, WhatAnUploadedProgramLeavesIsKeptWithItsJobAndFetched) {
  RpcHouse house;
  const std::string uploaded = absl::StrCat(house.folder(), "/uploads/00ff/project");
  ASSERT_EQ(MakeDirs(uploaded), absl::OkStatus());
  const std::string id = house.Submit(ProgramSpec(uploaded));
  const std::string results = absl::StrCat(house.folder(), "/jobs/", id, "/results");
  EXPECT_EQ(house.Get(id).program_results(), results);
  std::string bytes;
  const grpc::Status nothing = Fetch(house, id, "results.pack", &bytes);
  EXPECT_EQ(nothing.error_code(), StatusCode::NOT_FOUND);
  EXPECT_THAT(nothing.error_message(), HasSubstr("has left no files (yet)"));
  ASSERT_EQ(MakeDirs(results), absl::OkStatus());
  ASSERT_EQ(WriteFileDurably(results + "/answer.csv", "42"), absl::OkStatus());
  std::vector<v1::FetchArtifactReply> replies;
  ASSERT_TRUE(Fetch(house, id, "results.pack", &bytes, &replies).ok());
  EXPECT_EQ(bytes, "traind-pack 1\n2 answer.csv\n\n42");
  EXPECT_EQ(replies[0].sha256(), Sha256Hex(bytes));
}

TEST(TrainingServiceTest, FilesInAFolderOfTheUsersAreNamedInsteadOfFetched) {
  RpcHouse house;
  const std::string own = absl::StrCat(house.folder(), "/own");
  ASSERT_EQ(MakeDirs(own), absl::OkStatus());
  ASSERT_EQ(WriteFileDurably(own + "/secret.csv", "42"), absl::OkStatus());
  const std::string program = house.Submit(ProgramSpec(own));
  EXPECT_EQ(house.Get(program).program_results(), own);
  std::string bytes;
  const grpc::Status refused = Fetch(house, program, "results.pack", &bytes);
  EXPECT_EQ(refused.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(), HasSubstr(absl::StrCat("in the folder ", own)));
  const std::string network = house.Submit(house.GoodSpec());
  EXPECT_EQ(Fetch(house, network, "results.pack", &bytes).error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(bytes, "");
}

TEST(TrainingServiceTest, FetchReadsNothingElse) {
  RpcHouse house;
  const std::string id = house.Submit(house.GoodSpec());
  for (const std::string name :
       {"../traind.db", "../../train.csv", "/etc/passwd", "..", ".", "current/predictions.csv",
        "attempts", "publish.lock", "predictions.csv/../../publish.lock", "x\n"}) {
    std::string bytes;
    const grpc::Status status = Fetch(house, id, name, &bytes);
    EXPECT_FALSE(status.ok()) << name;
    EXPECT_EQ(bytes, "") << name;
  }
  for (const std::string job : {"..", "../..", "nobody", ""}) {
    std::string bytes;
    EXPECT_FALSE(Fetch(house, job, "predictions.csv", &bytes).ok()) << job;
  }
  std::string nul = "predictions.csv";
  nul += '\0';
  std::string bytes;
  EXPECT_FALSE(Fetch(house, id, nul, &bytes).ok());
}

TEST(TrainingServiceTest, MetricsOfAJobWithoutAnyEndAtOnce) {
  RpcHouse house;
  grpc::ClientContext context;
  v1::GetMetricsRequest request;
  request.set_id(house.Submit(house.GoodSpec()));
  const auto stream = house.client().GetMetrics(&context, request);
  v1::MetricsReply reply;
  ASSERT_TRUE(stream->Read(&reply));
  EXPECT_TRUE(reply.end());
  EXPECT_EQ(reply.points_size(), 0);
  EXPECT_FALSE(stream->Read(&reply));
  EXPECT_TRUE(stream->Finish().ok());
}

}  // namespace
}  // namespace traind
