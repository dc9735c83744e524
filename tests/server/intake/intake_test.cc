#include "server/intake/intake.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <set>

#include "common/base/durable_file.h"
#include "common/base/refused_files.h"
#include "common/data/table/npy.h"
#include "server/intake/search_trials.h"
#include "server/search/search.h"

namespace traind {
namespace {

using testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1'795'000'000);

class IntakeTest : public testing::Test {
 protected:
  IntakeTest() {
    std::string folder = absl::StrCat(testing::TempDir(), "/intake.XXXXXX");
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    char* const real = realpath(folder.c_str(), nullptr);
    folder_ = real;
    free(real);
    intake_ = std::make_unique<Intake>(std::vector<std::string>{folder_});
    Write("train.csv", "id,a,b,kind\n1,0.5,x,yes\n2,0.7,y,no\n");
    Write("test.csv", "b,id,a\nx,3,0.1\n");
  }
  std::string Write(const std::string& name, const std::string& bytes) {
    const std::string path = absl::StrCat(folder_, "/", name);
    EXPECT_EQ(MakeDirs(path.substr(0, path.rfind('/'))), absl::OkStatus());
    EXPECT_EQ(WriteFileDurably(path, bytes), absl::OkStatus());
    return path;
  }
  v1::JobSpec GoodSpec() const {
    v1::JobSpec spec;
    spec.set_api("v1");
    spec.set_name("adult");
    spec.mutable_task()->set_type("classification");
    spec.mutable_data()->set_train(absl::StrCat(folder_, "/train.csv"));
    spec.mutable_data()->set_test(absl::StrCat(folder_, "/test.csv"));
    spec.mutable_data()->set_target("kind");
    spec.mutable_data()->set_id("id");
    spec.mutable_model()->mutable_mlp();
    return spec;
  }

  // Returns the errors of a refusal; "" if the spec is accepted.
  std::string Errors(const v1::JobSpec& spec) {
    return std::string(intake_->Check(spec, kNow).status().message());
  }

  std::string folder_;
  std::unique_ptr<Intake> intake_;
};

TEST_F(IntakeTest, AProgramRunsForTheOwnersThatAreNamed) {
  v1::JobSpec run, command, network = GoodSpec();
  run.mutable_run()->add_command("true");
  command.mutable_model()->mutable_command()->add_train("true");
  const Intake all({folder_}, {}, /*programs=*/true);
  const Intake some({folder_}, {}, /*programs=*/true, {"ada", "bob"});
  for (const v1::JobSpec* spec : {&run, &command}) {
    EXPECT_EQ(all.CheckOwner(*spec, "eve"), absl::OkStatus());
    EXPECT_EQ(some.CheckOwner(*spec, "bob"), absl::OkStatus());
    const absl::Status refused = some.CheckOwner(*spec, "eve");
    EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
    EXPECT_THAT(refused.message(), HasSubstr("--program-owner eve"));
  }
  EXPECT_EQ(some.CheckOwner(network, "eve"), absl::OkStatus());
}

TEST_F(IntakeTest, AProgramRunsOnlyWhereItIsAllowed) {
  v1::JobSpec spec;
  spec.set_name("mine");
  spec.mutable_run()->add_command("true");
  spec.mutable_run()->set_folder("/usr");  // outside the data roots
  spec.mutable_run()->set_folds(4);
  spec.mutable_run()->set_epochs(20);
  spec.mutable_budget()->mutable_time()->set_seconds(60);
  const absl::Status refused = intake_->Check(spec, kNow).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(refused.message(), HasSubstr("--allow-programs"));

  Intake allowing({folder_}, {}, /*programs=*/true);
  const auto checked = allowing.Check(spec, kNow);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_TRUE(RunsProgram(checked->spec));
  EXPECT_EQ(checked->spec.folds, 4);
  EXPECT_EQ(checked->spec.epochs, 20);
  EXPECT_FALSE(checked->spec.has_test);
  EXPECT_EQ(checked->spec.cache_key, "") << "nobody takes its folds over";
  EXPECT_EQ(checked->resolved.run().results(), "/usr");

  spec.mutable_run()->set_folder("/no/such/folder");
  EXPECT_THAT(allowing.Check(spec, kNow).status().message(), HasSubstr("run.folder: "));
  spec.mutable_run()->set_folder("/usr");
  spec.mutable_run()->clear_epochs();
  EXPECT_EQ(allowing.Check(spec, kNow)->spec.epochs, 1);
}

TEST_F(IntakeTest, AnUploadedProgramHasItsResultsWithItsJob) {
  Intake allowing({folder_}, {}, /*programs=*/true, {}, absl::StrCat(folder_, "/uploads"));
  const std::string sent = Write("uploads/00ff/project/run.sh", "true");
  Write("uploads-of-mine/run.sh", "true");
  v1::JobSpec spec;
  spec.set_name("mine");
  v1::RunSpec& run = *spec.mutable_run();
  run.add_command("true");
  run.set_folder(sent.substr(0, sent.rfind('/')));
  spec.mutable_budget()->mutable_time()->set_seconds(60);
  const auto checked = allowing.Check(spec, kNow);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(checked->resolved.run().results(), "");

  run.set_results(folder_);
  EXPECT_THAT(allowing.Check(spec, kNow).status().message(),
              HasSubstr("run.results: must be empty"));
  run.set_folder(absl::StrCat(folder_, "/uploads-of-mine"));
  EXPECT_EQ(allowing.Check(spec, kNow)->resolved.run().results(), folder_);
  run.clear_results();
  EXPECT_EQ(allowing.Check(spec, kNow)->resolved.run().results(), run.folder());
  run.set_folder("/no/such/folder");
  const RefusedFiles refused = RefusedFilesOf(allowing.Check(spec, kNow).status());
  ASSERT_EQ(refused.count("run.folder"), 1u) << "so that the client offers to send it";
  EXPECT_EQ(refused.at("run.folder"), FileProblem::kUnreadable);
}

TEST_F(IntakeTest, ARegressionNeedsNumbersInItsTarget) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_task()->set_type("regression");
  EXPECT_THAT(Errors(spec), HasSubstr("data.target: 'kind' has values that are no numbers, such as "
                                      "'yes', which a regression needs"));
  spec.mutable_data()->clear_test();
  spec.mutable_data()->set_train(Write("gaps.csv", "id,b,kind\n1,x,0.5\n2,y,NA\n3,y,1e99\n"));
  EXPECT_EQ(Errors(spec), "") << "what is not finite is for PREPARE to judge";
}

TEST_F(IntakeTest, AFileThatIsNoArchiveIsNoTorchScriptModule) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_model()->mutable_script()->set_file(Write("bad.pt", "none"));
  EXPECT_THAT(Errors(spec), HasSubstr("bad.pt is not a TorchScript module; torch.jit.script("));
  spec.mutable_model()->mutable_script()->set_file(Write("net.pt", "PK\x03\x04 and so on"));
  EXPECT_THAT(Errors(spec), HasSubstr("--allow-script "));
}

