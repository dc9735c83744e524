#include "common/spec/spec_rules.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "common/spec/field_text.h"
#include "common/spec/search_rules.h"
#include "tests/common/spec/spec_fixture.h"

namespace traind {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

TEST(SpecRulesTest, TheSmallestSpecIsGood) { EXPECT_EQ(Errors(GoodSpec()), ""); }

TEST(SpecRulesTest, RequiredFieldsAreMissed) {
  EXPECT_EQ(Errors(v1::JobSpec()), "data: data is missing");
  v1::JobSpec spec = GoodSpec();
  spec.mutable_data()->clear_train();
  EXPECT_EQ(Errors(spec), "data.train: data.train is missing");
}

TEST(SpecRulesTest, AJobThatPredictsWithAnothersModelsHasNoDataOfItsOwn) {
  v1::JobSpec spec;
  spec.set_api("v1");
  spec.mutable_predict()->set_from("digits-7f3k2a");
  EXPECT_EQ(Errors(spec), "predict.data: predict.data is missing");
  spec.mutable_predict()->set_data("/data/later.csv");
  EXPECT_EQ(Errors(spec), "");
  spec.mutable_data()->set_train("/data/train.csv");
  spec.mutable_predictions()->set_ensemble("greedy");
  EXPECT_EQ(Errors(spec),
            "data: data is that of the Job whose models are used; leave it out\n"
            "predictions.ensemble: predictions.ensemble is that of the Job whose models are used; "
            "leave it out");
}

TEST(SpecRulesTest, AfterNamesSomeJobsAndIsNotForBorrowedModels) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_after();
  EXPECT_EQ(Errors(spec), "after.jobs: after.jobs is missing");
  spec.mutable_after()->add_jobs("prepare-1");
  EXPECT_EQ(Errors(spec), "");
  EXPECT_EQ(ResolveSpec(spec).after().end(), "success");
  EXPECT_FALSE(GoOnFrom(spec, v1::JobSpec()).has_after());
  spec.mutable_after()->set_end("failure");
  EXPECT_EQ(Errors(spec), "after.end: after.end 'failure' must be one of: success, any");
  spec.mutable_after()->clear_end();
  for (int i = 0; i < 100; ++i) spec.mutable_after()->add_jobs("other");
  EXPECT_EQ(Errors(spec), "after.jobs: after.jobs names 101 jobs; 100 are the most");

  v1::JobSpec predicts;
  predicts.set_api("v1");
  predicts.mutable_predict()->set_from("digits-7f3k2a");
  predicts.mutable_predict()->set_data("/data/later.csv");
  predicts.mutable_after()->add_jobs("digits-7f3k2a");
  EXPECT_EQ(Errors(predicts),
            "after: after is not for a Job that uses the models that another one has at its "
            "submit");
}

TEST(SpecRulesTest, ASpecThatPredictsIsResolvedWithoutWhatItBorrows) {
  v1::JobSpec spec;
  spec.set_api("v1");
  spec.mutable_predict()->set_from("digits-7f3k2a");
  spec.mutable_predict()->set_data("/data/later.csv");
  spec.mutable_predictions()->set_format("npy");
  const v1::JobSpec resolved = ResolveSpec(spec);
  EXPECT_EQ(resolved.predict().min_members(), 1);
  EXPECT_EQ(resolved.predictions().format(), "npy");
  EXPECT_EQ(resolved.predictions().ensemble(), "");
  EXPECT_FALSE(resolved.has_task() || resolved.has_data() || resolved.has_model());
}

v1::JobSpec ProgramSpec() {
  v1::JobSpec spec;
  for (const char* word : {"python", "train.py", "--fold", "{fold}"}) {
    spec.mutable_run()->add_command(word);
  }
  spec.mutable_run()->set_folder("/home/me/code");
  return spec;
}

TEST(SpecRulesTest, AJobThatRunsAProgramHasNoDataAndNoModel) {
  EXPECT_EQ(Errors(ProgramSpec()), "");
  v1::JobSpec spec = ProgramSpec();
  spec.mutable_model()->mutable_mlp();
  spec.set_preset("fast");
  EXPECT_EQ(Errors(spec),
            "model: model has no meaning for a program (run); leave it out\n"
            "preset: preset has no meaning for a program (run); leave it out");
}

