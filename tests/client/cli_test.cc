// The command line, its exit codes, and the verbs that make one call.
#include <absl/strings/str_join.h>

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "tests/client/cli_harness.h"

namespace traind {
namespace {

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

TEST_F(CliTest, TheFormsOfOtherProgramsWork) {
  EXPECT_EQ(Run({"help"}).out, Run({"--help"}).out);
  EXPECT_EQ(Run({"help", "submit"}).out, Run({"submit", "--help"}).out);
  EXPECT_EQ(Run({"--version"}).out, Run({"version"}).out);
  EXPECT_EQ(Run({"job", "get", "digits", "-o", "name"}).out, "digits-7f3k2a\n");
  EXPECT_EQ(Run({"--version"}).code, 0);
  const std::vector<std::pair<std::vector<std::string>, std::string>> hints = {
      {{"status"}, "did you mean 'get'?"},
      {{"ls"}, "did you mean 'list'?"},
      {{"job", "ls"}, "did you mean 'list'?"},
      {{"validate"}, "validate needs a FILE"},
      {{"help", "rm"}, "did you mean 'delete'?"},
      {{"list", "--address", "h:1"}, "did you mean '--server'?"},
      {{"submit", "x.yaml", "-o", "p.csv"}, "--set output=FILE"}};
  for (const auto& [args, hint] : hints) {
    const Ran ran = Run(args);
    EXPECT_EQ(ran.code, 2);
    EXPECT_TRUE(Has(ran.err, hint)) << ran.err;
  }
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
           {"run"},
           {"run", "--budget", "10s"},
           {"run", "--budget", "10", "--", "true"},
           {"run", "--env", "NAME", "--", "true"},
           {"run", "--", "echo", "{lr}"},
           {"list", "-o", "xml"},
           {"submit"},
           {"submit", "-f"},
           {"list", "--timeout", "5"},
           {"list", "--server", "localhost"},
           {"list", "--server", "localhost:70700"},
           {"list", "--state", "runing"},
           {"list", "-l", "x"},
           {"list", "--color", "red"},
           {"propose"},
           {"propose", "digits", "=5"},
           {"propose", "digits", "--request-id", std::string(129, 'a')},
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

TEST_F(CliTest, TrialsAreATableJsonOrCsv) {
  const Ran table = Run({"trials", "digits"});
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_TRUE(Has(table.out, "SETTINGS")) << table.out;
  EXPECT_TRUE(Has(table.err, "has one setting")) << table.err;
  const Ran json = Run({"trials", "digits", "-o", "json"});
  EXPECT_EQ(json.code, 0) << json.err;
  EXPECT_EQ(nlohmann::json::parse(json.out)["trials"].size(), 1u);
  const Ran csv = Run({"trials", "digits", "-o", "csv"});
  EXPECT_EQ(csv.code, 0) << csv.err;
  EXPECT_TRUE(Has(csv.out, "trial,name,kind,done")) << csv.out;
  const Ran wrong = Run({"get", "digits", "-o", "csv"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_TRUE(Has(wrong.err, "get prints no list; -o csv is for lists")) << wrong.err;
  EXPECT_EQ(Run({"trials", "nobody"}).code, 5);
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
  const Ran ran = Run({"fetch", "digits", "--out", Path("p.csv")});
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(Has(ran.err, "instead of 0000")) << ran.err;
  EXPECT_EQ(Text(Path("p.csv")), "old");
  const Ran out = Run({"fetch", "digits", "-O", "-"});
  EXPECT_EQ(out.code, 1);
  EXPECT_EQ(out.out, "");
  // No temporary file is left behind.
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    files += entry.is_regular_file();
  }
  EXPECT_EQ(files, 2u);  // the other file is job.yaml
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

TEST_F(CliTest, EventsAreATableOrADocumentAndHostileTextIsEscaped) {
  service_.on_get = [](const v1::GetJobRequest&, v1::Job* job) {
    job->set_id("digits-1");
    return grpc::Status::OK;
  };
  service_.on_events = [](const v1::GetEventsRequest& request,
                          const std::function<bool(const v1::EventsReply&)>& send) {
    EXPECT_EQ(request.id(), "digits-1");
    v1::EventsReply reply;
    for (int64_t i = 1; i <= 2; ++i) {
      v1::JobEvent& event = *reply.add_events();
      event.set_sequence(i);
      event.set_kind("state");
      event.set_detail(i == 1 ? "QUEUED" : "\x1b[2J");
    }
    reply.set_end(true);
    send(reply);
    return grpc::Status::OK;
  };
  const Ran table = Run({"events", "digits"});
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_TRUE(Has(table.out, "QUEUED")) << table.out;
  EXPECT_EQ(table.out.find('\x1b'), std::string::npos);
  const Ran json = Run({"events", "digits", "-o", "json"});
  EXPECT_TRUE(Has(json.out, "\"detail\": \"QUEUED\"")) << json.out;
  const Ran lines = Run({"events", "digits", "--follow", "-o", "json"});
  EXPECT_EQ(std::count(lines.out.begin(), lines.out.end(), '\n'), 2);
  EXPECT_EQ(lines.out.find('\x1b'), std::string::npos);
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

TEST_F(CliTest, MetricsAreDrawn) {
  service_.on_metrics = [](const v1::GetMetricsRequest&,
                           const std::function<bool(const v1::MetricsReply&)>& send) {
    v1::MetricsReply reply;
    for (int epoch = 1; epoch <= 3; ++epoch) {
      v1::MetricPoint& point = *reply.add_points();
      point.set_name("train_loss");
      point.set_epoch(epoch);
      point.set_value(1.0 / epoch);
    }
    reply.set_end(true);
    send(reply);
    return grpc::Status::OK;
  };
  const Ran ran = Run({"metrics", "digits", "--plot"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(Has(ran.out, "train_loss  (1 curve)")) << ran.out;
  EXPECT_TRUE(Has(ran.out, "|*")) << ran.out;
  EXPECT_FALSE(Has(ran.out, "val_loss")) << ran.out;
  const Ran none = Run({"metrics", "digits", "--plot", "-m", "absent"});
  EXPECT_EQ(none.out, "");
  EXPECT_TRUE(Has(none.err, "no figures called absent; there are train_loss")) << none.err;
  EXPECT_TRUE(Has(Run({"metrics", "digits", "-m", "absent"}).err, "there are train_loss"));
  EXPECT_EQ(Run({"metrics", "digits", "--plot", "--follow"}).code, 2);
}

TEST_F(CliTest, UpdateSendsWhatIsSaidAndRefusesWhatIsNoTime) {
  EXPECT_EQ(Run({"update", "digits"}).code, 2);
  const Ran unit = Run({"update", "digits", "--budget", "90"});
  EXPECT_EQ(unit.code, 2);
  EXPECT_TRUE(Has(unit.err, "--budget '90' has no unit")) << unit.err;
  EXPECT_EQ(Run({"update", "digits", "--deadline", "soon"}).code, 2);
  EXPECT_EQ(Run({"update", "digits", "--priority", "high"}).code, 2);
  EXPECT_EQ(Run({"update", "digits", "-l", "team"}).code, 2);

  EXPECT_EQ(Run({"update", "digits", "--budget", "90s", "-l", "team=a", "--unlabel", "old"}).code,
            0);
  EXPECT_EQ(service_.updated.budget().seconds(), 90);
  EXPECT_FALSE(service_.updated.has_deadline());
  EXPECT_FALSE(service_.updated.has_priority());
  EXPECT_EQ(service_.updated.set_labels().at("team"), "a");
  EXPECT_EQ(service_.updated.remove_labels(0), "old");
  EXPECT_EQ(Run({"update", "digits", "--priority", "-3"}).code, 0);
  EXPECT_EQ(service_.updated.priority(), -3);
}

TEST_F(CliTest, DeletePinAndGcAnswer) {
  const Ran deleted = Run({"delete", "digits"});
  EXPECT_EQ(deleted.code, 0);
  EXPECT_EQ(deleted.out, "deleted " + RunningJob().id() + ", 3.0 MiB\n");
  EXPECT_EQ(Run({"delete", "nobody"}).code, 5);
  EXPECT_EQ(Run({"delete"}).code, 2);
  EXPECT_TRUE(Has(Run({"pin", "digits"}).out, "retention does not delete it"));
  EXPECT_FALSE(Has(Run({"unpin", "digits"}).out, "retention does not delete it"));

  v1::GarbageItem& item = *service_.garbage.add_items();
  item.set_kind("job");
  item.set_name("old-1");
  item.set_bytes(2048);
  item.set_why("more than 10 jobs are over");
  service_.garbage.set_bytes(2048);
  const Ran listed = Run({"gc", "--dry-run"});
  EXPECT_EQ(listed.code, 0);
  EXPECT_TRUE(service_.dry_run);
  EXPECT_TRUE(Has(listed.out, "job   old-1  2048   more than 10 jobs are over")) << listed.out;
  EXPECT_EQ(listed.err, "would delete 1 items, 2.0 KiB\n");
  const Ran done = Run({"gc", "-o", "json"});
  EXPECT_FALSE(service_.dry_run);
  EXPECT_TRUE(Has(done.out, "\"why\": \"more than 10 jobs are over\"")) << done.out;
}

TEST_F(CliTest, AJobWhoseFolderIsGoneIsToldSo) {
  service_.on_get = [](const v1::GetJobRequest&, v1::Job* job) {
    *job = EndedJob();
    job->set_files_missing(true);
    return grpc::Status::OK;
  };
  EXPECT_TRUE(Has(Run({"get", "digits"}).out, "gone: somebody has removed the folder"));
  service_.on_list = [](const v1::ListJobsRequest&, v1::ListJobsReply* reply) {
    *reply->add_jobs() = EndedJob();
    reply->mutable_jobs(0)->set_files_missing(true);
    return grpc::Status::OK;
  };
  EXPECT_TRUE(Has(Run({"list"}).out, "files gone"));
}

TEST_F(CliTest, APlanWithFurtherTrialsTellsHowLongTheyGoOn) {
  service_.on_plan = [](const v1::PlanRequest& request, v1::PlanReply* reply) {
    *reply->mutable_resolved() = request.spec();
    reply->mutable_estimated_finish()->set_seconds(absl::ToUnixSeconds(absl::Now()) + 3);
    return grpc::Status::OK;
  };
  const auto end = [this](const std::string& model, const std::string& budget) {
    const Ran ran = Run(
        {"plan", "-f", Path("job.yaml"), "--set", "model=" + model, "--set", "budget=" + budget});
    EXPECT_EQ(ran.code, 0) << ran.err;
    const size_t from = ran.out.find("would end");
    return ran.out.substr(from, ran.out.find('\n', from) - from);
  };
  EXPECT_FALSE(Has(end("{mlp: {}}", "{time: 10m}"), "models"));
  EXPECT_TRUE(Has(end("auto", "{time: 10m}"), "  the first models at ")) << end("auto", "");
  EXPECT_TRUE(Has(end("auto", "{time: 10m}"), "; further ones are tried until "));
  EXPECT_TRUE(Has(end("auto", ""), "; further ones are tried after them")) << end("auto", "");
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
  EXPECT_EQ(Run({"pause", "digits"}).code, 0);
  EXPECT_EQ(Run({"resume", "digits"}).code, 0);
  EXPECT_EQ(Run({"resume", "nobody"}).code, 5);
  EXPECT_EQ(Run({"version"}).code, 0);
}

}  // namespace
}  // namespace traind