TEST_F(IntakeTest, AProgramThatIsAModelRunsOnlyWhereItIsAllowed) {
  v1::JobSpec spec = GoodSpec();
  spec.clear_model();
  spec.clear_train();
  v1::CommandSpec& command = *spec.mutable_model()->mutable_command();
  command.add_train("true");
  command.set_code("/usr");  // outside the data roots
  command.set_epochs(20);
  const absl::Status refused = intake_->Check(spec, kNow).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(refused.message(), HasSubstr("model.command: "));

  Intake allowing({folder_}, {}, /*programs=*/true);
  const auto checked = allowing.Check(spec, kNow);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_FALSE(RunsProgram(checked->spec));
  EXPECT_TRUE(ProgramTrains(checked->spec));
  EXPECT_EQ(checked->spec.epochs, 20);
  EXPECT_EQ(checked->spec.patience, 0);
  EXPECT_EQ(checked->spec.cache_key, "") << "nobody takes its folds over";

  command.set_code("/no/such/folder");
  EXPECT_THAT(allowing.Check(spec, kNow).status().message(), HasSubstr("model.command.code: "));
}

TEST_F(IntakeTest, AGoodSpecBecomesAJob) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_budget()->mutable_time()->set_seconds(60);
  spec.mutable_budget()->set_policy("fixed");
  spec.mutable_labels()->insert({"team", "a"});
  spec.mutable_train()->set_patience(0);
  const auto checked = intake_->Check(spec, kNow);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_TRUE(checked->warnings.empty());
  const Job job = intake_->MakeJob(*checked, "local", "r1", "name: adult\n", kNow);
  EXPECT_THAT(job.id, testing::MatchesRegex("adult-[a-z0-9]{6}"));
  EXPECT_EQ(job.owner, "local");
  EXPECT_EQ(job.request_id, "r1");
  EXPECT_EQ(job.spec_text, "name: adult\n");
  EXPECT_EQ(job.spec_sha256, Sha256Hex(job.spec_json));
  EXPECT_EQ(job.accepted_at, kNow);
  EXPECT_EQ(job.deadline, kNow + absl::Seconds(60));
  EXPECT_EQ(job.spec.name, "adult");
  EXPECT_EQ(job.spec.metric, "accuracy");
  EXPECT_TRUE(job.spec.higher_is_better);
  EXPECT_EQ(job.spec.folds, 5);
  EXPECT_EQ(job.spec.epochs, 20);
  EXPECT_EQ(job.spec.patience, 0);
  EXPECT_EQ(job.spec.slots, 1);
  EXPECT_EQ(job.spec.checkpoint_every, absl::Seconds(3));
  EXPECT_TRUE(job.spec.has_test);
  EXPECT_EQ(job.spec.train_bytes, 35);
  EXPECT_EQ(job.spec.test_bytes, 15);
  EXPECT_EQ(job.spec.policy, Policy::kFixed);
  EXPECT_EQ(job.spec.shares.plan, 0.8);
  EXPECT_EQ(job.spec.shares.first_fold, 0.2);
  EXPECT_EQ(job.spec.shares.reserve, 0.15);
  EXPECT_EQ(job.spec.shares.stop, 0.7);
  EXPECT_EQ(job.spec.labels.at("team"), "a");
}