TEST(SpecRulesTest, WhatAProgramIsGivenIsChecked) {
  v1::JobSpec spec = ProgramSpec();
  spec.mutable_run()->add_command("line 1\n\tline 2");
  EXPECT_EQ(Errors(spec), "") << "scripts have lines";
  spec.mutable_run()->add_command("{lr}");
  spec.mutable_run()->add_expect("../sub.csv");
  (*spec.mutable_run()->mutable_environment())["TRAIND_FOLD"] = "7";
  EXPECT_EQ(
      Errors(spec),
      "run.command[5]: run.command[5] '{lr}' is none of {fold}, {folds}, {seed}, {epochs}; the "
      "text itself is written {{lr}}\n"
      "run.expect[0]: run.expect[0] '../sub.csv' leads out of the program's folder\n"
      "run.environment.TRAIND_FOLD: run.environment.TRAIND_FOLD is set by traind itself");
  EXPECT_EQ(Errors([] {
              v1::JobSpec none;
              none.mutable_run()->set_folder("/home/me");
              return none;
            }()),
            "run.command: run.command is missing");
}

v1::JobSpec CommandSpecOf() {
  v1::JobSpec spec = GoodSpec();
  spec.clear_model();
  spec.clear_train();
  v1::CommandSpec& command = *spec.mutable_model()->mutable_command();
  command.add_train("python3");
  command.add_train("train.py");
  command.set_code("/home/me/code");
  return spec;
}

TEST(SpecRulesTest, AProgramMayBeAModel) {
  EXPECT_EQ(Errors(CommandSpecOf()), "");
  v1::JobSpec spec = CommandSpecOf();
  spec.mutable_train()->mutable_checkpoint_every()->set_seconds(3);
  EXPECT_EQ(Errors(spec), "");
  spec.mutable_budget()->mutable_time()->set_seconds(600);
  const v1::JobSpec resolved = ResolveSpec(spec);
  EXPECT_EQ(Errors(resolved), "") << "a resolved spec is a spec";
  EXPECT_EQ(resolved.train().checkpoint_every().seconds(), 3);
  EXPECT_EQ(resolved.model().command().oof(), "oof_predictions.csv");
  EXPECT_EQ(resolved.model().command().predictions(), "test_predictions.csv");
  EXPECT_EQ(resolved.budget().reserve_share(), 0.1);
}

TEST(SpecRulesTest, AProgramThatIsAModelHasNoSettingsOfNetworks) {
  v1::JobSpec spec = CommandSpecOf();
  spec.mutable_model()->mutable_command()->add_predict("{lr}");
  spec.mutable_model()->mutable_command()->set_oof("/tmp/x.csv");
  (*spec.mutable_model()->mutable_command()->mutable_environment())["A=B"] = "7";
  spec.mutable_train()->set_epochs(3);
  spec.mutable_train()->set_seeds(2);
  spec.mutable_budget()->set_subsample(true);
  spec.set_preset("fast");
  const std::string errors = Errors(spec);
  for (const char* words :
       {"model.command.predict[0] '{lr}' is none of",
        "model.command.oof '/tmp/x.csv' is an absolute", "model.command.environment.A=B is no name",
        "model.command.epochs is its number", "train.seeds has no meaning",
        "budget.subsample has no", "preset has no meaning"}) {
    EXPECT_NE(errors.find(words), errors.npos) << words << "\n" << errors;
  }
}

TEST(SpecRulesTest, ASearchFillsTheSettingsOfAProgram) {
  v1::JobSpec spec = CommandSpecOf();
  spec.mutable_budget()->mutable_time()->set_seconds(600);
  v1::CommandSpec& command = *spec.mutable_model()->mutable_command();
  command.add_train("--lr={lr}");
  (*command.mutable_environment())["DEPTH"] = "{depth}";
  (*command.mutable_settings())["depth"] = "5";
  spec.mutable_search()->set_trials(4);
  auto& space = *spec.mutable_search()->mutable_space();
  space["lr"] = "log(1e-4, 1)";
  space["model.command.settings.depth"] = "int(2, 8)";
  EXPECT_EQ(Errors(spec), "");
  const v1::JobSpec resolved = ResolveSpec(spec);
  EXPECT_EQ(Errors(resolved), "") << "a resolved spec is a spec";
  EXPECT_EQ(resolved.search().space().count("model.command.settings.lr"), 1);
  EXPECT_EQ(resolved.search().space_size(), 2);
  EXPECT_EQ(resolved.model().command().settings().at("lr"), "0.01") << "the middle of the range";
  EXPECT_EQ(resolved.model().command().settings().at("depth"), "5");
  EXPECT_EQ(resolved.predictions().ensemble(), "greedy");
  v1::JobSpec tried = resolved;
  ASSERT_TRUE(SetSearched("model.command.settings.lr", "0.5", tried).ok());
  EXPECT_EQ(SearchedValue("model.command.settings.lr", tried), "0.5");
}

