// What is made from the table of verbs and options, and the verbs that need no Job.
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <absl/time/clock.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/command_text.h"
#include "common/base/refused_files.h"
#include "common/wire/status_details.h"
#include "tests/client/cli_harness.h"
#include "tests/common/data/table/packed_bytes.h"

namespace traind {
namespace {

std::vector<std::string> LinesOf(const std::string& text) {
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

bool Contains(const std::vector<std::string>& lines, const std::string& line) {
  return std::find(lines.begin(), lines.end(), line) != lines.end();
}

// ---- Completion -------------------------------------------------------------

TEST_F(CliTest, CompletionKnowsVerbsOptionsAndChoices) {
  EXPECT_EQ(Run({"__complete", "sub"}).out, "submit\n");
  EXPECT_TRUE(Contains(LinesOf(Run({"__complete", "submit", "--"}).out), "--force-retrain"));
  EXPECT_TRUE(Contains(LinesOf(Run({"__complete", "submit", "--"}).out), "--server"));
  EXPECT_FALSE(Contains(LinesOf(Run({"__complete", "get", "--"}).out), "--force-retrain"));
  EXPECT_EQ(Run({"__complete", "list", "-o", "js"}).out, "json\njsonl\n");
  EXPECT_EQ(Run({"__complete", "submit", "-f", ""}).out, ":files\n");
  EXPECT_EQ(Run({"__complete", "completion", ""}).out, "bash\nzsh\nfish\n");
  EXPECT_EQ(Run({"__complete", "submit", "--set", "train.pati"}).out, "train.patience=\n");
  // A flag takes no value, so the next word is the verb's.
  EXPECT_EQ(Run({"__complete", "--quiet", "sub"}).out, "submit\n");
  EXPECT_EQ(Run({"__complete"}).code, 0);
}

TEST_F(CliTest, CompletionAsksForJobs) {
  service_.on_list = [](const v1::ListJobsRequest&, v1::ListJobsReply* reply) {
    for (const auto& [id, name] : {std::pair("a-1", "a"), {"a-2", "a"}, {"b-1", "b"}}) {
      reply->add_jobs()->set_id(id);
      reply->mutable_jobs(reply->jobs_size() - 1)->set_name(name);
    }
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"__complete", "get", ""}).out, "a-1\na-2\nb-1\nb\n");
  EXPECT_EQ(Run({"__complete", "diff", "a-1", "b"}).out, "b-1\nb\n");
  EXPECT_EQ(Run({"__complete", "get", "a-1", ""}).out, "");
  EXPECT_EQ(Run({"__complete", "wait", "a-1", "a-2", "b"}).out, "b-1\nb\n");
  server_.Stop();
  const Ran ran = Run({"__complete", "get", ""});
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out + ran.err, "");
}

TEST_F(CliTest, TheManualHasEachVerbAndOption) {
  const Ran ran = Run({"man"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  for (const char* part : {".TH TRAINCTL 1", ".SS submit [FILE]", "\\-\\-force\\-retrain",
                           ".SS diff JOB JOB", ".SH EXIT STATUS"}) {
    EXPECT_TRUE(Has(ran.out, part)) << part;
  }
  CommandTable table;
  const std::string markdown = Run({"man", "--markdown"}).out;
  for (const CLI::App* verb : table.app().get_subcommands({})) {
    EXPECT_TRUE(Has(ran.out, ".SS " + verb->get_name())) << verb->get_name();
    EXPECT_TRUE(Has(markdown, "| `" + verb->get_name())) << verb->get_name();
  }
}

// ---- Forms of output --------------------------------------------------------

TEST_F(CliTest, ListsHaveEachForm) {
  service_.on_list = [](const v1::ListJobsRequest&, v1::ListJobsReply* reply) {
    *reply->add_jobs() = EndedJob();
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"list", "-o", "name"}).out, "digits-7f3k2a\n");
  EXPECT_TRUE(Has(Run({"list", "-o", "wide"}).out, "team=blue"));
  EXPECT_FALSE(Has(Run({"list"}).out, "team=blue"));
  EXPECT_TRUE(Has(Run({"list", "-o", "csv"}).out, "id,name,owner,state"));
  EXPECT_EQ(nlohmann::json::parse(Run({"list", "-o", "jsonl"}).out)["id"], "digits-7f3k2a");
  EXPECT_TRUE(Has(Run({"list", "-o", "yaml"}).out, "jobs:\n  - id: digits-7f3k2a\n"));
  EXPECT_TRUE(Has(Run({"get", "digits", "-o", "yaml"}).out, "id: digits-7f3k2a\n"));
  EXPECT_EQ(Run({"get", "digits", "-o", "wide"}).code, 2);
  EXPECT_EQ(Run({"schema", "-o", "json"}).code, 2);
}