TEST_F(IntakeTest, TheTargetTellsTheTaskThatTheSpecLeavesOut) {
  v1::JobSpec spec = GoodSpec();
  spec.clear_api();
  spec.clear_task();
  spec.clear_model();
  const auto checked = intake_->Check(spec, kNow);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(checked->resolved.task().type(), "classification");
  EXPECT_EQ(checked->spec.metric, "accuracy");
  EXPECT_GT(checked->resolved.trials_size(), 0);  // no model means several
  EXPECT_THAT(checked->warnings,
              testing::ElementsAre(
                  "task.type: classification, because the target 'kind' has values that are no "
                  "numbers, such as 'yes'; task.metric: accuracy"));
  spec.mutable_data()->set_target("kin");
  EXPECT_EQ(Errors(spec),
            "data.target: the training file has no column 'kin'; did you mean 'kind'?");
  spec.mutable_data()->set_target("price");
  EXPECT_THAT(Errors(spec), HasSubstr("has no column 'price'; it has '"));
  const std::string train = spec.data().train();
  spec.mutable_data()->set_train(Write("colons.csv", "id:a:price\n1:2:3\n"));
  EXPECT_THAT(Errors(spec), HasSubstr("its only column is 'id:a:price': commas, tabs, semicolons"));
  spec.mutable_data()->set_train(Write("table.xlsx", "\xd0\xcf\x11\xe0"));
  EXPECT_THAT(Errors(spec), HasSubstr("data.train: table.xlsx: this is a spreadsheet; save it"));
  spec.mutable_data()->set_train(train);
  spec.mutable_data()->set_target("a");
  spec.mutable_data()->set_train(Write("values.csv", "id,b,a\n1,x,0.5\n2,y,0.25\n3,y,0.75\n"));
  spec.mutable_task()->set_metric("mae");
  const auto values = intake_->Check(spec, kNow);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(values->resolved.task().type(), "regression");
  EXPECT_THAT(values->warnings,
              testing::Contains("task.type: regression, because task.metric is mae"));
  // A setting that fits no type is reported once the type is known.
  spec.clear_task();
  spec.mutable_train()->mutable_loss()->set_kind("dice_ce");
  EXPECT_NE(Errors(spec), "");
  spec.clear_train();
  spec.mutable_data()->set_train(absl::StrCat(folder_, "/absent.csv"));
  EXPECT_THAT(Errors(spec), HasSubstr("data.train: "));
}

TEST_F(IntakeTest, AnAutomaticModelHasItsTrialsInTheSpec) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_model()->mutable_automatic()->set_trials(12);
  const auto checked = intake_->Check(spec, kNow);
  ASSERT_TRUE(checked.ok()) << checked.status();
  const v1::JobSpec& resolved = checked->resolved;
  ASSERT_EQ(resolved.trials_size(), 12);
  EXPECT_EQ(resolved.trials(0).name(), "lightgbm");
  EXPECT_EQ(resolved.predictions().ensemble(), "greedy");
  // Two rows: small trees.
  EXPECT_LE(resolved.trials(0).model().lightgbm().min_data_in_leaf(), 2);
  EXPECT_NE(checked->json.find("\"trials\":[{"), std::string::npos);
  // A Job that goes on from this one keeps its trials, and adds to them.
  v1::JobSpec more = resolved;
  more.set_from("adult-1");
  more.mutable_trials(0)->set_name("kept");
  more.mutable_model()->mutable_automatic()->set_trials(14);
  const auto longer = intake_->Check(more, kNow);
  ASSERT_TRUE(longer.ok()) << longer.status();
  ASSERT_EQ(longer->resolved.trials_size(), 14);
  EXPECT_EQ(longer->resolved.trials(0).name(), "kept");
  // A user's own text there does not count.
  more.clear_from();
  EXPECT_EQ(intake_->Check(more, kNow)->resolved.trials(0).name(), "lightgbm");
  // Trials are part of what folds depend on.
  spec.mutable_data()->set_seed(5);
  EXPECT_NE(intake_->Check(spec, kNow)->spec.cache_key, checked->spec.cache_key);
  more = GoodSpec();
  more.add_trials()->set_name("mine");
  EXPECT_EQ(intake_->Check(more, kNow)->resolved.trials_size(), 0);
}

