#include "client/cli.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <absl/synchronization/notification.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "common/durable_file.h"
#include "tests/client/fake_training_service.h"
#include "tests/client/sample_jobs.h"

namespace traind {
namespace {

constexpr char kSpec[] = R"(api: v1
name: digits
task: {type: classification}
data: {train: train.csv, test: test.csv, target: y}
budget: {time: 60s}
)";

struct Ran {
  int code = -1;
  std::string out, err;
};

std::string Text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

bool Has(const std::string& text, absl::string_view part) { return absl::StrContains(text, part); }

class CliTest : public testing::Test {
 protected:
  CliTest() : server_(service_) {
    folder_ = std::filesystem::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    Write("job.yaml", kSpec);
    service_.on_get = [this](const v1::GetJobRequest& request, v1::Job* job) {
      return Get(request, job);
    };
    service_.on_submit = [this](const v1::SubmitRequest& request, v1::SubmitReply* reply) {
      return Submit(request, reply);
    };
    service_.artifact_sha256 = Sha256Hex(service_.artifact);
  }

  grpc::Status Get(const v1::GetJobRequest& request, v1::Job* job) {
    if (request.id() != "digits" && request.id() != RunningJob().id()) {
      return {grpc::StatusCode::NOT_FOUND, "no Job " + request.id()};
    }
    *job = ended_ ? EndedJob() : RunningJob();
    return grpc::Status::OK;
  }

  grpc::Status Submit(const v1::SubmitRequest& request, v1::SubmitReply* reply) {
    absl::MutexLock lock(&mutex_);
    submitted_.push_back(request);
    *reply->mutable_job() = RunningJob();
    reply->set_created(true);
    return grpc::Status::OK;
  }

  std::vector<v1::SubmitRequest> submitted() {
    absl::MutexLock lock(&mutex_);
    return submitted_;
  }

  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }
  std::string Path(const std::string& name) { return (folder_ / name).string(); }

  Ran Run(std::vector<std::string> args, const std::string& in = "") {
    std::istringstream input(in);
    std::ostringstream out, err;
    Environment environment{input, out, err, SystemClock()};
    environment.default_server = server_.address();
    environment.interrupted = &interrupted_;
    environment.err_is_terminal = terminal_;
    environment.hold_interrupts = [this](bool held, const std::string&) { held_ = held; };
    Ran ran;
    ran.code = RunTrainctl(args, environment);
    ran.out = out.str();
    ran.err = err.str();
    return ran;
  }

  // Sends the running Job, then the ended one.
  void WatchToTheEnd() {
    service_.on_watch = [](grpc::ServerContext*, const v1::WatchJobRequest& request,
                           const std::function<bool(const v1::Job&)>& send) {
      v1::Job job = RunningJob();
      job.set_version(18);
      if (request.since_version() < 18) send(job);
      send(EndedJob());
      return grpc::Status::OK;
    };
  }

  FakeTrainingService service_;
  FakeServer server_;
  std::filesystem::path folder_;
  std::atomic<bool> ended_{false};
  std::atomic<bool> interrupted_{false};
  std::atomic<bool> held_{false};
  bool terminal_ = false;

 private:
  absl::Mutex mutex_;
  std::vector<v1::SubmitRequest> submitted_ ABSL_GUARDED_BY(mutex_);
};

// ---- The command line -------------------------------------------------------

TEST_F(CliTest, HelpNamesTheVerbsAndTheExitCodes) {
  const Ran ran = Run({"--help"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.err, "");
  for (const char* part : {"submit", "fetch", "Exit codes", "130"}) {
    EXPECT_TRUE(Has(ran.out, part)) << part;
  }
  EXPECT_TRUE(Has(Run({"submit", "--help"}).out, "--request-id"));
}

TEST_F(CliTest, MisuseIsTwoWithAHint) {
  const Ran verb = Run({"sumbit", "-f", "x"});
  EXPECT_EQ(verb.code, 2);
  EXPECT_TRUE(Has(verb.err, "there is no verb 'sumbit'; did you mean 'submit'?")) << verb.err;
  const Ran flag = Run({"submit", "-f", Path("job.yaml"), "--budgt", "5s"});
  EXPECT_EQ(flag.code, 2);
  EXPECT_TRUE(Has(flag.err, "unknown option --budgt; did you mean '--budget'?")) << flag.err;
  for (const std::vector<std::string>& args : std::vector<std::vector<std::string>>{
           {},
           {"get"},
           {"get", "a", "b"},
           {"list", "--wrong"},
           {"list", "-o", "xml"},
           {"submit"},
           {"submit", "-f"},
           {"list", "--timeout", "5"},
           {"list", "--state", "runing"},
           {"list", "-l", "x"},
           {"list", "--color", "red"},
           {"submit", "-f", Path("job.yaml"), "--set", "novalue"},
           {"submit", "-f", Path("job.yaml"), "--request-id", std::string(129, 'a')}}) {
    EXPECT_EQ(Run(args).code, 2) << absl::StrJoin(args, " ");
  }
}

TEST_F(CliTest, OptionsOfTrainctlStandAnywhere) {
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"-o", "json", "get", "digits"},
                                             {"get", "-o", "json", "digits"},
                                             {"get", "digits", "-o", "json"},
                                             {"get", "digits", "--output=json"}}) {
    const Ran ran = Run(args);
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(nlohmann::json::parse(ran.out)["id"], "digits-7f3k2a");
  }
}