TEST(SpecRulesTest, SettingsThatNothingReadsAndOtherMistakesOfASearchAreNamed) {
  v1::JobSpec spec = CommandSpecOf();
  spec.mutable_budget()->mutable_time()->set_seconds(600);
  v1::CommandSpec& command = *spec.mutable_model()->mutable_command();
  command.add_train("{lr}");
  (*command.mutable_settings())["unread"] = "1";
  (*command.mutable_settings())["fold"] = "1";
  command.add_beside("lightgbm");
  command.add_setup("make");
  command.set_network("off");
  spec.mutable_resources()->set_slots(2);
  auto& space = *spec.mutable_search()->mutable_space();
  space["lr"] = "between(1, 2)";
  space["train.learning_rate"] = "uniform(0, 1)";
  const std::string errors = Errors(spec);
  for (const char* words :
       {"model.command.settings.unread is read by nothing", "settings.fold is no name of a setting",
        "search.space.model.command.settings.lr", "train.learning_rate is of networks",
        "beside does not go with search", "beside trains a fold on one slot",
        "model.command.setup is of programs with one slot",
        "model.command.network 'off' is of programs"}) {
    EXPECT_NE(errors.find(words), errors.npos) << words << "\n" << errors;
  }
  space.clear();
  EXPECT_NE(Errors(spec).find("search.space is missing"), std::string::npos);
}

TEST(SpecRulesTest, WhatExpectedFilesLookLikeNeedsTheirNames) {
  v1::JobSpec spec = ProgramSpec();
  spec.mutable_run()->clear_expect();
  spec.mutable_run()->set_sample_submission("/home/me/sample.csv");
  (*spec.mutable_run()->mutable_ranges())["y"] = "between(0, 1)";
  spec.mutable_run()->add_checkpoints("/abs.pt");
  const std::string errors = Errors(spec);
  for (const char* words : {"name them in run.expect", "run.ranges.y", "run.checkpoints[0]"}) {
    EXPECT_NE(errors.find(words), errors.npos) << words << "\n" << errors;
  }
}

TEST(SpecRulesTest, AProgramHasNearlyAllOfItsTime) {
  for (const int seconds : {5, 10, 30, 600, 7200, 864'000}) {
    v1::JobSpec spec = ProgramSpec();
    spec.mutable_budget()->mutable_time()->set_seconds(seconds);
    const v1::BudgetSpec budget = ResolveSpec(spec).budget();
    const double held_s = budget.reserve_share() * seconds;
    EXPECT_GE(held_s, 1.4999) << seconds;
    EXPECT_LE(held_s, 60.0001) << seconds;
    EXPECT_LE(budget.stop_share() + budget.reserve_share(), 1.0001) << seconds;
    EXPECT_GE(budget.plan_share(), 0.7) << seconds;
  }
  v1::JobSpec own = ProgramSpec();
  own.mutable_budget()->set_reserve_share(0.5);
  EXPECT_EQ(ResolveSpec(own).budget().reserve_share(), 0.5);
  EXPECT_EQ(Errors(own), "") << "the plan has the rest";
  EXPECT_EQ(ResolveSpec(own).run().folds(), 1);
}

TEST(SpecRulesTest, NumbersOverTheWireAreChecked) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_train()->set_epochs(-1);
  spec.mutable_data()->set_folds(1);
  spec.mutable_model()->mutable_mlp()->set_dropout(std::numeric_limits<double>::quiet_NaN());
  spec.mutable_model()->mutable_mlp()->add_hidden(0);
  spec.mutable_train()->set_learning_rate(-0.5);
  EXPECT_EQ(Errors(spec),
            "data.folds: data.folds '1' is below the minimum, 2\n"
            "model.mlp.hidden[0]: model.mlp.hidden[0] '0' is below the minimum, 1\n"
            "model.mlp.dropout: model.mlp.dropout 'nan' is not finite\n"
            "train.epochs: train.epochs '-1' is below the minimum, 1\n"
            "train.learning_rate: train.learning_rate '-0.5' is below the minimum, 1e-09");
}