TEST_F(IntakeTest, ASearchHasItsTrialsInTheJob) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_budget()->mutable_time()->set_seconds(60);
  spec.mutable_search()->set_trials(6);
  spec.mutable_search()->set_method("random");
  (*spec.mutable_search()->mutable_space())["model.mlp.dropout"] = "uniform(0, 0.5)";
  (*spec.mutable_search()->mutable_space())["train.epochs"] = "int(5, 40)";
  const auto checked = intake_->Check(spec, kNow);
  ASSERT_TRUE(checked.ok()) << checked.status();
  const std::vector<Trial>& trials = checked->spec.trials;
  ASSERT_EQ(trials.size(), 6u);
  EXPECT_EQ(checked->spec.search.method, "random");
  EXPECT_EQ(*trials[0].settings, (Settings{{"model.mlp.dropout", "0.1"}, {"train.epochs", "20"}}));
  EXPECT_EQ(trials[3].name, "mlp-3");
  ASSERT_NE(trials[3].settings, nullptr);
  EXPECT_EQ((*trials[3].settings)[1].second, absl::StrCat(trials[3].epochs));
  EXPECT_TRUE(checked->warnings.empty());
  // The first trial's folds are those of a Job without a search.
  v1::JobSpec plain = spec;
  plain.clear_search();
  EXPECT_EQ(intake_->Check(plain, kNow)->spec.cache_key, checked->spec.cache_key);
  // Defaults that the spec leaves out are told.
  spec.clear_model();
  spec.mutable_search()->clear_space();
  spec.mutable_search()->set_method("tpe");
  const auto left_out = intake_->Check(spec, kNow);
  ASSERT_TRUE(left_out.ok()) << left_out.status();
  ASSERT_EQ(left_out->warnings.size(), 2u);
  EXPECT_EQ(left_out->warnings[0], "model: lightgbm, because a search varies one kind of model");
  EXPECT_THAT(left_out->warnings[1], HasSubstr("model.lightgbm.num_leaves: log_int(4, 200)"));
  EXPECT_EQ(left_out->spec.trials[0].settings->size(), 9u) << "its defaults lie in the space";
  EXPECT_EQ(left_out->spec.trials[1].settings, nullptr) << "drawn when it begins";
  // A space with few points is a grid.
  spec.mutable_search()->set_method("auto");
  (*spec.mutable_search()->mutable_space())["model.mlp.dropout"] = "choice(0.1, 0.2, 0.3)";
  const auto few = intake_->Check(spec, kNow);
  ASSERT_TRUE(few.ok()) << few.status();
  EXPECT_EQ(few->spec.search.method, "grid");
  EXPECT_EQ(few->spec.trials.size(), 3u);
  EXPECT_THAT(few->warnings.back(), HasSubstr("search.trials: 3, because the space has no more"));
}

TEST_F(IntakeTest, AJobThatGoesOnKeepsTheSettingsOfTrials) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_budget()->mutable_time()->set_seconds(60);
  spec.mutable_search()->set_trials(3);
  (*spec.mutable_search()->mutable_space())["train.epochs"] = "int(5, 40)";
  Spec source = intake_->Check(spec, kNow)->spec;
  ASSERT_EQ(source.trials[1].settings, nullptr);
  TakeSettings(std::make_shared<const Settings>(Settings{{"train.epochs", "9"}}), source.trials[1]);
  spec.mutable_search()->set_trials(5);
  Spec more = intake_->Check(spec, kNow)->spec;
  TakeDrawnTrials(source, more);
  ASSERT_EQ(more.trials.size(), 5u);
  EXPECT_EQ(more.trials[1].epochs, 9);
  EXPECT_EQ(*more.trials[1].settings, *source.trials[1].settings);
  EXPECT_EQ(more.trials[2].settings, nullptr);
}

TEST_F(IntakeTest, RoundsOfTreesAreCountedAsAHundredEpochs) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_train()->set_epochs(7);
  spec.mutable_model()->mutable_lightgbm();
  EXPECT_EQ(intake_->Check(spec, kNow)->spec.epochs, 100);
  spec.mutable_model()->mutable_lightgbm()->set_num_iterations(30);
  EXPECT_EQ(intake_->Check(spec, kNow)->spec.epochs, 30);
  spec.mutable_model()->mutable_xgboost()->set_num_boost_round(150);
  EXPECT_EQ(intake_->Check(spec, kNow)->spec.epochs, 75);
  spec.mutable_model()->mutable_kernel()->set_alpha(0.1);
  EXPECT_EQ(intake_->Check(spec, kNow)->spec.epochs, 5);
  spec.mutable_model()->mutable_automatic()->add_kinds("mlp");
  EXPECT_EQ(intake_->Check(spec, kNow)->spec.epochs, 7);
}