// ---- Specs ------------------------------------------------------------------

TEST_F(CliTest, AWrongSpecIsRefusedWithEveryPlace) {
  const std::string path = Write("bad.yaml",
                                 "api: v1\ntask: {type: classification}\n"
                                 "data: {train: a.csv, target: y}\n"
                                 "train:\n  lerning_rate: 1\nbudget:\n  time: 90\n");
  const Ran ran = Run({"submit", "-f", path});
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(ran.err,
            absl::StrCat(path,
                         ":5:3: error: unknown key 'lerning_rate' in train; did you mean "
                         "'learning_rate'?\n",
                         path, ":7:9: error: budget.time '90' has no unit; write 90s or 90m\n",
                         "2 errors, nothing submitted\n"));
  EXPECT_TRUE(submitted().empty());
}

TEST_F(CliTest, ASpecThatCannotBeReadIsMisuse) {
  EXPECT_EQ(Run({"submit", "-f", Path("none.yaml")}).code, 2);
  EXPECT_TRUE(Has(Run({"submit", "-f", Path("none.yaml")}).err, "No such file"));
  EXPECT_EQ(Run({"submit", "-f", folder_.string()}).code, 2);
  EXPECT_TRUE(Has(Run({"submit", "-f", folder_.string()}).err, "Is a directory"));
  const std::string large = Write("large.yaml", std::string((1 << 20) + 5, '#'));
  EXPECT_TRUE(Has(Run({"submit", "-f", large}).err, "larger than 1 MiB"));
}