TEST(SpecRulesTest, DurationsAndMomentsOverTheWireAreChecked) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_budget()->mutable_time()->set_seconds(-5);
  EXPECT_EQ(Errors(spec), "budget.time: budget.time '-5s' is below the minimum, 1s");
  spec.mutable_budget()->mutable_time()->set_seconds(5);
  spec.mutable_budget()->mutable_time()->set_nanos(-1);
  EXPECT_EQ(Errors(spec), "budget.time: budget.time is no valid google.protobuf.Duration");
  spec.mutable_budget()->clear_time();
  spec.mutable_budget()->mutable_deadline()->set_seconds(1LL << 60);
  EXPECT_EQ(Errors(spec), "budget.deadline: budget.deadline is no valid google.protobuf.Timestamp");
}

TEST(SpecRulesTest, OnlyAbsolutePathsCount) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_data()->set_train("a.csv");
  EXPECT_EQ(Errors(spec), "data.train: data.train 'a.csv' is not an absolute path");
  spec.mutable_data()->set_train("sha256:abc");
  EXPECT_EQ(Errors(spec), "");
  spec.mutable_data()->set_train("/a\nb");
  EXPECT_EQ(Errors(spec), "data.train: data.train '/a\\nb' contains a control character");
}

TEST(SpecRulesTest, NamesAndLabelsAreChecked) {
  for (const char* bad : {"a/b", "..", "-a", ".a", "a b", "\xc3\xa9"}) {
    v1::JobSpec spec = GoodSpec();
    spec.set_name(bad);
    EXPECT_EQ(CheckSpec(spec).size(), 1u) << bad;
  }
  v1::JobSpec spec = GoodSpec();
  spec.set_name(std::string(63, 'a'));
  EXPECT_EQ(Errors(spec), "");
  spec.set_name(std::string(64, 'a'));
  EXPECT_EQ(CheckSpec(spec).size(), 1u);
  spec = GoodSpec();
  for (int i = 0; i < 33; ++i) (*spec.mutable_labels())[absl::StrCat("k", i)] = "v";
  EXPECT_EQ(Errors(spec), "labels: labels has 33 labels; 32 are the most");
}

TEST(SpecRulesTest, TheMetricFitsTheTask) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_task()->set_metric("rmse");
  EXPECT_EQ(Errors(spec),
            "task.metric: task.metric 'rmse' does not fit classification; use accuracy, "
            "logloss, auc, f1");
  spec.mutable_task()->set_type("regression");
  EXPECT_EQ(Errors(spec), "");
}

// Checks that every default of the proto file is valid for its own field.
void ExpectDefaultsAreValid(const Descriptor& type) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (!IsScalarField(field)) {
      if (!field.is_map()) ExpectDefaultsAreValid(*field.message_type());
      continue;
    }
    const std::string& text = RulesOf(field).default_();
    if (text.empty() || field.full_name() == "traind.v1.TaskSpec.metric" || field.is_repeated()) {
      continue;
    }
    std::unique_ptr<google::protobuf::Message> message(
        google::protobuf::MessageFactory::generated_factory()->GetPrototype(&type)->New());
    ScalarText scalar;
    scalar.text = text;
    EXPECT_TRUE(SetFieldFromText(field, scalar, *message).ok()) << field.full_name();
  }
}