// Which fields change a step's time, and which do not.
TEST_F(IntakeTest, TheSpeedKeyIsOfTheModelAndTheBatch) {
  const auto key_with = [this](const std::function<void(v1::JobSpec&)>& change) {
    v1::JobSpec spec = GoodSpec();
    change(spec);
    const auto checked = intake_->Check(spec, kNow);
    EXPECT_TRUE(checked.ok()) << checked.status();
    return checked.ok() ? checked->spec.speed_key : "";
  };
  const std::string key = key_with([](v1::JobSpec&) {});
  EXPECT_NE(key, "");
  EXPECT_EQ(key, key_with([](v1::JobSpec& spec) {
              spec.set_name("other");
              spec.mutable_train()->set_epochs(3);
              spec.mutable_train()->set_learning_rate(0.5);
              spec.mutable_data()->set_folds(3);
              spec.mutable_budget()->set_subsample(true);
            }));
  std::set<std::string> keys = {key};
  keys.insert(key_with([](v1::JobSpec& spec) { spec.mutable_model()->mutable_lstm(); }));
  keys.insert(
      key_with([](v1::JobSpec& spec) { spec.mutable_model()->mutable_mlp()->add_hidden(7); }));
  keys.insert(key_with([](v1::JobSpec& spec) { spec.mutable_train()->set_batch(7); }));
  keys.insert(key_with([](v1::JobSpec& spec) { spec.mutable_train()->set_precision("bf16"); }));
  keys.insert(key_with([](v1::JobSpec& spec) { spec.mutable_resources()->set_slots(2); }));
  EXPECT_EQ(keys.size(), 6u);
}

TEST_F(IntakeTest, SubsamplingReachesThePlanner) {
  v1::JobSpec spec = GoodSpec();
  EXPECT_FALSE(intake_->Check(spec, kNow)->spec.subsample);
  spec.mutable_budget()->set_subsample(true);
  EXPECT_TRUE(intake_->Check(spec, kNow)->spec.subsample);
}

TEST_F(IntakeTest, IdsDifferAndEqualSpecsHaveEqualDigests) {
  const auto checked = intake_->Check(GoodSpec(), kNow);
  ASSERT_TRUE(checked.ok()) << checked.status();
  std::set<std::string> ids;
  for (int i = 0; i < 100; ++i) {
    const Job job = intake_->MakeJob(*checked, "local", "", "", kNow);
    ids.insert(job.id);
    EXPECT_EQ(job.spec_sha256, checked->sha256);
  }
  EXPECT_EQ(ids.size(), 100u);
}

TEST_F(IntakeTest, TheCacheKeyIsThatOfAModelNotOfTheirNumber) {
  v1::JobSpec spec = GoodSpec();
  const auto one = intake_->Check(spec, kNow);
  spec.mutable_train()->set_seeds(3);
  const auto three = intake_->Check(spec, kNow);
  ASSERT_TRUE(one.ok() && three.ok()) << three.status();
  EXPECT_EQ(one->spec.seeds, 1);
  EXPECT_EQ(three->spec.seeds, 3);
  EXPECT_FALSE(one->spec.cache_key.empty());
  EXPECT_EQ(one->spec.cache_key, three->spec.cache_key);
  EXPECT_NE(one->sha256, three->sha256);
  spec.mutable_data()->set_seed(8);
  EXPECT_NE(intake_->Check(spec, kNow)->spec.cache_key, one->spec.cache_key);
}

TEST_F(IntakeTest, LinksAreResolvedInTheSpecThatIsKept) {
  ASSERT_EQ(symlink("train.csv", absl::StrCat(folder_, "/link.csv").c_str()), 0);
  v1::JobSpec spec = GoodSpec();
  spec.mutable_data()->set_train(absl::StrCat(folder_, "/link.csv"));
  const auto checked = intake_->Check(spec, kNow);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(checked->resolved.data().train(), absl::StrCat(folder_, "/train.csv"));
}

TEST_F(IntakeTest, ATestFileMayHaveTheTargetAndMoreColumnsWithAWarning) {
  Write("test.csv", "kind,extra,b,id,a\nyes,1,x,3,0.1\n");
  const auto checked = intake_->Check(GoodSpec(), kNow);
  ASSERT_TRUE(checked.ok()) << checked.status();
  ASSERT_EQ(checked->warnings.size(), 1u);
  EXPECT_THAT(checked->warnings[0], HasSubstr("'extra'"));
}