TEST_F(CliTest, DecisionsAreInFewWordsUnlessVerbose) {
  const Ran few = Run({"get", "digits"});
  EXPECT_TRUE(Has(few.out, "B2: 5 folds -> 4 folds, to fit the time\n")) << few.out;
  EXPECT_FALSE(Has(few.out, "estimate 93 s of 48 s")) << few.out;
  const Ran all = Run({"get", "digits", "--verbose"});
  EXPECT_TRUE(Has(all.out, "B2: 5 folds -> 4 folds (estimate 93 s of 48 s)")) << all.out;
}

TEST_F(CliTest, TheNextCommandIsAHintThatScriptsDoNotGet) {
  const std::vector<std::string> submit = {"submit", Path("job.yaml")};
  const auto with = [&](const std::string& option) {
    std::vector<std::string> args = submit;
    args.insert(args.end(), {option});
    if (option == "-o") args.push_back("json");
    return Run(args);
  };
  EXPECT_TRUE(Has(Run(submit).err, "watch digits-7f3k2a")) << Run(submit).err;
  EXPECT_FALSE(Has(with("--quiet").err, "watch"));
  EXPECT_FALSE(Has(with("-o").err, "watch"));
  EXPECT_TRUE(Has(Run({"pause", "digits"}).err, "resume digits-7f3k2a"));
}

TEST_F(CliTest, ColourFollowsTheTerminalNoColorAndTheOption) {
  const auto coloured = [&](const std::string& when) {
    return Has(Run({"get", "digits", "--color", when}).out, "\x1b[");
  };
  EXPECT_FALSE(coloured("auto"));
  EXPECT_TRUE(coloured("always"));
  terminal_ = true;
  EXPECT_TRUE(coloured("auto"));
  EXPECT_FALSE(coloured("never"));
  color_wished_ = false;  // NO_COLOR, or TERM=dumb
  EXPECT_FALSE(coloured("auto"));
  EXPECT_TRUE(coloured("always"));
}

// ---- Contexts ---------------------------------------------------------------

TEST_F(CliTest, AContextNamesTheServer) {
  service_.on_list = [](const v1::ListJobsRequest&, v1::ListJobsReply* reply) {
    *reply->add_jobs() = EndedJob();
    return grpc::Status::OK;
  };
  default_server_ = "";
  EXPECT_EQ(Run({"config", "set", "lab", "server=" + server_.address(), "output=name"}).code, 0);
  EXPECT_EQ(Run({"config", "set", "far", "server=127.0.0.1:1"}).code, 0);
  // The first one is the current one; its output counts for lists.
  EXPECT_EQ(Run({"list"}).out, "digits-7f3k2a\n");
  EXPECT_TRUE(Has(Run({"get", "digits"}).out, "digits-7f3k2a SUCCEEDED") ||
              Has(Run({"get", "digits"}).out, "digits-7f3k2a RUNNING"));
  EXPECT_EQ(Run({"list", "-c", "far", "--timeout", "200ms"}).code, 7);
  EXPECT_EQ(Run({"config", "use", "far"}).code, 0);
  EXPECT_EQ(Run({"list", "--timeout", "200ms"}).code, 7);
  // Nearer to the call goes first: the variable, then the option.
  default_server_ = server_.address();
  EXPECT_EQ(Run({"list"}).code, 0);
  EXPECT_EQ(Run({"list", "--server", "127.0.0.1:1", "--timeout", "200ms"}).code, 7);
  const Ran list = Run({"config", "list"});
  EXPECT_TRUE(Has(list.out, "*        far")) << list.out;
  EXPECT_EQ(Run({"config", "remove", "far"}).code, 0);
  EXPECT_FALSE(Has(Run({"config", "list"}).out, "far"));
}