TEST(SpecRulesTest, TrainingOptionsMustFitTogether) {
  v1::JobSpec spec = GoodSpec();
  v1::TrainSpec& train = *spec.mutable_train();
  train.mutable_loss()->set_kind("mse");
  EXPECT_EQ(Errors(spec), "train.loss.kind: train.loss.kind 'mse' does not fit classification");
  train.mutable_loss()->set_kind("cross_entropy");
  train.mutable_loss()->set_class_weights("balanced");
  EXPECT_EQ(Errors(spec), "");
  train.mutable_loss()->add_weights(2);
  EXPECT_EQ(Errors(spec),
            "train.loss.weights: train.loss.weights contradicts class_weights: balanced");
  spec.mutable_task()->set_type("regression");
  train.mutable_loss()->set_kind("huber");
  train.mutable_loss()->clear_class_weights();
  EXPECT_EQ(Errors(spec),
            "train.loss: train.loss has class weights or label smoothing, which need classes");
  train.mutable_loss()->clear_weights();
  EXPECT_EQ(Errors(spec), "");
  train.mutable_optimizer()->set_nesterov(true);
  EXPECT_EQ(Errors(spec),
            "train.optimizer.nesterov: train.optimizer.nesterov needs kind sgd with a momentum "
            "above 0");
  train.mutable_optimizer()->set_kind("sgd");
  EXPECT_EQ(Errors(spec), "");
  train.mutable_schedule()->set_warmup_steps(0);
  train.mutable_schedule()->set_warmup_share(0.1);
  EXPECT_EQ(Errors(spec),
            "train.schedule: train.schedule has more than one of warmup_steps, warmup_epochs, "
            "warmup_share");
  train.clear_schedule();
  train.set_collective("nccl");
  spec.mutable_resources()->set_device("cpu");
  EXPECT_EQ(Errors(spec), "train.collective: train.collective 'nccl' needs resources.device cuda");
  train.set_collective("shm");
  spec.mutable_resources()->set_device("cuda");
  EXPECT_EQ(Errors(spec), "train.collective: train.collective 'shm' needs resources.device cpu");
}

TEST(SpecRulesTest, WorkersAndGpusAreAskedForByLabelsAndNames) {
  v1::JobSpec spec = GoodSpec();
  v1::ResourceSpec& asked = *spec.mutable_resources();
  (*asked.mutable_labels())["rack"] = "a";
  asked.set_gpu("H100");
  asked.set_gpu_memory("80GB");
  EXPECT_EQ(Errors(spec), "");
  EXPECT_EQ(ResolveSpec(spec).resources().device(), "cuda");
  asked.set_gpu_memory("80");
  EXPECT_EQ(Errors(spec),
            "resources.gpu_memory: resources.gpu_memory '80' is no size: 40GiB, 80GB");
  asked.set_gpu_memory("80GB");
  asked.set_device("cpu");
  EXPECT_EQ(CheckSpec(spec).size(), 2u);
  asked.Clear();
  (*asked.mutable_labels())["-x"] = "a";
  EXPECT_EQ(Errors(spec),
            "resources.labels.-x: resources.labels.-x is no label name: letters, digits, - _ . and "
            "/, at most 63, the first a letter or digit");
  asked.clear_labels();
  for (int i = 0; i < 17; ++i) (*asked.mutable_labels())[absl::StrCat("k", i)] = "v";
  EXPECT_EQ(Errors(spec), "resources.labels: resources.labels has 17 labels; 16 are the most");
}

TEST(SpecRulesTest, EveryDefaultIsValid) {
  ExpectDefaultsAreValid(*v1::JobSpec::descriptor());
  EXPECT_EQ(Errors(ResolveSpec(GoodSpec())), "");
}

TEST(SpecRulesTest, UnsetFieldsGetTheirDefaults) {
  v1::JobSpec of_network = GoodSpec();
  of_network.mutable_model()->mutable_mlp();
  const v1::JobSpec spec = ResolveSpec(of_network);
  EXPECT_EQ(spec.name(), "job");
  EXPECT_EQ(spec.task().metric(), "accuracy");
  EXPECT_EQ(spec.data().folds(), 5);
  ASSERT_EQ(spec.model().mlp().hidden_size(), 2);
  EXPECT_EQ(spec.model().mlp().hidden(1), 256);
  EXPECT_EQ(spec.model().mlp().dropout(), 0.1);
  EXPECT_EQ(spec.train().epochs(), 20);
  EXPECT_EQ(spec.train().batch(), 0);       // auto
  EXPECT_EQ(spec.train().precision(), "");  // auto
  EXPECT_EQ(spec.train().patience(), 5);
  EXPECT_FALSE(spec.train().has_checkpoint_every());  // follows the Job's time
  EXPECT_EQ(spec.resources().slots(), 1);
  EXPECT_EQ(spec.budget().policy(), "adaptive");
  EXPECT_EQ(spec.budget().plan_share(), 0.8);
  EXPECT_FALSE(spec.budget().has_time());
  v1::JobSpec regression = GoodSpec();
  regression.mutable_task()->set_type("regression");
  EXPECT_EQ(ResolveSpec(regression).task().metric(), "rmse");
}