struct Bad {
  std::string name;
  std::function<void(v1::JobSpec&)> change;
  std::vector<std::string> lines;  // the beginning of each line of the message
};

TEST_F(IntakeTest, EachMistakeIsNamedByItsField) {
  Write("noid.csv", "a,b,kind\n1,x,yes\n");
  Write("alone.csv", "kind\nyes\n");
  Write("short.csv", "id,a\n1,2\n");
  const std::string folder = folder_;
  const std::vector<Bad> all = {
      {"nothing at all", [](auto& s) { s = v1::JobSpec(); }, {"data"}},
      {"another version", [](auto& s) { s.set_api("v2"); }, {"api"}},
      {"a name that is a path", [](auto& s) { s.set_name("../up"); }, {"name"}},
      {"a task of no kind", [](auto& s) { s.mutable_task()->set_type("guess"); }, {"task.type"}},
      {"a metric of the other kind",
       [](auto& s) { s.mutable_task()->set_metric("rmse"); },
       {"task.metric"}},
      {"one fold", [](auto& s) { s.mutable_data()->set_folds(1); }, {"data.folds"}},
      {"a relative path",
       [](auto& s) { s.mutable_data()->set_train("train.csv"); },
       {"data.train"}},
      {"a path outside",
       [](auto& s) { s.mutable_data()->set_train("/etc/passwd"); },
       {"data.train"}},
      {"two files that are not there",
       [folder](auto& s) {
         s.mutable_data()->set_train(folder + "/no.csv");
         s.mutable_data()->set_test(folder + "/not.csv");
       },
       {"data.train", "data.test"}},
      {"content that nobody uploaded",
       [](auto& s) { s.mutable_data()->set_train("sha256:" + std::string(64, 'a')); },
       {"data.train"}},
      {"a target that is no column",
       [](auto& s) { s.mutable_data()->set_target("kin"); },
       {"data.target"}},
      {"an id that is no column", [](auto& s) { s.mutable_data()->set_id("nr"); }, {"data.id"}},
      {"an id that is the target", [](auto& s) { s.mutable_data()->set_id("kind"); }, {"data.id"}},
      {"a test file without a feature",
       [folder](auto& s) { s.mutable_data()->set_test(folder + "/short.csv"); },
       {"data.test"}},
      {"no feature",
       [folder](auto& s) {
         s.mutable_data()->clear_id();
         s.mutable_data()->clear_test();
         s.mutable_data()->set_train(folder + "/alone.csv");
       },
       {"data.train"}},
      {"no slot", [](auto& s) { s.mutable_resources()->set_slots(-1); }, {"resources.slots"}},
      {"a share above 1",
       [](auto& s) { s.mutable_budget()->set_plan_share(1.5); },
       {"budget.plan_share"}},
      {"a budget that is no duration",
       [](auto& s) {
         s.mutable_budget()->mutable_time()->set_seconds(5);
         s.mutable_budget()->mutable_time()->set_nanos(-5);
       },
       {"budget.time"}},
  };
  for (const Bad& bad : all) {
    v1::JobSpec spec = GoodSpec();
    bad.change(spec);
    const absl::Status status = intake_->Check(spec, kNow).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << bad.name << ": " << status;
    const std::vector<std::string> lines = absl::StrSplit(status.message(), '\n');
    ASSERT_EQ(lines.size(), bad.lines.size()) << bad.name << ": " << status;
    for (size_t i = 0; i < lines.size(); ++i) {
      EXPECT_THAT(lines[i], testing::StartsWith(bad.lines[i])) << bad.name;
    }
  }
}

TEST_F(IntakeTest, AMisspeltTargetIsGuessed) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_data()->set_target("kin");
  EXPECT_THAT(std::string(intake_->Check(spec, kNow).status().message()),
              HasSubstr("did you mean 'kind'"));
}

TEST_F(IntakeTest, TimeForAFloorIsNeededAndAnOfferIsMade) {
  v1::JobSpec spec = GoodSpec();
  // 10 MB more than can be read for a floor within 600 ms.
  std::string big = "id,a,b,kind\n";
  while (big.size() < 15'000'000) big += "1,0.5,x,yes\n2,0.7,y,no\n";
  Write("train.csv", big);
  spec.mutable_budget()->mutable_deadline()->set_seconds(absl::ToUnixSeconds(kNow));
  spec.mutable_budget()->mutable_deadline()->set_nanos(600'000'000);
  absl::Status status = intake_->Check(spec, kNow).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), testing::StartsWith("budget.deadline"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("15 MB"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("2026-11-"));

  spec.mutable_budget()->mutable_deadline()->set_seconds(absl::ToUnixSeconds(kNow) - 5);
  status = intake_->Check(spec, kNow).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("is over"));

  spec.mutable_budget()->clear_deadline();
  spec.mutable_budget()->mutable_time()->set_seconds(1);
  EXPECT_EQ(intake_->Check(spec, kNow).status(), absl::OkStatus());
}

