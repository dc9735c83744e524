#include "common/spec/yaml_spec.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <gtest/gtest.h>

#include "common/spec/spec_rules.h"

namespace traind {
namespace {

constexpr char kGood[] = R"(api: v1
name: adult
task: {type: classification, metric: accuracy}
data: {train: adult_train.csv, test: adult_test.csv, target: income, id: row_id, folds: 5, seed: 7}
model: {mlp: {hidden: [256, 256], dropout: 0.1}}
train: {epochs: 20, batch: auto, precision: auto, patience: 5}
resources: {slots: 1, device: auto}
budget: {time: 60s}
output: predictions.csv
)";

SpecReadResult Read(absl::string_view text, std::vector<SpecOverride> overrides = {}) {
  SpecReadOptions options;
  options.file = "job.yaml";
  options.base_dir = "/home/ann";
  options.now = absl::FromUnixSeconds(1000000000);
  options.overrides = std::move(overrides);
  return ReadSpec(text, options);
}

std::string Errors(const SpecReadResult& result) {
  return absl::StrJoin(result.problems, "\n", [](std::string* out, const SpecProblem& problem) {
    absl::StrAppend(out, problem.ToString());
  });
}

TEST(YamlSpecTest, TheExampleOfTheReferenceIsRead) {
  const SpecReadResult result = Read(kGood);
  ASSERT_EQ(Errors(result), "");
  EXPECT_EQ(result.spec.data().train(), "/home/ann/adult_train.csv");
  EXPECT_EQ(result.spec.data().seed(), 7u);
  EXPECT_EQ(result.spec.model().mlp().hidden_size(), 2);
  EXPECT_EQ(result.spec.train().batch(), 0);
  EXPECT_EQ(result.spec.train().precision(), "");
  EXPECT_EQ(result.spec.budget().time().seconds(), 60);
  EXPECT_EQ(result.spec.output(), "/home/ann/predictions.csv");
}

TEST(YamlSpecTest, AZeroIsNotAnUnsetField) {
  const SpecReadResult result = Read(
      "api: v1\ntask: {type: regression}\ndata: {train: a, target: y}\n"
      "train: {patience: 0, weight_decay: 0}\nmodel: {mlp: {dropout: 0}}\n"
      "budget: {reserve_share: 0}\n");
  ASSERT_EQ(Errors(result), "");
  const v1::JobSpec resolved = ResolveSpec(result.spec);
  EXPECT_EQ(resolved.train().patience(), 0);
  EXPECT_EQ(resolved.train().weight_decay(), 0);
  EXPECT_EQ(resolved.model().mlp().dropout(), 0);
  EXPECT_EQ(resolved.budget().reserve_share(), 0);
  EXPECT_EQ(Errors(Read(kGood, {{"--set train.epochs", "train.epochs", "0"}})),
            "--set train.epochs: error: train.epochs '0' is below the minimum, 1");
}

struct ErrorCase {
  const char* yaml;
  const char* errors;
};
void PrintTo(const ErrorCase& error, std::ostream* out) { *out << error.yaml; }

class SpecErrorTest : public testing::TestWithParam<ErrorCase> {};

TEST_P(SpecErrorTest, IsReportedAtItsPlace) {
  EXPECT_EQ(Errors(Read(GetParam().yaml)), GetParam().errors);
}

INSTANTIATE_TEST_SUITE_P(
    All, SpecErrorTest,
    testing::Values(
        ErrorCase{"", "job.yaml:1:1: error: data is missing"},
        // Both mistakes are reported, each once and at its place.
        ErrorCase{"api: v1\n"
                  "task: {type: regression}\n"
                  "data:\n"
                  "  train: a.csv\n"
                  "  target: y\n"
                  "train:\n"
                  "  lerning_rate: 0.1\n"
                  "budget:\n"
                  "  time: 90\n",
                  "job.yaml:7:3: error: unknown key 'lerning_rate' in train; did you mean "
                  "'learning_rate'?\n"
                  "job.yaml:9:9: error: budget.time '90' has no unit; write 90s or 90m"},
        ErrorCase{"api: v2\ntask: {type: regression}\ndata: {train: a, target: y}",
                  "job.yaml:1:6: error: api 'v2' is not v1"},
        ErrorCase{
            "api: v1\ntask: {type: klassification}\ndata: {train: a, target: y}",
            "job.yaml:2:14: error: task.type 'klassification' must be one of: classification, "
            "regression, forecasting, segmentation; did you mean 'classification'?"},
        ErrorCase{"api: v1\ntask: {type: regression}\ndata: {train: a}",
                  "job.yaml:3:1: error: data.target is missing"},
        ErrorCase{"api: v1\ntask: {type: regression}\ndata: {train: a, tagret: y}",
                  "job.yaml:3:18: error: unknown key 'tagret' in data; did you mean 'target'?"},
        ErrorCase{"api: v1\ntask: {type: regression}\ndata: {train: a, target: {y: 1}}",
                  "job.yaml:3:26: error: data.target is a section; expected a text"},
        ErrorCase{"api: v1\ntask: {type: regression, metric: auc}\ndata: {train: a, target: y}",
                  "job.yaml:2:26: error: task.metric 'auc' does not fit regression; use rmse, "
                  "mae, r2, smape, pinball"},
        ErrorCase{"api: v1\ntask: {type: regression}\ndata: {train: a, target: y, id: y}",
                  "job.yaml:3:29: error: data.id 'y' is the target, too"},
        ErrorCase{"api: v1\nepochs: 5\ntask: {type: regression}\ndata: {train: a, target: y}",
                  "job.yaml:2:1: error: unknown key 'epochs' in the spec; did you mean "
                  "'train.epochs'?"},
        ErrorCase{"data: {train: a, target: y}\nresources: 2",
                  "job.yaml:2:12: error: resources is '2'; write resources: {slots: 2}"},
        ErrorCase{
            "data: {train: a, target: y}\nbudget: soon",
            "job.yaml:2:9: error: budget.time 'soon' is not a duration; write 90s, 15m, 1h30m, "
            "2d, HH:MM:SS or D-HH:MM:SS"},
        ErrorCase{"data: {train: a, target: y}\ntarget: z",
                  "job.yaml:2:1: error: data.target is written at job.yaml:1:18, too"},
        ErrorCase{"target: z\ndata: {train: a, target: y}",
                  "job.yaml:2:18: error: data.target is written at job.yaml:1:1, too"},
        ErrorCase{"data: [a, b]\ntarget: y",
                  "job.yaml:1:7: error: data.train is a list; expected a text"},
        ErrorCase{"data: {train: ~/a.csv, target: y}",
                  "job.yaml:1:15: error: data.train '~/a.csv' begins with ~, which means no folder "
                  "here; write the whole path"},
        ErrorCase{"data: {train: https://x.org/a.csv, target: y}",
                  "job.yaml:1:15: error: data.train 'https://x.org/a.csv' is a URL; only files are "
                  "read, so download it first"},
        ErrorCase{"data: {train: a.csv target: y}",
                  "job.yaml:1:27: error: a bracket is not closed here, or a comma is missing "
                  "before this"},
        ErrorCase{"data: {train: a, target: y, text: {columns: review}}",
                  "job.yaml:1:45: error: data.text.columns is 'review'; expected a list, as in "
                  "[review]"},
        ErrorCase{"data: {train: a, target: y}\nmodel: [lightgbm, forest]",
                  "job.yaml:2:19: error: model.automatic.kinds[1] 'forest' must be one of: "
                  "lightgbm, xgboost, mlp, kernel"},
        ErrorCase{"api: v1\nname: a/b\ntask: {type: regression}\ndata: {train: a, target: y}",
                  "job.yaml:2:1: error: name 'a/b' is no name: letters, digits, - _ and ., at "
                  "most 63, the first a letter or digit"},
        ErrorCase{"api: v1\ntask: {type: regression}\ndata: {train: \"a\\0b\", target: y}",
                  "job.yaml:3:8: error: data.train '/home/ann/a\\x00b' contains a control "
                  "character"},
        ErrorCase{"api: v1\ntask: {type: regression}\ndata: {train: a, target: y}\n"
                  "model: {mlp: {hidden: [16, 0]}}",
                  "job.yaml:4:28: error: model.mlp.hidden[1] '0' is below the minimum, 1"},
        ErrorCase{"api: v1\ntask: {type: regression}\ndata: {train: a, target: y}\n"
                  "labels: {-x: y}",
                  "job.yaml:4:10: error: labels.-x is no label name: letters, digits, - _ . and "
                  "/, at most 63, the first a letter or digit"},
        ErrorCase{"api: v1\ntask: {type: regression}\ndata: {train: a, target: y}\n"
                  "api: v1",
                  "job.yaml:4:1: error: duplicate key 'api' in the spec"},
        // Names of other tools.
        ErrorCase{"data: {train: a, target: y}\ntrain: {lr: 0.1}",
                  "job.yaml:2:9: error: unknown key 'lr' in train; did you mean 'learning_rate'?"},
        ErrorCase{"data: {train: a, target: y}\nlr: 0.1",
                  "job.yaml:2:1: error: unknown key 'lr' in the spec; did you mean "
                  "'train.learning_rate'?"},
        ErrorCase{
            "data: {train: a, target: y}\nmodel: {mlp: {layers: 3}}",
            "job.yaml:2:15: error: unknown key 'layers' in model.mlp; did you mean 'hidden'?"},
        // A key of another kind of model is no advice.
        ErrorCase{"data: {train: a, target: y}\nmodel: {mlp: {heads: 4}}",
                  "job.yaml:2:15: error: unknown key 'heads' in model.mlp; the keys here are "
                  "hidden, dropout, ensemble_members, numeric_embedding"},
        // What the parser says of indentation is not what is wrong.
        ErrorCase{"data:\n\ttrain: a\n\ttarget: y",
                  "job.yaml:2:1: error: the line is indented with a tab; YAML takes only blanks"},
        ErrorCase{"data:\n  train: a\n   target: y",
                  "job.yaml:3:10: error: the indentation does not match the lines above; the keys "
                  "of a section begin in the same column"},
        ErrorCase{"data:\n  train: a\n target: y",
                  "job.yaml:3:2: error: the indentation does not match the lines above; the keys "
                  "of a section begin in the same column"},
        ErrorCase{"data: train: a",
                  "job.yaml:1:12: error: a value with ': ' in it needs quotes, and a section in "
                  "one line needs braces"},
        ErrorCase{"api: v1\ntask: {type: regression}\ndata: {train: a, target: y}\n"
                  "resources: {slots: yes}",
                  "job.yaml:4:20: error: resources.slots 'yes' is not a whole number"}));

TEST(YamlSpecTest, MissingKeysOfOverridesAreReportedAtTheFile) {
  EXPECT_EQ(Errors(Read("api: v1\ntask: {type: regression}\n",
                        {{"--set data.train", "data.train", "a.csv"}})),
            "--set data.train: error: data.target is missing");
}

TEST(YamlSpecTest, AFlagReplacesAShortForm) {
  const SpecReadResult result =
      Read("api: v1\ntask: regression\ndata: a.csv\ntarget: y\nbudget: 60s\nafter: [b]\n",
           {{"--budget", "budget.time", "5s"},
            {"--set", "data.target", "z"},
            {"--set", "after.end", "any"}});
  ASSERT_EQ(Errors(result), "");
  EXPECT_EQ(result.spec.budget().time().seconds(), 5);
  EXPECT_EQ(result.spec.data().train(), "/home/ann/a.csv");
  EXPECT_EQ(result.spec.data().target(), "z");
  EXPECT_EQ(result.spec.after().jobs(0), "b");
  EXPECT_EQ(result.spec.after().end(), "any");
  EXPECT_EQ(Errors(Read("api: v1\ntask: regression\ndata: a.csv\ntarget: y\nbudget: x\n",
                        {{"--set", "budget.reserve_share", "0.1"}})),
            "job.yaml:5:9: error: budget.time 'x' is not a duration; write 90s, 15m, 1h30m, 2d, "
            "HH:MM:SS or D-HH:MM:SS");
}

TEST(YamlSpecTest, BytesOfFlagsAndFoldersThatAreNotUtf8AreRefused) {
  const std::string text = "api: v1\ntask: {type: regression}\ndata: {train: a, target: y}\n";
  EXPECT_EQ(Errors(Read(text, {{"--set", "data.train", "b\xaf.csv"}})),
            "--set: error: data.train: not UTF-8 text: byte 0xaf");
  EXPECT_EQ(Errors(Read(text, {{"--set", "labels.team", "\xff"}})),
            "--set: error: labels.team: not UTF-8 text: byte 0xff");
  SpecReadOptions options;
  options.file = "job.yaml";
  options.base_dir = "/home/\xe9";
  EXPECT_EQ(Errors(ReadSpec(text, options)),
            "job.yaml:3:8: error: data.train is not UTF-8 text: byte 0xe9");
}

TEST(YamlSpecTest, FlagsBecomeFields) {
  const SpecReadResult result = Read(kGood, {{"--budget", "budget.time", "20s"},
                                             {"--deadline", "budget.deadline", "+2h"},
                                             {"--label", "labels.team.name", "x"},
                                             {"--set", "data.train", "../b.csv"}});
  ASSERT_EQ(Errors(result), "");
  EXPECT_EQ(result.spec.budget().time().seconds(), 20);
  EXPECT_EQ(result.spec.budget().deadline().seconds(), 1000007200);
  EXPECT_EQ(result.spec.labels().at("team.name"), "x");
  EXPECT_EQ(result.spec.data().train(), "/home/b.csv");
  EXPECT_EQ(result.PlaceOf("budget.time"), "--budget");
  EXPECT_EQ(result.PlaceOf("data.target.x"), "job.yaml:4:54");
}

TEST(YamlSpecTest, AWordOrAListOfThemNamesTheModel) {
  const auto model = [](const std::string& text) {
    const SpecReadResult result = Read("data: {train: a, target: y}\nmodel: " + text);
    EXPECT_EQ(Errors(result), "") << text;
    return result.spec.model();
  };
  EXPECT_TRUE(model("lightgbm").has_lightgbm());
  EXPECT_TRUE(model("mlp").has_mlp());
  EXPECT_TRUE(model("auto").has_automatic());
  const v1::ModelSpec some = model("[lightgbm, mlp]");
  ASSERT_EQ(some.automatic().kinds_size(), 2);
  EXPECT_EQ(some.automatic().kinds(1), "mlp");
  EXPECT_EQ(Read("data: {train: a, target: y}", {{"--set model", "model", "lightgbm"}})
                .spec.model()
                .architecture_case(),
            v1::ModelSpec::kLightgbm);
}

TEST(YamlSpecTest, ShortFormsStandForFieldsOfSections) {
  const SpecReadResult three = Read("data: a.csv\ntarget: y\nbudget: 60s\n");
  ASSERT_EQ(Errors(three), "");
  const SpecReadResult whole = Read("data: {train: a.csv, target: y}\nbudget: {time: 60s}\n");
  EXPECT_EQ(three.spec.SerializeAsString(), whole.spec.SerializeAsString());
  EXPECT_EQ(three.spec.data().target(), "y");

  const SpecReadResult mixed = Read(
      "data: {train: a.csv, folds: 3}\ntarget: y\ntest: b.csv\nid: n\ntask: regression\n"
      "metric: mae\ndeadline: +1h\n");
  ASSERT_EQ(Errors(mixed), "");
  EXPECT_EQ(mixed.spec.data().folds(), 3);
  EXPECT_EQ(mixed.spec.data().target(), "y");
  EXPECT_TRUE(absl::EndsWith(mixed.spec.data().test(), "b.csv"));
  EXPECT_EQ(mixed.spec.data().id(), "n");
  EXPECT_EQ(mixed.spec.task().type(), "regression");
  EXPECT_EQ(mixed.spec.task().metric(), "mae");
  EXPECT_TRUE(mixed.spec.budget().has_deadline());
}

TEST(YamlSpecTest, ATargetMayBeAList) {
  const SpecReadResult one = Read("api: v1\ntask: {type: regression}\ndata: {train: a, target: y}");
  ASSERT_EQ(Errors(one), "");
  EXPECT_EQ(one.spec.data().target(), "y");
  EXPECT_EQ(one.spec.data().targets_size(), 0);
  const SpecReadResult two =
      Read("api: v1\ntask: {type: regression}\ndata: {train: a, target: [y, z]}");
  ASSERT_EQ(Errors(two), "");
  EXPECT_EQ(two.spec.data().target(), "");
  ASSERT_EQ(two.spec.data().targets_size(), 2);
  EXPECT_EQ(two.spec.data().targets(1), "z");
  EXPECT_EQ(Errors(Read("api: v1\ntask: {type: classification}\ndata: {train: a, target: [y, z]}")),
            "job.yaml:3:18: error: data.target is a list; a classification has one target");
  EXPECT_EQ(Errors(Read("api: v1\ntask: {type: regression}\ndata: {train: a, target: [y, y]}")),
            "job.yaml:3:30: error: data.target[1] 'y' is there twice");
}

TEST(YamlSpecTest, ASpacingIsAWordOrAListOfNumbers) {
  const auto read = [](absl::string_view volume) {
    return Read(absl::StrCat("data: {train: a, volume: ", volume, "}"));
  };
  const SpecReadResult word = read("{spacing: auto}");
  ASSERT_EQ(Errors(word), "");
  EXPECT_EQ(word.spec.data().volume().spacing(), "auto");
  const SpecReadResult list = read("{spacing: [3, 0.5, 1e-1]}");
  ASSERT_EQ(Errors(list), "");
  EXPECT_EQ(list.spec.data().volume().spacing(), "");
  ASSERT_EQ(list.spec.data().volume().spacings_size(), 3);
  EXPECT_EQ(list.spec.data().volume().spacings(2), 0.1);
  EXPECT_EQ(Errors(read("{spacing: 2}")),
            "job.yaml:1:36: error: data.volume.spacing '2' is not auto, or a list");
  EXPECT_EQ(Errors(read("{spacing: [3, 0, nan]}")),
            "job.yaml:1:40: error: data.volume.spacing[1] '0' is below the minimum, 0.001\n"
            "job.yaml:1:43: error: data.volume.spacing[2] 'nan' is not a number");
  EXPECT_EQ(Errors(read("{spacing: [3, 1]}")),
            "job.yaml:1:27: error: data.volume.spacing has 2 numbers; depth, height and width are "
            "three");
  EXPECT_TRUE(absl::StrContains(Errors(Read("data: {train: a, target: y, image: {spacing: auto}}")),
                                "unknown key 'spacing' in data.image"));
}

}  // namespace
}  // namespace traind