TEST(SpecRulesTest, SetFieldsStay) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_train()->set_patience(0);
  spec.mutable_model()->mutable_mlp()->add_hidden(3);
  spec.mutable_task()->set_metric("f1");
  const v1::JobSpec resolved = ResolveSpec(spec);
  EXPECT_EQ(resolved.train().patience(), 0);
  ASSERT_EQ(resolved.model().mlp().hidden_size(), 1);
  EXPECT_EQ(resolved.task().metric(), "f1");
  EXPECT_EQ(SpecToJson(ResolveSpec(resolved)), SpecToJson(resolved));
}

TEST(SpecRulesTest, JsonIsCanonicalAndComesBack) {
  v1::JobSpec spec = ResolveSpec(GoodSpec());
  for (int i = 0; i < 20; ++i) (*spec.mutable_labels())[absl::StrCat("k", i)] = "v";
  v1::JobSpec other = ResolveSpec(GoodSpec());
  for (int i = 19; i >= 0; --i) (*other.mutable_labels())[absl::StrCat("k", i)] = "v";
  EXPECT_EQ(SpecToJson(spec), SpecToJson(other));
  const auto back = SpecFromJson(SpecToJson(spec));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(*back, spec));
  EXPECT_FALSE(SpecFromJson("{\"nme\": \"a\"}").ok());
  EXPECT_FALSE(SpecFromJson("{").ok());
}

// Returns the output of Protobuf's own printer, with its keys sorted.
std::string PrintedByProtobuf(const v1::JobSpec& spec) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string json;
  EXPECT_TRUE(google::protobuf::util::MessageToJsonString(spec, &json, options).ok());
  return nlohmann::json::parse(json).dump();
}

TEST(SpecRulesTest, ADurationReplacesTheDefaultAndIsNotAddedToIt) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_train()->mutable_checkpoint_every()->set_nanos(500'000'000);
  spec.mutable_budget()->mutable_reserve_least()->set_seconds(2);  // default: 400ms
  const v1::JobSpec resolved = ResolveSpec(spec);
  EXPECT_EQ(resolved.train().checkpoint_every().seconds(), 0);
  EXPECT_EQ(resolved.train().checkpoint_every().nanos(), 500'000'000);
  EXPECT_EQ(resolved.budget().reserve_least().seconds(), 2);
  EXPECT_EQ(resolved.budget().reserve_least().nanos(), 0);
  // So it is where a Job goes on from another one.
  v1::JobSpec source = GoodSpec();
  source.mutable_train()->mutable_checkpoint_every()->set_seconds(30);
  EXPECT_EQ(GoOnFrom(source, spec).train().checkpoint_every().seconds(), 0);
}

TEST(SpecRulesTest, JsonIsWhatProtobufPrints) {
  v1::JobSpec spec = GoodSpec();
  EXPECT_EQ(SpecToJson(spec), PrintedByProtobuf(spec));
  spec = ResolveSpec(spec);
  EXPECT_EQ(SpecToJson(spec), PrintedByProtobuf(spec));
  spec.mutable_data()->set_seed(std::numeric_limits<uint64_t>::max());
  spec.mutable_data()->set_id("a \"quoted\" <b>\t\\ \xc3\xa4\xe2\x82\xac\x01\x7f");
  spec.mutable_train()->mutable_checkpoint_every()->set_seconds(1);
  spec.mutable_train()->mutable_checkpoint_every()->set_nanos(500'000'000);
  spec.mutable_budget()->mutable_time()->set_nanos(1000);
  spec.mutable_budget()->mutable_deadline()->set_seconds(1'795'000'000);
  spec.mutable_budget()->mutable_deadline()->set_nanos(123'000'000);
  spec.mutable_labels()->insert({{"b", "2"}, {"a", "1"}, {"a.b", ""}});
  spec.set_priority(-7);
  spec.set_output("/out/p.csv");
  for (const double value : {1e-9, 0.1, 1.0, 3.0, 1.0 / 3, 2.5e-5, 1e20, 123456.789, 5e-324}) {
    spec.mutable_train()->set_learning_rate(value);
    EXPECT_EQ(SpecToJson(spec), PrintedByProtobuf(spec));
  }
  spec.mutable_model()->mutable_mlp()->clear_hidden();
  spec.mutable_train()->clear_patience();
  EXPECT_EQ(SpecToJson(spec), PrintedByProtobuf(spec));
  EXPECT_EQ(SpecToJson(v1::JobSpec()), PrintedByProtobuf(v1::JobSpec()));
}

TEST(SpecRulesTest, AShareOfTheRowsIsDrawnOrThereIsNone) {
  v1::JobSpec spec = GoodSpec();
  EXPECT_FALSE(ResolveSpec(spec).budget().subsample());
  spec.mutable_budget()->set_subsample(true);
  EXPECT_TRUE(CheckSpec(spec).empty());
  EXPECT_TRUE(CheckSpec(ResolveSpec(spec)).empty());
  spec.mutable_train()->set_shuffle(false);
  const std::vector<SpecError> errors = CheckSpec(spec);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].field_path, "budget.subsample");
  spec.mutable_budget()->set_subsample(false);
  EXPECT_TRUE(CheckSpec(spec).empty());
}