TEST_F(IntakeTest, OfTwoDeadlinesTheEarlierCounts) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_budget()->mutable_time()->set_seconds(60);
  spec.mutable_budget()->mutable_deadline()->set_seconds(absl::ToUnixSeconds(kNow) + 30);
  auto checked = intake_->Check(spec, kNow);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(intake_->MakeJob(*checked, "o", "", "", kNow).deadline, kNow + absl::Seconds(30));
  spec.mutable_budget()->mutable_time()->set_seconds(20);
  checked = intake_->Check(spec, kNow);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(intake_->MakeJob(*checked, "o", "", "", kNow).deadline, kNow + absl::Seconds(20));
}

TEST_F(IntakeTest, ImagesMayLieInFoldersOrBeNamedByATable) {
  v1::JobSpec spec = GoodSpec();
  spec.clear_model();
  spec.mutable_data()->mutable_image()->set_size(16);
  spec.mutable_data()->set_id("file");
  EXPECT_THAT(Errors(spec), HasSubstr("data.image.column: the training file has no column 'file'"));
  Write("train.csv", "file,kind\n1.png,yes\n2.png,no\n");
  Write("test.csv", "file\n3.png\n");
  EXPECT_EQ(Errors(spec), "");
  Write("images/yes/1.png", "");
  spec.mutable_data()->set_train(absl::StrCat(folder_, "/images"));
  spec.mutable_data()->set_test(absl::StrCat(folder_, "/images"));
  EXPECT_EQ(Errors(spec), "");
  spec.mutable_data()->set_train(absl::StrCat(folder_, "/images/yes"));
  EXPECT_THAT(Errors(spec), HasSubstr("data.train: "));
  EXPECT_THAT(Errors(spec), HasSubstr("has no folders in it"));
  spec.mutable_data()->set_train("/etc");
  EXPECT_THAT(Errors(spec), HasSubstr("lies outside the data roots"));
  spec = GoodSpec();
  spec.mutable_data()->set_train(absl::StrCat(folder_, "/images"));
  EXPECT_THAT(Errors(spec), HasSubstr("is a folder"));
}