TEST_F(CliTest, TheSpecGoesOutWithItsOverrides) {
  const Ran ran = Run({"submit", "-f", Path("job.yaml"), "--set", "train.epochs=3", "--set",
                       "model.mlp.hidden=[8, 4]", "--budget", "20s", "--name", "other", "-l",
                       "team=blue", "--request-id", "monday"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(Has(ran.out, "digits-7f3k2a RUNNING (new)  deadline")) << ran.out;
  ASSERT_EQ(submitted().size(), 1u);
  const v1::SubmitRequest request = submitted()[0];
  EXPECT_EQ(request.request_id(), "monday");
  EXPECT_EQ(request.spec_text(), kSpec);
  EXPECT_EQ(request.spec().data().train(), Path("train.csv"));
  EXPECT_EQ(request.spec().train().epochs(), 3);
  EXPECT_EQ(request.spec().model().mlp().hidden_size(), 2);
  EXPECT_EQ(request.spec().budget().time().seconds(), 20);
  EXPECT_EQ(request.spec().name(), "other");
  EXPECT_EQ(request.spec().labels().at("team"), "blue");
}

TEST_F(CliTest, StdinIsASpecRelativeToTheCurrentFolder) {
  ASSERT_EQ(Run({"submit", "-f", "-"}, kSpec).code, 0);
  ASSERT_EQ(submitted().size(), 1u);
  EXPECT_EQ(submitted()[0].spec().data().train(),
            (std::filesystem::current_path() / "train.csv").string());
  const Ran bad = Run({"submit", "-f", "-"}, "api: v3\n");
  EXPECT_TRUE(Has(bad.err, "stdin:1:6: error: api 'v3' is not v1")) << bad.err;
}

TEST_F(CliTest, EachCallHasARequestIdOfItsOwn) {
  ASSERT_EQ(Run({"submit", "-f", Path("job.yaml")}).code, 0);
  ASSERT_EQ(Run({"submit", "-f", Path("job.yaml")}).code, 0);
  ASSERT_EQ(submitted().size(), 2u);
  EXPECT_NE(submitted()[0].request_id(), submitted()[1].request_id());
  EXPECT_FALSE(submitted()[0].request_id().empty());
}

TEST_F(CliTest, TheRefusalOfTheDaemonIsPutAtThePlaceOfItsField) {
  service_.on_submit = [](const v1::SubmitRequest&, v1::SubmitReply*) {
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT,
                        "data.train: no such file\nbudget.time: too short\x1b[31m\nwhatever");
  };
  const Ran ran = Run({"submit", "-f", Path("job.yaml"), "--budget", "5s"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.err, absl::StrCat(Path("job.yaml"), ":4:8: error: data.train: no such file\n",
                                  "--budget: error: budget.time: too short\\x1b[31m\n",
                                  "trainctl: error: whatever\n", "3 errors, nothing submitted\n"));
}

// ---- Exit codes -------------------------------------------------------------

TEST_F(CliTest, EachKindOfErrorHasItsExitCode) {
  const std::vector<std::pair<grpc::StatusCode, int>> codes = {
      {grpc::StatusCode::ALREADY_EXISTS, 6},   {grpc::StatusCode::NOT_FOUND, 5},
      {grpc::StatusCode::UNAUTHENTICATED, 4},  {grpc::StatusCode::PERMISSION_DENIED, 4},
      {grpc::StatusCode::INVALID_ARGUMENT, 2}, {grpc::StatusCode::FAILED_PRECONDITION, 1},
      {grpc::StatusCode::INTERNAL, 1},         {grpc::StatusCode::RESOURCE_EXHAUSTED, 1}};
  for (const auto& [code, exit_code] : codes) {
    service_.on_submit = [code = code](const v1::SubmitRequest&, v1::SubmitReply*) {
      return grpc::Status(code, "because");
    };
    const Ran ran = Run({"submit", "-f", Path("job.yaml")});
    EXPECT_EQ(ran.code, exit_code) << code;
    EXPECT_TRUE(Has(ran.err, "because"));
  }
  EXPECT_EQ(Run({"get", "nobody"}).code, 5);
}

TEST_F(CliTest, ADaemonThatIsNotThereIsSeven) {
  server_.Stop();
  const Ran ran = Run({"list", "--timeout", "300ms"});
  EXPECT_EQ(ran.code, 7);
  EXPECT_TRUE(Has(ran.err, "cannot reach traind at " + server_.address())) << ran.err;
  EXPECT_TRUE(Has(ran.err, "traind --standalone")) << ran.err;
}

TEST_F(CliTest, AnUnavailableDaemonIsAskedAgainWithTheSameRequestId) {
  std::atomic<int> calls{0};
  service_.on_submit = [&](const v1::SubmitRequest& request, v1::SubmitReply* reply) {
    Submit(request, reply).ok();
    return ++calls < 3 ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "starting") : grpc::Status::OK;
  };
  EXPECT_EQ(Run({"submit", "-f", Path("job.yaml")}).code, 0);
  std::set<std::string> ids;
  for (const auto& request : submitted()) ids.insert(request.request_id());
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(ids.size(), 1u);
}

// ---- Following --------------------------------------------------------------

TEST_F(CliTest, WaitPrintsOneDocumentAndCopiesThePredictions) {
  WatchToTheEnd();
  const Ran ran =
      Run({"submit", "-f", Path("job.yaml"), "--set", "output=out/p.csv", "--wait", "-o", "json"});
  // The folder is not there: the copy fails, and that is said.
  EXPECT_EQ(ran.code, 5) << ran.err;
  EXPECT_EQ(nlohmann::json::parse(ran.out)["state"], "SUCCEEDED");
  std::filesystem::create_directories(folder_ / "out");
  const Ran again =
      Run({"submit", "-f", Path("job.yaml"), "--set", "output=out/p.csv", "--wait", "-o", "json"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(nlohmann::json::parse(again.out)["state"], "SUCCEEDED");
  EXPECT_EQ(Text(Path("out/p.csv")), service_.artifact);
}

TEST_F(CliTest, FollowSaysEachDecisionOnceAndSumsUp) {
  WatchToTheEnd();
  const Ran ran = Run({"submit", "-f", Path("job.yaml"), "--follow"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  const std::vector<std::string> parts = absl::StrSplit(ran.err, "B2: 5 folds -> 4 folds");
  EXPECT_EQ(parts.size(), 2u) << ran.err;
  EXPECT_TRUE(Has(ran.err, "fold 3 12/40 ep")) << ran.err;
  EXPECT_TRUE(Has(ran.out, "digits-7f3k2a SUCCEEDED  quality DEGRADED")) << ran.out;
}

TEST_F(CliTest, ATerminalGetsBarsThatAreRedrawn) {
  WatchToTheEnd();
  terminal_ = true;
  const Ran ran = Run({"watch", "digits"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(Has(ran.err, "fold 3  31%|")) << ran.err;
  EXPECT_TRUE(Has(ran.err, "\x1b[2A\r\x1b[J")) << ran.err;
  EXPECT_FALSE(Has(ran.out, "\x1b")) << ran.out;
  terminal_ = false;
  EXPECT_EQ(Run({"watch", "digits", "--no-progress"}).err, "");
}

TEST_F(CliTest, TheEndOfTheJobIsTheExitCode) {
  for (const auto& [state, exit_code] : std::vector<std::pair<v1::JobState, int>>{
           {v1::JOB_STATE_FAILED, 1}, {v1::JOB_STATE_CANCELLED, 9}, {v1::JOB_STATE_SUCCEEDED, 0}}) {
    service_.on_watch = [state = state](grpc::ServerContext*, const v1::WatchJobRequest&,
                                        const std::function<bool(const v1::Job&)>& send) {
      v1::Job job = EndedJob();
      job.set_state(state);
      send(job);
      return grpc::Status::OK;
    };
    EXPECT_EQ(Run({"watch", "digits"}).code, exit_code);
  }
}

TEST_F(CliTest, WaitingEndsAtTheTimeout) {
  service_.on_watch = [](grpc::ServerContext* context, const v1::WatchJobRequest&,
                         const std::function<bool(const v1::Job&)>&) {
    while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(5));
    return grpc::Status::CANCELLED;
  };
  const Ran ran = Run({"watch", "digits", "--timeout", "300ms"});
  EXPECT_EQ(ran.code, 3);
  EXPECT_TRUE(Has(ran.err, "still RUNNING")) << ran.err;
}

TEST_F(CliTest, CtrlCDetaches) {
  service_.on_watch = [this](grpc::ServerContext* context, const v1::WatchJobRequest&,
                             const std::function<bool(const v1::Job&)>&) {
    EXPECT_TRUE(held_);
    interrupted_ = true;
    while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(5));
    return grpc::Status::CANCELLED;
  };
  const Ran ran = Run({"submit", "-f", Path("job.yaml"), "--follow"});
  EXPECT_EQ(ran.code, 130);
  EXPECT_TRUE(
      Has(ran.err, absl::StrCat("trainctl --server ", server_.address(), " watch digits-7f3k2a")))
      << ran.err;
  EXPECT_FALSE(held_);
}

TEST_F(CliTest, ARestartOfTheDaemonIsSurvivedAndSaidOnce) {
  absl::Notification watched;
  std::atomic<int> watches{0};
  service_.on_watch = [&](grpc::ServerContext* context, const v1::WatchJobRequest& request,
                          const std::function<bool(const v1::Job&)>& send) {
    if (++watches == 1) {
      v1::Job job = RunningJob();
      job.set_version(18);
      send(job);
      watched.Notify();
      while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(5));
      return grpc::Status::CANCELLED;
    }
    EXPECT_EQ(request.since_version(), 18);
    send(EndedJob());
    return grpc::Status::OK;
  };
  Ran ran;
  std::thread follower([&] { ran = Run({"watch", "digits"}); });
  ASSERT_TRUE(watched.WaitForNotificationWithTimeout(absl::Seconds(20)));
  server_.Stop();
  server_.Start();
  follower.join();
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_GE(watches, 2);
  const std::vector<std::string> lost = absl::StrSplit(ran.err, "lost traind");
  EXPECT_EQ(lost.size(), 2u) << ran.err;
  EXPECT_TRUE(Has(ran.err, "connected again")) << ran.err;
}

TEST_F(CliTest, AJobThatVanishesWhileWatchedIsAnError) {
  service_.on_watch = [](grpc::ServerContext*, const v1::WatchJobRequest&,
                         const std::function<bool(const v1::Job&)>&) {
    return grpc::Status(grpc::StatusCode::NOT_FOUND, "gone");
  };
  EXPECT_EQ(Run({"watch", "digits"}).code, 5);
}

// ---- The other verbs --------------------------------------------------------

TEST_F(CliTest, FetchWritesWhatHasTheRightDigest) {
  const Ran ran = Run({"fetch", "digits", "--to", Path("p.csv"), "-o", "json"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(Text(Path("p.csv")), service_.artifact);
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json["path"], Path("p.csv"));
  EXPECT_EQ(json["sha256"], service_.artifact_sha256);
  const Ran out = Run({"fetch", "digits", "-O", "-"});
  EXPECT_EQ(out.code, 0) << out.err;
  EXPECT_EQ(out.out, service_.artifact);
}

TEST_F(CliTest, FetchRefusesAnotherDigestAndLeavesTheFileAlone) {
  service_.artifact_sha256 = std::string(64, '0');
  Write("p.csv", "old");
  const Ran ran = Run({"fetch", "digits", "--to", Path("p.csv")});
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(Has(ran.err, "instead of 0000")) << ran.err;
  EXPECT_EQ(Text(Path("p.csv")), "old");
  const Ran out = Run({"fetch", "digits", "-O", "-"});
  EXPECT_EQ(out.code, 1);
  EXPECT_EQ(out.out, "");
  // No temporary file stays.
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    files += entry.is_regular_file();
  }
  EXPECT_EQ(files, 2u);  // and job.yaml
}

TEST_F(CliTest, ListGathersAllPages) {
  service_.on_list = [](const v1::ListJobsRequest& request, v1::ListJobsReply* reply) {
    EXPECT_EQ(request.states_size(), 2);
    EXPECT_EQ(request.labels().at("team"), "blue");
    *reply->add_jobs() = RunningJob();
    if (request.page_token().empty()) reply->set_next_page_token("2");
    return grpc::Status::OK;
  };
  const Ran json = Run({"list", "--state", "running,QUEUED", "-l", "team=blue", "-o", "json"});
  EXPECT_EQ(json.code, 0) << json.err;
  EXPECT_EQ(nlohmann::json::parse(json.out)["jobs"].size(), 2u);
  const Ran table = Run({"list", "--state", "running,QUEUED", "-l", "team=blue"});
  EXPECT_TRUE(Has(table.out, "digits-7f3k2a  RUNNING")) << table.out;
}

TEST_F(CliTest, MetricsGoOnWhereTheStreamBroke) {
  std::atomic<int> calls{0};
  service_.on_metrics = [&](const v1::GetMetricsRequest& request,
                            const std::function<bool(const v1::MetricsReply&)>& send) {
    v1::MetricsReply reply;
    v1::MetricPoint& point = *reply.add_points();
    point.set_sequence(request.after_sequence() + 1);
    point.set_name("train_loss");
    point.set_value(0.5);
    *reply.add_points() = point;
    reply.mutable_points(1)->set_name("other");
    reply.set_dropped(1);
    if (++calls == 1) {
      send(reply);
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "restarting");
    }
    EXPECT_EQ(request.after_sequence(), 1);
    reply.set_end(true);
    send(reply);
    return grpc::Status::OK;
  };
  const Ran ran = Run({"metrics", "digits", "-m", "train_loss", "-o", "json"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  ASSERT_EQ(json["points"].size(), 2u);
  EXPECT_EQ(json["points"][1]["sequence"], 2);
  EXPECT_EQ(json["dropped"], 2);
}

TEST_F(CliTest, PlanWorkersFinishAndCancelAnswer) {
  service_.on_plan = [](const v1::PlanRequest& request, v1::PlanReply* reply) {
    *reply->mutable_resolved() = request.spec();
    *reply->mutable_plan() = RunningJob().plan();
    *reply->add_cuts() = RunningJob().decisions(0);
    return grpc::Status::OK;
  };
  EXPECT_TRUE(Has(Run({"plan", "-f", Path("job.yaml")}).out, "5 folds -> 4 folds"));
  EXPECT_EQ(nlohmann::json::parse(
                Run({"plan", "-f", Path("job.yaml"), "-o", "json"}).out)["plan"]["folds"],
            4);
  v1::WorkerInfo& worker = *service_.workers.add_workers();
  worker.set_id("w1\x1b[2J");
  worker.set_connected(true);
  worker.add_slots()->set_device("cpu");
  const Ran table = Run({"workers"});
  EXPECT_TRUE(Has(table.out, "w1\\x1b[2J")) << table.out;
  EXPECT_EQ(nlohmann::json::parse(Run({"workers", "-o", "json"}).out)[0]["connected"], true);
  EXPECT_EQ(Run({"finish", "digits"}).code, 0);
  EXPECT_EQ(Run({"cancel", "digits"}).code, 0);
  EXPECT_EQ(Run({"cancel", "nobody"}).code, 5);
  EXPECT_EQ(Run({"version"}).code, 0);
}

}  // namespace
}  // namespace traind