TEST(SpecRulesTest, JsonHasTheKeysThatRanksRead) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_model()->mutable_mlp();
  spec.mutable_data()->set_seed(7);
  EXPECT_EQ(
      SpecToJson(ResolveSpec(spec)),
      R"({"api":"v1","budget":{"first_fold_share":0.2,"plan_share":0.8,"policy":"adaptive",)"
      R"("reserve_least":"0.400s","reserve_margin":1.3,)"
      R"("reserve_share":0.15,"stop_share":0.7,"subsample":false},"cache":"use","data":{"folds":5,"id":"","known_ahead":[],"seed":"7",)"
      R"("target":"y","targets":[],"test":"","text_features":true,"train":"/data/train.csv"},"from":"",)"
      R"("labels":{},"model":{"mlp":{)"
      R"("dropout":0.1,"ensemble_members":1,"hidden":[256,256]}},"name":"job","output":"",)"
      R"("predictions":{"ensemble":"mean","format":"csv","probabilities":true,"quantiles":[]},)"
      R"("preset":"","priority":0,)"
      R"("resources":{"device":"","gpu":"","gpu_memory":"","labels":{},"slots":1},)"
      R"("task":{"metric":"accuracy",)"
      R"("type":"classification"},"train":{"accumulation":1,"batch":0,)"
      R"("checkpoint_epochs":0,"clip_norm":5,"collective":"",)"
      R"("ema":0,"ema_warmup":false,"epochs":20,"find_learning_rate":false,)"
      R"("freeze":{"epochs":0,"learning_rate":0,"thaw_layers":0},)"
      R"("gradient_norm":false,"inference_precision":"","keep_best":0,"layer_decay":1,"learning_rate":0,)"
      R"("loss":{"class_weights":"none","huber_delta":1,"kind":"","label_smoothing":0,)"
      R"("weights":[]},"optimizer":{"alpha":0.99,"beta1":0.9,"beta2":0.999,"eps":1e-08,)"
      R"("kind":"adamw","nesterov":false},"paths":{"cuda_graph":true,)"
      R"("cudnn_benchmark":true,"fused_optimizer":true,"handwritten_backward":true,)"
      R"("handwritten_forward":true},)"
      R"("patience":5,)"
      R"("precision":"","recompute":"","rendezvous":{"host":"","port":0},)"
      R"("scale_learning_rate":"none","schedule":{"end_divisor":10000,"gamma":0.1,)"
      R"("kind":"cosine","least":0,"period":10,"period_growth":1,"power":1,"rise":0.3,)"
      R"("start_divisor":25},"seeds":1,"shorten_sequences":false,"shuffle":true,"swa":0,"target_transform":"none"},"trials":[]})");
}

TEST(SpecRulesTest, DifferingFieldsAreNamed) {
  v1::JobSpec a = ResolveSpec(GoodSpec());
  v1::JobSpec b = a;
  EXPECT_TRUE(DifferingFields(a, b).empty());
  b.mutable_train()->set_epochs(21);
  b.mutable_data()->set_target("z");
  b.mutable_budget()->mutable_time()->set_seconds(5);
  (*b.mutable_labels())["a"] = "b";
  EXPECT_EQ(absl::StrJoin(DifferingFields(a, b), " "),
            "data.target train.epochs budget.time labels");
}

TEST(SpecRulesTest, PrintableHidesControlBytes) {
  EXPECT_EQ(Printable("a\x1b[31mb\n\x7f"), "a\\x1b[31mb\\n\\x7f");
  EXPECT_EQ(Printable("\xc2\x9b"), "\\xc2\\x9b");
  EXPECT_EQ(Printable("\xc3\xa9"), "\xc3\xa9");
  EXPECT_EQ(Printable("abcdef", 3), "abc...");
}