TEST_F(IntakeTest, ABudgetInWhichItsImagesCannotBeReadIsRefused) {
  v1::JobSpec spec = GoodSpec();
  spec.clear_model();
  spec.mutable_data()->mutable_image();
  spec.mutable_data()->clear_test();
  spec.mutable_data()->clear_id();
  std::string table = "file,kind\n";
  for (int i = 0; i < 20'000; ++i) absl::StrAppend(&table, "1.png,", i % 2 == 0 ? "yes\n" : "no\n");
  Write("train.csv", table);
  Write("1.png", std::string(10'000, 'x'));
  spec.mutable_budget()->mutable_time()->set_seconds(2);
  EXPECT_THAT(Errors(spec), HasSubstr("leaves 2s, and reading 200 MB in about 20000 files and a "
                                      "first prediction take about 3"));
  EXPECT_THAT(Errors(spec), HasSubstr("(a budget of 4s)"));
  spec.mutable_budget()->mutable_time()->set_seconds(4);
  EXPECT_EQ(Errors(spec), "");
  EXPECT_GT(intake_->Check(spec, kNow)->floor_time, absl::Seconds(3));
}

TEST_F(IntakeTest, AnArrayOfImagesIsJudgedByItsFirstBytes) {
  v1::JobSpec spec = GoodSpec();
  spec.clear_model();
  spec.mutable_data()->mutable_image();
  spec.mutable_data()->clear_id();
  spec.mutable_data()->clear_test();
  const auto array = [&](const std::string& dtype, const std::vector<int64_t>& shape) {
    Write("x.npy", absl::StrCat(NpyHeaderText(dtype, shape), "pixels"));
    spec.mutable_data()->set_train(absl::StrCat(folder_, "/x.npy"));
    return Errors(spec);
  };
  EXPECT_THAT(array("|u1", {5, 8, 8}), HasSubstr("data.train: "));
  EXPECT_THAT(array("|u1", {5, 8, 8}), HasSubstr("data.image.labels names a file"));
  spec.mutable_data()->mutable_image()->set_labels("/etc/passwd");
  EXPECT_THAT(array("|u1", {5, 8, 8}), HasSubstr("data.image.labels: /etc/passwd lies outside"));
  Write("y.npy", "labels");
  spec.mutable_data()->mutable_image()->set_labels(absl::StrCat(folder_, "/y.npy"));
  EXPECT_EQ(array("|u1", {5, 8, 8}), "");
  EXPECT_EQ(array("<f4", {5, 8, 8, 3}), "");
  EXPECT_THAT(array("<f4", {5, 64}), HasSubstr("has shape (5, 64); images are"));
  EXPECT_THAT(array("|O", {5, 8, 8}), HasSubstr("holds Python objects"));
  EXPECT_THAT(array("<f4", {5, 3, 8, 3}), HasSubstr("data.image.layout says which"));
  spec.mutable_data()->mutable_image()->set_layout("channels_first");
  EXPECT_EQ(array("<f4", {5, 3, 8, 3}), "");
  // The same Job with its labels in another file trains the same folds, if the bytes are the same.
  const std::string key = intake_->Check(spec, kNow)->spec.cache_key;
  Write("z.npy", "labels");
  spec.mutable_data()->mutable_image()->set_labels(absl::StrCat(folder_, "/z.npy"));
  EXPECT_EQ(intake_->Check(spec, kNow)->spec.cache_key, key);
  Write("train.csv", "file,kind\n1.png,yes\n2.png,no\n");
  spec.mutable_data()->set_train(absl::StrCat(folder_, "/train.csv"));
  EXPECT_THAT(Errors(spec), HasSubstr("is no array: data.image.labels has none to be of"));
}

TEST_F(IntakeTest, WeightsToStartFromAreKnownByTheirBytesAndTheirMap) {
  v1::JobSpec spec = GoodSpec();
  v1::PretrainedSpec& weights = *spec.mutable_model()->mutable_pretrained();
  const std::string plain = intake_->Check(GoodSpec(), kNow)->spec.cache_key;
  weights.set_file(Write("w.safetensors", "weights"));
  const auto checked = intake_->Check(spec, kNow);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(checked->resolved.model().pretrained().sha256(), Sha256Hex("weights"));
  EXPECT_NE(checked->spec.cache_key, plain);
  EXPECT_EQ(checked->spec.speed_key, intake_->Check(GoodSpec(), kNow)->spec.speed_key);
  weights.set_file(Write("copy.safetensors", "weights"));
  EXPECT_EQ(intake_->Check(spec, kNow)->spec.cache_key, checked->spec.cache_key);
  weights.set_file(Write("w.safetensors", "others"));
  EXPECT_NE(intake_->Check(spec, kNow)->spec.cache_key, checked->spec.cache_key);
  // A map counts by its content, wherever the file is.
  weights.set_file(Write("w.safetensors", "weights"));
  (*weights.mutable_map())["layers.{i}.weight"] = "l.{i}.w";
  const auto mapped = intake_->Check(spec, kNow);
  EXPECT_NE(mapped->spec.cache_key, checked->spec.cache_key);
  weights.clear_map();
  weights.set_map_file(Write("map.yaml", "layers.{i}.weight: l.{i}.w\n"));
  EXPECT_EQ(intake_->Check(spec, kNow)->json, mapped->json);
}

TEST_F(IntakeTest, WeightsAndMapsLieBelowTheDataRoots) {
  v1::JobSpec spec = GoodSpec();
  v1::PretrainedSpec& weights = *spec.mutable_model()->mutable_pretrained();
  weights.set_file("/etc/passwd");
  weights.set_map_file(absl::StrCat(folder_, "/gone.yaml"));
  EXPECT_THAT(Errors(spec), HasSubstr("model.pretrained.file: /etc/passwd lies outside"));
  EXPECT_THAT(Errors(spec), HasSubstr("model.pretrained.map_file: cannot read"));
  weights.set_file(Write("w.safetensors", "weights"));
  weights.set_map_file(Write("map.yaml", "a: [b]\n"));
  EXPECT_THAT(Errors(spec), HasSubstr("map.yaml: line 1, column 1: expected PARAMETER: TENSOR"));
  weights.set_map_file(Write("map.yaml", "a.{i: b\n"));
  EXPECT_THAT(Errors(spec), HasSubstr("has a mistake at 'a.{i'"));
  weights.set_map_file(Write("map.yaml", std::string((1 << 20) + 1, '#')));
  EXPECT_THAT(Errors(spec), HasSubstr("more than 1 MiB"));
}

TEST_F(IntakeTest, WeightsThatAreTooLargeAreRefusedUnread) {
  v1::JobSpec spec = GoodSpec();
  const std::string path = Write("w.safetensors", "");
  ASSERT_EQ(truncate(path.c_str(), off_t{1} << 40), 0);  // to read it would take an hour
  spec.mutable_model()->mutable_pretrained()->set_file(path);
  EXPECT_THAT(Errors(spec), HasSubstr("more than 16 GiB"));
}

}  // namespace
}  // namespace traind