TEST_F(CliTest, ADamagedConfigurationIsNamedWithItsPlace) {
  Write("config.yaml", "contexts:\n  lab: {sever: a:1}\n");
  const Ran ran = Run({"list"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(Has(ran.err, "config.yaml:2:")) << ran.err;
  EXPECT_TRUE(Has(ran.err, "did you mean 'server'?")) << ran.err;
  EXPECT_EQ(Run({"version"}).code, 0);
  Write("config.yaml", "current: lba\ncontexts:\n  lab: {server: \"a:1\"}\n");
  const Ran name = Run({"list"});
  EXPECT_EQ(name.code, 2);
  EXPECT_TRUE(Has(name.err, "there is no context 'lba'")) << name.err;
  EXPECT_EQ(Run({"config", "set", "x", "server=nowhere"}).code, 2);
  EXPECT_EQ(Run({"config", "use", "nobody"}).code, 5);
}

// ---- The spec ---------------------------------------------------------------

TEST_F(CliTest, ExplainDescribesFields) {
  const Ran one = Run({"explain", "train.patience"});
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_TRUE(Has(one.out, "train.patience  (whole number, default ")) << one.out;
  const Ran all = Run({"explain"});
  EXPECT_TRUE(Has(all.out, "budget  (section)")) << all.out;
  EXPECT_FALSE(Has(all.out, "budget.time")) << all.out;
  EXPECT_TRUE(Has(Run({"explain", "--recursive"}).out, "budget.time  (duration"));
  const Ran wrong = Run({"explain", "train.patiense"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_TRUE(Has(wrong.err, "did you mean 'train.patience'?")) << wrong.err;
}

TEST_F(CliTest, InitWritesASpecThatSubmitTakes) {
  std::string train = "id,size,colour,kind\n";
  for (int i = 0; i < 60; ++i) {
    absl::StrAppend(&train, i, ",", i % 7, ".5,red,", i % 2 == 0 ? "cat" : "dog", "\n");
  }
  Write("train.csv", train);
  Write("test.csv", "id,size,colour\n1,2.5,red\n");
  std::filesystem::remove(Path("job.yaml"));
  const Ran ran = Run({"init", Path("train.csv"), Path("test.csv")});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, Path("job.yaml") + "\n");
  const std::string spec = Text(Path("job.yaml"));
  for (const char* part : {"train: train.csv", "test: test.csv", "target: kind", "id: id",
                           "the test file lacks this column", "2 classes", "60 rows, 4 columns"}) {
    EXPECT_TRUE(Has(spec, part)) << part << "\n" << spec;
  }
  EXPECT_EQ(Run({"submit", Path("job.yaml")}).code, 0);
  EXPECT_EQ(submitted().back().spec().data().target(), "kind");
  // What is there is not replaced.
  EXPECT_EQ(Run({"init", Path("train.csv")}).code, 2);
  EXPECT_EQ(Run({"init", Path("train.csv"), "--force", "--target", "size"}).code, 0);
  EXPECT_TRUE(Has(Text(Path("job.yaml")), "target: size")) << Text(Path("job.yaml"));
  const Ran wrong = Run({"init", Path("train.csv"), "--target", "knd", "-O", "-"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_TRUE(Has(wrong.err, "has no column 'knd'; did you mean 'kind'?")) << wrong.err;
  EXPECT_EQ(Run({"init", Path("absent.csv")}).code, 5);
}

TEST_F(CliTest, InitReadsTablesAsPeopleHaveThem) {
  std::string train =
      "Gr\xf6\xdf"
      "e;Menge;Farbe;\n";
  for (int i = 0; i < 60; ++i) {
    absl::StrAppend(&train, i % 7, ",5;", i % 9 == 0 ? "-" : absl::StrCat(i), ";",
                    i % 2 == 0 ? "gr\xfcn" : "rot", ";\n");
  }
  Write("people.csv.gz", testing_table::Gzip(train));
  const auto spec_of = [this](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"init", Path("people.csv.gz"), "-O", "-"});
    const Ran ran = Run(arguments);
    EXPECT_EQ(ran.code, 0) << ran.err;
    return ran.out;
  };
  // The last column is empty: each line ends with a delimiter.
  const std::string spec = spec_of({});
  for (const char* part :
       {"name: people\n", "/people.csv.gz", "target: Farbe", "2 classes", "60 rows"}) {
    EXPECT_TRUE(Has(spec, part)) << part << "\n" << spec;
  }
  // Dashes among numbers are missing values.
  EXPECT_TRUE(Has(spec_of({"--target", "Menge"}), "{type: regression}"));
  EXPECT_TRUE(Has(spec_of({"--target", "Größe"}), "target: \"Größe\""));
}

TEST_F(CliTest, InitFindsColumnsOfFiles) {
  for (const char* name : {"one.png", "two.png", "one_mask.png", "one.nii.gz", "one_seg.nii.gz"}) {
    Write(name, "any");
  }
  const auto spec_of = [this](const std::string& table) {
    const Ran ran = Run({"init", Write("files.csv", table), "-O", Path("files.yaml"), "--force"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(Run({"submit", Path("files.yaml")}).code, 0);
    return Text(Path("files.yaml"));
  };
  std::string spec = spec_of("id,image,mask\n1,one.png,one_mask.png\n2,two.png,one_mask.png\n");
  EXPECT_TRUE(Has(spec, "volume: {image: image, mask: mask}")) << spec;
  EXPECT_TRUE(Has(spec, "patches: {size: [1, 64, 64]}")) << spec;
  EXPECT_FALSE(Has(spec, "target:")) << spec;
  EXPECT_EQ(submitted().back().spec().data().volume().mask(), "mask");
  EXPECT_EQ(submitted().back().spec().data().id(), "id");
  // The mask's column has its name, wherever it stands.
  spec = spec_of("seg,scan\none_seg.nii.gz,one.nii.gz\n");
  EXPECT_TRUE(Has(spec, "volume: {image: scan, mask: seg}")) << spec;
  EXPECT_TRUE(Has(spec, "patches: {size: [16, 32, 32]}")) << spec;
  spec = spec_of("file,kind\none.png,cat\ntwo.png,dog\n");
  EXPECT_TRUE(Has(spec, "image: {column: file, size: 64}")) << spec;
  EXPECT_EQ(submitted().back().spec().data().target(), "kind");
  // Files that are not there are texts.
  spec = spec_of("file,kind\nthree.png,cat\ntwo.png,dog\n");
  EXPECT_FALSE(Has(spec, "image:")) << spec;
}

TEST_F(CliTest, InitRefusesWhatIsNoTableWithAHeader) {
  const auto refusal = [this](const std::string& text) {
    const Ran ran = Run({"init", Write("odd.csv", text), "-O", "-"});
    EXPECT_EQ(ran.code, 2) << ran.out;
    return ran.err;
  };
  EXPECT_TRUE(Has(refusal("id:a:y\n1:2:3\n"), "has one column, 'id:a:y'; commas, tabs"));
  EXPECT_TRUE(Has(refusal("0,0.095,yes\n1,0.5,no\n"), "is the row with the names missing?"));
  EXPECT_TRUE(Has(refusal(std::string("PK\x03\x04", 4) + std::string(22, 'x') +
                          std::string("\x13\0\0\0[Content_Types].xml", 23)),
                  "this is a spreadsheet; save it as CSV"));
  EXPECT_TRUE(Has(refusal("PAR1xxxx"), "this is a Parquet table"));
}

// ---- Logs, diff, top, doctor ------------------------------------------------

TEST_F(CliTest, LogsSendTheFiltersAndGoOnWhereTheStreamBroke) {
  std::vector<v1::GetLogsRequest> requests;
  service_.on_logs = [&](const v1::GetLogsRequest& request,
                         const std::function<bool(const v1::LogsReply&)>& send) {
    requests.push_back(request);
    v1::LogsReply reply;
    v1::LogLine& line = *reply.add_lines();
    line.set_attempt(7);
    line.set_task("fold-2");
    line.set_rank(1);
    line.set_level("warning");
    line.set_text("slow\x1b[2J");
    line.set_offset(100 * static_cast<int64_t>(requests.size()));
    line.mutable_at()->set_seconds(1796148000);
    if (requests.size() == 1) {
      send(reply);
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "restarting");
    }
    reply.set_end(true);
    send(reply);
    return grpc::Status::OK;
  };
  const Ran ran = Run({"logs", "digits", "--fold", "2", "--rank", "1", "--level", "warning",
                       "--grep", "sl.w", "--since", "1h", "--tail", "5"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(Has(ran.out, "fold-2 r1  w  slow\\x1b[2J\n")) << ran.out;
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].id(), "digits-7f3k2a");
  EXPECT_EQ(requests[0].fold(), 2);
  EXPECT_EQ(requests[0].rank(), 1);
  EXPECT_EQ(requests[0].level(), "warning");
  EXPECT_EQ(requests[0].grep(), "sl.w");
  EXPECT_EQ(requests[0].tail(), 5);
  EXPECT_TRUE(requests[0].has_since());
  ASSERT_EQ(requests[1].after_size(), 1);
  EXPECT_EQ(requests[1].after(0).attempt(), 7);
  EXPECT_EQ(requests[1].after(0).offset(), 100);
  EXPECT_EQ(requests[1].tail(), 0);
  const Ran lines = Run({"logs", "digits", "-o", "jsonl"});
  EXPECT_EQ(nlohmann::json::parse(lines.out)["task"], "fold-2") << lines.out;
  EXPECT_EQ(Run({"logs"}).code, 2);
  EXPECT_EQ(Run({"logs", "digits", "--worker"}).code, 2);
  EXPECT_EQ(Run({"logs", "digits", "--since", "yesterday"}).code, 2);
}

TEST_F(CliTest, DiffNamesWhatDiffers) {
  service_.on_get = [](const v1::GetJobRequest& request, v1::Job* job) {
    *job = EndedJob();
    job->set_id(request.id());
    job->mutable_scores()->set_oof(request.id() == "a" ? 0.5 : 0.75);
    return grpc::Status::OK;
  };
  service_.on_spec = [](const v1::GetSpecRequest& request, v1::GetSpecReply* reply) {
    reply->mutable_resolved()->mutable_train()->set_epochs(request.id() == "a" ? 10 : 20);
    return grpc::Status::OK;
  };
  const Ran ran = Run({"diff", "a", "b", "-o", "json"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  ASSERT_EQ(json["differences"].size(), 2u) << ran.out;
  EXPECT_EQ(json["differences"][0]["path"], "spec.train.epochs");
  EXPECT_EQ(json["differences"][0]["b"], 20);
  EXPECT_EQ(json["differences"][1]["path"], "result.score.oof");
  const Ran table = Run({"diff", "a", "b"});
  EXPECT_TRUE(Has(table.out, "spec.train.epochs")) << table.out;
  EXPECT_EQ(Run({"diff", "a"}).code, 2);
  EXPECT_TRUE(Has(Run({"diff", "a", "a"}).err, "are equal"));
}

TEST_F(CliTest, WorkersAreCordonedDrainedAndOpenedAgain) {
  v1::WorkerInfo& worker = *service_.workers.add_workers();
  worker.set_id("w1");
  worker.set_connected(true);
  worker.set_attempts(2);
  EXPECT_TRUE(Has(Run({"workers", "cordon", "w1"}).out, "yes, cordoned"));
  EXPECT_TRUE(Has(Run({"workers"}).out, "yes, cordoned"));
  EXPECT_TRUE(Has(Run({"workers", "drain", "w1", "--grace", "60s"}).out, "yes, drains at "));
  const auto json =
      nlohmann::json::parse(Run({"workers", "drain", "w1", "--grace", "60s", "-o", "json"}).out);
  EXPECT_EQ(json["mode"], "DRAINING");
  EXPECT_FALSE(Has(Run({"workers", "uncordon", "w1"}).out, ","));
  service_.on_list_workers = [this] {
    auto& first = *service_.workers.mutable_workers(0);
    first.set_attempts(first.attempts() - 1);
  };
  const Ran drained = Run({"workers", "drain", "w1", "--wait"});
  EXPECT_EQ(drained.code, 0) << drained.err;
  EXPECT_TRUE(Has(drained.err, "w1 still runs 2 Attempts\nw1 still runs 1 Attempt\n"))
      << drained.err;
  EXPECT_TRUE(Has(drained.out, "yes, drained")) << drained.out;
}

TEST_F(CliTest, WorkersSaysWhatItDoesNotUnderstand) {
  v1::WorkerInfo& worker = *service_.workers.add_workers();
  worker.set_id("w1");
  worker.set_attempts(1);
  EXPECT_EQ(Run({"workers", "drain", "w2"}).code, 5);
  EXPECT_EQ(Run({"workers", "drain", "w1", "--wait", "--timeout", "20ms"}).code, 3);
  EXPECT_EQ(Run({"workers", "drain"}).code, 2);
  EXPECT_EQ(Run({"workers", "stop", "w1"}).code, 2);
  EXPECT_EQ(Run({"workers", "cordon", "w1", "--grace", "5s"}).code, 2);
  const Ran ran = Run({"workers", "drain", "w1", "--grace", "soon"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(Has(ran.err, "--grace")) << ran.err;
}

TEST_F(CliTest, TopShowsJobsAndSlotsOnceWhereThereIsNoTerminal) {
  service_.on_list = [](const v1::ListJobsRequest& request, v1::ListJobsReply* reply) {
    EXPECT_EQ(request.states_size(), 5);
    *reply->add_jobs() = RunningJob();
    return grpc::Status::OK;
  };
  v1::WorkerInfo& worker = *service_.workers.add_workers();
  worker.set_id("w1");
  worker.add_slots()->set_job("digits-7f3k2a");
  worker.add_slots();
  const Ran ran = Run({"top"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(Has(ran.out, "1 Job, 1 of 2 slots busy")) << ran.out;
  EXPECT_TRUE(Has(ran.out, "digits-7f3k2a RUNNING")) << ran.out;
  EXPECT_FALSE(Has(ran.out, "\x1b[")) << ran.out;
}

TEST_F(CliTest, DoctorBlamesAFullDiskForAMissingWorker) {
  service_.on_list = [this](const v1::ListJobsRequest&, v1::ListJobsReply* reply) {
    reply->add_jobs()->set_results_dir(Path("digits"));
    return grpc::Status::OK;
  };
  service_.workers.add_workers()->set_id("w1");
  space_ = {6'000'000, 5'000, 5'000};
  const Ran full = Run({"doctor"});
  EXPECT_EQ(full.code, 1);
  EXPECT_TRUE(Has(full.out, "fail  disk       0.005 MB free (0 %)")) << full.out;
  EXPECT_TRUE(Has(full.out, "; it comes back once the disk has space")) << full.out;
  EXPECT_FALSE(Has(full.out, "start trainworker")) << full.out;
  EXPECT_LT(full.out.find("disk"), full.out.find("worker")) << full.out;
  space_->available = space_->free = 5'000'000;
  const Ran free = Run({"doctor"});
  EXPECT_TRUE(Has(free.out, "ok    disk       5 MB free (83 %)")) << free.out;
  EXPECT_TRUE(Has(free.out, "start trainworker")) << free.out;
}

TEST_F(CliTest, DoctorTellsWhetherTraindReadsAFile) {
  service_.on_list = [](const v1::ListJobsRequest&, v1::ListJobsReply*) {
    return grpc::Status::OK;
  };
  absl::Status refusal;
  service_.on_plan = [&](const v1::PlanRequest&, v1::PlanReply*) {
    return ToGrpcWithDetails(refusal);
  };
  const auto told = [&](const char* text, RefusedFiles files) {
    refusal = WithRefusedFiles(absl::InvalidArgumentError(text), files);
    return Run({"doctor", "--data", "data.csv"}).out;
  };
  const std::string outside =
      told("data.train: words", {{"data.train", FileProblem::kOutsideRoots}});
  EXPECT_TRUE(Has(outside, "fail  data       data.train: words; start traind with a --data-root"))
      << outside;
  const std::string gone = told("data.train: words", {{"data.train", FileProblem::kUnreadable}});
  EXPECT_TRUE(Has(gone, "fail  data       data.train: words\n")) << gone;
  const std::string read = told("data.train: the training file has no column '-'", {});
  EXPECT_TRUE(Has(read, "ok    data       traind reads data.csv")) << read;
}

TEST_F(CliTest, DoctorSaysWhatToDo) {
  service_.on_list = [](const v1::ListJobsRequest&, v1::ListJobsReply*) {
    return grpc::Status::OK;
  };
  const Ran none = Run({"doctor"});
  EXPECT_EQ(none.code, 1);
  EXPECT_TRUE(Has(none.out, "ok    traind")) << none.out;
  EXPECT_TRUE(Has(none.out, "fail  worker     no Worker is connected")) << none.out;
  v1::WorkerInfo& worker = *service_.workers.add_workers();
  worker.set_id("w1");
  worker.set_connected(true);
  worker.set_version("trainworker 9.9");
  worker.add_slots()->set_device("cpu");
  worker.mutable_last_seen()->set_seconds(absl::ToUnixSeconds(absl::Now() + absl::Hours(1)));
  const Ran ran = Run({"doctor"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(Has(ran.out, "ok    worker     1 connected, with 1 slots")) << ran.out;
  EXPECT_TRUE(Has(ran.out, "warn  version")) << ran.out;
  EXPECT_TRUE(Has(ran.out, "warn  clock")) << ran.out;
  server_.Stop();
  const Ran down = Run({"doctor", "--timeout", "300ms"});
  EXPECT_EQ(down.code, 7);
  EXPECT_TRUE(Has(down.out, "fail  traind")) << down.out;
}

}  // namespace
}  // namespace traind