TEST(SpecRulesTest, SharesOfTheWindowLeaveRoomForEachOther) {
  v1::JobSpec spec = GoodSpec();
  v1::BudgetSpec& budget = *spec.mutable_budget();
  budget.set_plan_share(0.9);
  budget.set_reserve_share(0.1);
  EXPECT_EQ(Errors(spec), "");
  budget.set_reserve_share(0.2);
  EXPECT_EQ(Errors(spec),
            "budget.plan_share: budget.plan_share '0.9' and budget.reserve_share '0.2' sum to more "
            "than 1: the plan would fill what is held back");
  budget.set_plan_share(0.3);
  budget.set_stop_share(0.85);
  budget.set_first_fold_share(0.4);
  EXPECT_EQ(Errors(spec),
            "budget.stop_share: budget.stop_share '0.85' and budget.reserve_share '0.2' sum to "
            "more than 1: training would stop within what is held back\n"
            "budget.first_fold_share: budget.first_fold_share '0.4' is above budget.plan_share, "
            "0.3");
  budget.clear_plan_share();  // the defaults count, too
  budget.clear_first_fold_share();
  budget.set_stop_share(0.5);
  budget.set_reserve_share(0.3);
  ASSERT_EQ(CheckSpec(spec).size(), 1u);
  EXPECT_EQ(CheckSpec(spec)[0].field_path, "budget.plan_share");
}

TEST(SpecRulesTest, ABudgetIsMoreThanNothing) {
  for (const int seconds : {0, -5}) {
    v1::JobSpec spec = GoodSpec();
    spec.mutable_budget()->mutable_time()->set_seconds(seconds);
    ASSERT_EQ(CheckSpec(spec).size(), 1u) << seconds;
    EXPECT_EQ(CheckSpec(spec)[0].field_path, "budget.time");
  }
}

TEST(SpecRulesTest, ASpecThatGoesOnFromAJobMayLeaveOutWhatThatHas) {
  v1::JobSpec spec;
  spec.set_from("adult-1");
  EXPECT_EQ(Errors(spec), "");
  spec.set_preset("best");
  ASSERT_EQ(CheckSpec(spec).size(), 1u);
  EXPECT_EQ(CheckSpec(spec)[0].field_path, "preset");
}

TEST(SpecRulesTest, AForecastHasATimeAWindowAndAHorizon) {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_data()->set_window(8);
  EXPECT_EQ(CheckSpec(spec).size(), 1u);  // not a metric of classification
  spec.mutable_task()->set_type("forecasting");
  ASSERT_EQ(CheckSpec(spec).size(), 1u);
  EXPECT_EQ(CheckSpec(spec)[0].field_path, "data.time");
  spec.mutable_data()->set_time("day");
  EXPECT_TRUE(CheckSpec(spec).empty());
  const v1::JobSpec resolved = ResolveSpec(spec);
  EXPECT_EQ(resolved.data().window(), 8);
  EXPECT_EQ(resolved.data().horizon(), 1);
  EXPECT_EQ(resolved.task().metric(), "rmse");
  spec.mutable_data()->clear_window();
  spec.mutable_data()->set_horizon(0);
  EXPECT_EQ(ResolveSpec(spec).data().window(), 24);
  EXPECT_EQ(ResolveSpec(spec).data().horizon(), 0);
}

TEST(SpecRulesTest, ASplitNeedsItsColumnAndAColumnHasOneRole) {
  for (const auto& [split, field] :
       {std::make_pair("grouped", "group"), std::make_pair("forward", "time"),
        std::make_pair("column", "fold_column")}) {
    v1::JobSpec spec = GoodSpec();
    spec.mutable_data()->set_split(split);
    ASSERT_EQ(CheckSpec(spec).size(), 1u) << split;
    EXPECT_EQ(CheckSpec(spec)[0].message,
              std::string("data.split '") + split + "' needs data." + field);
  }
  v1::JobSpec spec = GoodSpec();
  spec.mutable_data()->set_group(spec.data().target());
  ASSERT_EQ(CheckSpec(spec).size(), 1u);
  EXPECT_EQ(CheckSpec(spec)[0].field_path, "data.group");
}

}  // namespace
}  // namespace traind
