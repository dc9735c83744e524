#include "worker/prepare/prepare.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/data/table/npy.h"
#include "common/data/table/table.h"
#include "common/data/text/tokenizer.h"
#include "common/publish/floor_files.h"
#include "common/publish/publisher.h"
#include "tests/common/data/table/packed_bytes.h"
#include "worker/prepare/prepare_spec.h"
#include "worker/rank_protocol/line_channel.h"

extern char** environ;

namespace traind {
namespace {

namespace fs = std::filesystem;
using rank_protocol::Failed;
using rank_protocol::Finished;
using rank_protocol::FloorReady;
using rank_protocol::FromProcess;
using rank_protocol::TableReady;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class PrepareTest : public ::testing::Test {
 protected:
  PrepareTest() {
    std::string pattern = ::testing::TempDir() + "/prepare.XXXXXX";
    dir_ = mkdtemp(pattern.data());
    fs::create_directory(dir_ + "/state");
    // The class depends on a, so a better floor than the prior exists.
    std::string train = "a,b,y\n", test = "b,a,y\n";
    for (int i = 0; i < 200; ++i) {
      absl::StrAppend(&train, i % 20, ",", i % 3 ? "u" : "v", ",", i % 20 < 8 ? "low" : "high",
                      "\n");
    }
    for (int i = 0; i < 20; ++i) {
      absl::StrAppend(&test, "u,", i % 20, ",", i % 20 < 8 ? "low" : "high", "\n");
    }
    Put("train.csv", train);
    Put("test.csv", test);
  }
  ~PrepareTest() override { fs::remove_all(dir_); }

  void Put(const std::string& name, const std::string& text) const {
    std::ofstream(dir_ + "/" + name, std::ios::binary) << text;
  }

  nlohmann::json Spec(const std::string& type = "classification") const {
    return {{"api", "v1"},
            {"task", {{"type", type}, {"metric", type == "regression" ? "rmse" : "accuracy"}}},
            {"data",
             {{"train", dir_ + "/train.csv"},
              {"test", dir_ + "/test.csv"},
              {"target", "y"},
              {"id", ""},
              {"folds", 5},
              {"seed", "7"}}}};
  }

  rank_protocol::Prepare Task(const nlohmann::json& spec, const std::string& job = "j") const {
    rank_protocol::Prepare task;
    task.attempt = 42;
    task.job = job;
    task.state_dir = dir_ + "/state";
    task.spec_json = spec.dump();
    return task;
  }

  std::vector<FromProcess> Run(const rank_protocol::Prepare& task) const {
    std::vector<FromProcess> messages;
    RunPrepare(task, SystemClock(),
               [&](const FromProcess& message) { messages.push_back(message); });
    return messages;
  }
  std::vector<FromProcess> Run(const nlohmann::json& spec) const { return Run(Task(spec)); }

  Failed MustFail(const nlohmann::json& spec) const { return MustFail(Task(spec)); }
  Failed MustFail(const rank_protocol::Prepare& task) const {
    const auto messages = Run(task);
    const auto* failed = messages.empty() ? nullptr : std::get_if<Failed>(&messages.back());
    EXPECT_NE(failed, nullptr);
    EXPECT_THAT(messages, SizeIs(1));
    return failed == nullptr ? Failed() : *failed;
  }

  std::string InState(const std::string& path) const { return dir_ + "/state/" + path; }

  std::string dir_;
};

TEST_F(PrepareTest, ReportsTableFloorsAndEnd) {
  const auto messages = Run(Spec());
  ASSERT_THAT(messages, SizeIs(4));
  const auto& table = std::get<TableReady>(messages[0]);
  EXPECT_EQ(table.attempt, 42);
  EXPECT_EQ(table.train_rows, 200);
  EXPECT_EQ(table.test_rows, 20);
  EXPECT_EQ(table.features, 2);
  EXPECT_EQ(table.classes, 2);
  EXPECT_FALSE(table.cached);
  EXPECT_EQ(table.table, TableCachePath(table.content_sha256));
  const auto& prior = std::get<FloorReady>(messages[1]);
  EXPECT_EQ(prior.model, "prior");
  EXPECT_EQ(prior.score, 0.6);
  const auto& logistic = std::get<FloorReady>(messages[2]);
  EXPECT_EQ(logistic.model, "logistic");
  EXPECT_GT(logistic.score, 0.9);
  EXPECT_EQ(std::get<Finished>(messages[3]).attempt, 42);
}

TEST_F(PrepareTest, ReportedFilesAreOnDisk) {
  const auto messages = Run(Spec());
  ASSERT_THAT(messages, SizeIs(4));
  const auto& told = std::get<FloorReady>(messages[2]);
  EXPECT_EQ(DigestFile(InState(FloorDir("j")) + "/oof.npy")->sha256, told.oof_sha256);
  EXPECT_EQ(DigestFile(InState(FloorDir("j")) + "/test.npy")->sha256, told.test_sha256);
  const auto folds = ReadNpyInt16(InState(FoldsPath("j")));
  ASSERT_TRUE(folds.ok()) << folds.status();
  EXPECT_THAT(folds->values, SizeIs(200));
  const auto standing = ReadStandingPrediction(dir_ + "/state", "j");
  ASSERT_TRUE(standing.ok()) << standing.status();
  EXPECT_EQ(standing->number, 2);
  EXPECT_EQ(standing->quality, Quality::kFloor);
  EXPECT_EQ(standing->oof_score, told.score);
  EXPECT_GT(*standing->test_score, 0.85);
  EXPECT_EQ(ReadFile(InState(standing->path))->substr(0, 22), "row,y,p_high,p_low\n0,l");
}

TEST_F(PrepareTest, TheFirstFloorIsPublishedBeforeTheTableIsReported) {
  RunPrepare(Task(Spec()), SystemClock(), [&](const FromProcess& message) {
    if (!std::holds_alternative<TableReady>(message)) return;
    const auto standing = ReadStandingPrediction(dir_ + "/state", "j");
    ASSERT_TRUE(standing.ok()) << standing.status();
    EXPECT_EQ(standing->oof_score, 0.6);
  });
}

// Submit has checked the path; then it became a link.
TEST_F(PrepareTest, AFileThatLeadsOutOfTheDataRootsByNowIsRefused) {
  fs::create_directory(dir_ + "/data");
  fs::create_directory(dir_ + "/secret");
  for (const char* name : {"/train.csv", "/test.csv"}) {
    fs::rename(dir_ + name, dir_ + "/secret" + name);
    fs::create_symlink(dir_ + "/secret" + name, dir_ + name);
  }
  rank_protocol::Prepare task = Task(Spec());
  task.data_roots = {dir_ + "/data", dir_ + "/state"};
  const Failed failed = MustFail(task);
  EXPECT_EQ(failed.reason, AttemptEndReason::kDataError);
  EXPECT_THAT(failed.message, HasSubstr("/train.csv was moved after the Job was submitted"));
  EXPECT_THAT(failed.message, HasSubstr("/secret/train.csv now"));
  // Below a root it may lead anywhere.
  task.data_roots.push_back(dir_ + "/secret");
  EXPECT_THAT(Run(task), SizeIs(4));
}

TEST_F(PrepareTest, AFolderThatBecameALinkIsRefusedToo) {
  fs::create_directory(dir_ + "/data");
  fs::create_directory(dir_ + "/secret");
  for (const char* name : {"/train.csv", "/test.csv"}) {
    fs::rename(dir_ + name, dir_ + "/secret" + name);
  }
  fs::remove(dir_ + "/data");
  fs::create_symlink(dir_ + "/secret", dir_ + "/data");
  nlohmann::json spec = Spec();
  spec["data"]["train"] = dir_ + "/data/train.csv";
  spec["data"]["test"] = dir_ + "/data/test.csv";
  rank_protocol::Prepare task = Task(spec);
  fs::create_directory(dir_ + "/other");
  task.data_roots = {dir_ + "/other"};
  EXPECT_EQ(MustFail(task).reason, AttemptEndReason::kDataError);
  // A root that is itself a link is the folder that it leads to, as on a machine with other mounts.
  task.data_roots = {dir_ + "/data", dir_ + "/state"};
  EXPECT_THAT(Run(task), SizeIs(4));
}

TEST_F(PrepareTest, TheSameBytesAreReadOnce) {
  Run(Task(Spec(), "one"));
  // The key depends neither on a test file's target nor on the files' places.
  fs::rename(dir_ + "/train.csv", dir_ + "/moved.csv");
  nlohmann::json moved = Spec();
  moved["data"]["train"] = dir_ + "/moved.csv";
  moved["data"]["seed"] = 8;
  const auto messages = Run(Task(moved, "two"));
  ASSERT_THAT(messages, SizeIs(4));
  EXPECT_TRUE(std::get<TableReady>(messages[0]).cached);
  // Another target, or one different byte, makes another table.
  nlohmann::json other = moved;
  other["data"]["target"] = "b";
  EXPECT_FALSE(std::get<TableReady>(Run(Task(other, "three"))[0]).cached);
  Put("moved.csv", *ReadFile(dir_ + "/moved.csv") + "1,u,low\n");
  EXPECT_FALSE(std::get<TableReady>(Run(Task(moved, "four"))[0]).cached);
}

TEST_F(PrepareTest, ADamagedCacheIsReadAnew) {
  const std::string path = InState(std::get<TableReady>(Run(Spec())[0]).table);
  const std::string bytes = *ReadFile(path);
  std::string flipped = bytes;
  flipped[flipped.size() - 1000] = static_cast<char>(flipped[flipped.size() - 1000] ^ 1);
  for (const std::string& damaged : {bytes.substr(0, bytes.size() / 2), std::string(), flipped}) {
    Put("state/" + path.substr(InState("").size()), damaged);
    const auto messages = Run(Spec());
    ASSERT_THAT(messages, SizeIs(4));
    EXPECT_FALSE(std::get<TableReady>(messages[0]).cached);
    EXPECT_EQ(*ReadFile(path), bytes);
  }
}

TEST_F(PrepareTest, ASecondRunMakesTheSameFiles) {
  Run(Spec());
  const std::string folds = *ReadFile(InState(FoldsPath("j")));
  const std::string oof = *ReadFile(InState(FloorDir("j")) + "/oof.npy");
  Run(Spec());
  EXPECT_EQ(*ReadFile(InState(FoldsPath("j"))), folds);
  EXPECT_EQ(*ReadFile(InState(FloorDir("j")) + "/oof.npy"), oof);
  EXPECT_EQ(ReadStandingPrediction(dir_ + "/state", "j")->number, 2) << "no better floor came";
}

TEST_F(PrepareTest, WithoutTimeTheFirstFloorIsTheLast) {
  rank_protocol::Prepare task = Task(Spec());
  task.remaining_ms = 0;
  const auto messages = Run(task);
  ASSERT_THAT(messages, SizeIs(3));
  EXPECT_EQ(std::get<FloorReady>(messages[1]).model, "prior");
}

TEST_F(PrepareTest, WithoutATestFileThereIsAFloorAndNoPrediction) {
  nlohmann::json spec = Spec();
  spec["data"].erase("test");
  spec["data"].erase("id");
  const auto messages = Run(spec);
  ASSERT_THAT(messages, SizeIs(4));
  EXPECT_EQ(std::get<TableReady>(messages[0]).test_rows, 0);
  EXPECT_EQ(std::get<FloorReady>(messages[2]).test_sha256, "");
  EXPECT_FALSE(fs::exists(InState(CurrentLink("j"))));
  EXPECT_TRUE(fs::exists(InState(FloorDir("j")) + "/oof.npy"));
}

TEST_F(PrepareTest, RegressionHasAMeanAndARidgeFloor) {
  std::string train = "a,y\n";
  for (int i = 0; i < 100; ++i) absl::StrAppend(&train, i, ",", 3 * i + 1, "\n");
  Put("train.csv", train);
  Put("test.csv", "a\n10\n20\n");
  const auto messages = Run(Spec("regression"));
  ASSERT_THAT(messages, SizeIs(4));
  EXPECT_EQ(std::get<TableReady>(messages[0]).classes, 0);
  EXPECT_EQ(std::get<FloorReady>(messages[1]).model, "mean");
  EXPECT_EQ(std::get<FloorReady>(messages[2]).model, "ridge");
  EXPECT_LT(std::get<FloorReady>(messages[2]).score, 10);
  const auto csv = ReadFile(InState(CurrentLink("j")) + "/predictions.csv");
  EXPECT_EQ(csv->substr(0, 8), "row,y\n0,");
}

TEST_F(PrepareTest, TextsHaveAFloorOfWords) {
  constexpr const char* kWords[] = {"river", "stone", "cloud", "light", "paper", "green"};
  std::string train = "n,body,y\n", test = "n,body\n1,\"a fine, fine day\"\n2,an awful day\n3,\n";
  for (int i = 0; i < 240; ++i) {
    const char* said = i % 2 == 0 ? "fine" : "awful";
    absl::StrAppend(&train, i % 7, ",\"", kWords[i % 6], ", ", said, " ", kWords[i / 6 % 6],
                    " day\",", i % 2 == 0 ? "good" : "bad", "\n");
  }
  Put("train.csv", train);
  Put("test.csv", test);
  nlohmann::json spec = Spec();
  spec["data"]["text"] = {{"columns", {"body"}}};
  const auto messages = Run(spec);
  ASSERT_THAT(messages, SizeIs(4));
  const auto& told = std::get<TableReady>(messages[0]);
  EXPECT_EQ(told.features, 1);
  EXPECT_GT(std::get<FloorReady>(messages[2]).score, 0.95);
  const auto table = Table::Open(InState(told.table));
  ASSERT_TRUE(table.ok()) << table.status().ToString();
  EXPECT_EQ((*table)->Text(0, Split::kTest, 0), "a fine, fine day");
  EXPECT_EQ((*table)->schema().features.front().name, "n");
  // Other columns make another table.
  spec["data"].erase("text");
  EXPECT_NE(std::get<TableReady>(Run(Task(spec, "k"))[0]).table, told.table);

  Put("train.csv", "n,body,y\n1,good,a\n2,b\x81\x64,b\n");
  spec["data"]["text"] = {{"columns", {"body"}}};
  EXPECT_THAT(MustFail(spec).message,
              HasSubstr("train.csv: row 2 (line 3), column 'body': byte 0x81"));
}

TEST_F(PrepareTest, EachFoldHasASentencePieceModelOfItsOwnRows) {
  std::string train = "body,y,fold\n";
  for (int i = 0; i < 120; ++i) {
    absl::StrAppend(&train, i % 3 == 2 ? "qqqq " : "", "the river was ",
                    i % 2 == 0 ? "wide" : "deep", ",", i % 2, ",", i % 3, "\n");
  }
  Put("train.csv", train);
  nlohmann::json spec = Spec();
  spec["data"]["test"] = "";
  spec["data"]["folds"] = 3;
  spec["data"]["split"] = "column";
  spec["data"]["fold_column"] = "fold";
  spec["data"]["text"] = {
      {"columns", {"body"}}, {"tokenizer", "sentencepiece"}, {"vocabulary", 40}};
  const auto messages = Run(spec);
  ASSERT_TRUE(std::holds_alternative<Finished>(messages.back()));
  for (int fold = 0; fold < 3; ++fold) {
    const auto model = ReadFile(InState(TokenizerPath("j", fold)));
    ASSERT_TRUE(model.ok()) << model.status();
    const auto tokenizer = ParseTokenizer(*model);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    std::vector<int32_t> ids;
    (*tokenizer)->Encode("q", ids);
    // Only fold 2's own rows have the letter, so its model does not know it (0).
    EXPECT_EQ(ids.back() == 0, fold == 2) << fold;
  }

  spec["data"]["text"]["model_file"] = InState(TokenizerPath("j", 1));
  ASSERT_TRUE(std::holds_alternative<Finished>(Run(Task(spec, "k")).back()));
  EXPECT_EQ(*ReadFile(InState(TokenizerPath("k", 0))), *ReadFile(InState(TokenizerPath("j", 1))));
  spec["data"]["text"]["model_file"] = dir_ + "/train.csv";
  const auto refused = Run(Task(spec, "l"));
  EXPECT_EQ(std::get<Failed>(refused.back()).reason, AttemptEndReason::kDataError);
  EXPECT_THAT(std::get<Failed>(refused.back()).message,
              HasSubstr("train.csv: not a SentencePiece model"));
}

TEST_F(PrepareTest, BadDataIsNamedByItsPlace) {
  Put("train.csv", "a,b,y\n1,u,low\n2,v\n");
  Failed failed = MustFail(Spec());
  EXPECT_EQ(failed.reason, AttemptEndReason::kDataError);
  EXPECT_EQ(failed.attempt, 42);
  EXPECT_THAT(failed.message, HasSubstr("train.csv: row 2 (line 3) has 2 fields"));
  Put("train.csv", "a,b,y\n1,u,low\n1e9999,v,high\n");
  EXPECT_THAT(MustFail(Spec()).message,
              HasSubstr("train.csv: row 2 (line 3), column 'a': '1e9999'"));
  Put("train.csv", "");
  EXPECT_THAT(MustFail(Spec()).message, HasSubstr("the file is empty"));
  fs::remove(dir_ + "/train.csv");
  failed = MustFail(Spec());
  EXPECT_EQ(failed.reason, AttemptEndReason::kDataError);
  EXPECT_THAT(failed.message, HasSubstr("train.csv: No such file"));
  EXPECT_FALSE(fs::exists(InState(JobDir("j")))) << "no file is left";
}

TEST_F(PrepareTest, FilesMayBePackedAndInOtherEncodings) {
  std::string train = "a,b,y\n", test("\xff\xfe", 2);
  for (int i = 0; i < 200; ++i) {
    absl::StrAppend(&train, i % 20, ",K\xf6ln,", i % 20 < 8 ? "gr\xfcn" : "blau", "\n");
  }
  for (const char c : std::string("a,b\n3,u\n15,u\n")) test += {c, '\0'};
  Put("train.csv.gz", testing_table::Gzip(train));
  Put("test.csv", test);
  nlohmann::json spec = Spec();
  spec["data"]["train"] = dir_ + "/train.csv.gz";
  const auto messages = Run(spec);
  ASSERT_THAT(messages, SizeIs(4));
  const auto& table = std::get<TableReady>(messages[0]);
  EXPECT_EQ(table.train_rows, 200);
  EXPECT_EQ(table.test_rows, 2);
  EXPECT_THAT(
      table.warnings,
      AllOf(Contains("train.csv.gz: the file is not UTF-8; it is read as Windows-1252, such "
                     "as 'Köln' (line 2)"),
            Contains("test.csv: the file is read as UTF-16")));
  EXPECT_THAT(*ReadFile(InState(CurrentLink("j")) + "/predictions.csv"), HasSubstr("p_grün"));
  // The same text in UTF-8 has no such warnings, so it is another table.
  Put("test.csv", "a,b\n3,u\n15,u\n");
  const auto plain = Run(spec);
  EXPECT_THAT(std::get<TableReady>(plain[0]).warnings, Not(Contains(HasSubstr("UTF-16"))));
  Put("train.csv.gz", testing_table::Gzip(train).substr(0, 100));
  const Failed failed = MustFail(spec);
  EXPECT_EQ(failed.reason, AttemptEndReason::kDataError);
  EXPECT_EQ(failed.message, "train.csv.gz: the file is cut: its packed data do not end");
}

TEST_F(PrepareTest, TooFewRowsForTheFoldsIsADataError) {
  Put("train.csv", "a,b,y\n1,u,low\n2,v,high\n3,u,low\n");
  const Failed failed = MustFail(Spec());
  EXPECT_EQ(failed.reason, AttemptEndReason::kDataError);
  EXPECT_THAT(failed.message, HasSubstr("3 training rows are too few for data.folds: 5"));
}

TEST_F(PrepareTest, ClassesOfASingleRowAreToldOfAndNothingElseIsADataError) {
  std::string texts = "a,b,y\n", numbers = texts, some = texts;
  for (int i = 0; i < 30; ++i) {
    absl::StrAppend(&texts, i % 7, ",u,k", i, "\n");
    absl::StrAppend(&numbers, i % 7, ",u,", i, "\n");
    absl::StrAppend(&some, i % 7, ",", i % 2 ? "u" : "v", ",k", i < 4 ? i : 9, "\n");
  }
  Put("train.csv", texts);
  EXPECT_EQ(MustFail(Spec()).message,
            "train.csv: target 'y' has 30 classes, each of them in a single row, so no fold can "
            "learn the class that it validates; give each class more rows, or name another column "
            "by data.target");
  Put("train.csv", numbers);
  EXPECT_THAT(MustFail(Spec()).message, HasSubstr("; should task.type be regression?"));
  Put("train.csv", some);
  const auto messages = Run(Spec());
  ASSERT_FALSE(messages.empty());
  EXPECT_THAT(std::get<TableReady>(messages[0]).warnings,
              Contains("train.csv: target 'y': 4 of 5 classes have a single row: 'k0', 'k1', 'k2', "
                       "...; the fold that validates it cannot learn its class, so add rows of it, "
                       "or leave it out"));
}

TEST_F(PrepareTest, NegativeTargetsAndThoseOfZeroAloneAreRefusedForCounts) {
  const auto rows = [](int negative, const char* most) {
    std::string text = "a,b,y\n";
    for (int i = 0; i < 40; ++i) {
      absl::StrAppend(&text, i, ",u,", i == negative ? "-2.5" : i % 3 == 0 ? "0" : most, "\n");
    }
    return text;
  };
  Put("test.csv", "a,b\n1,u\n");
  nlohmann::json spec = Spec("regression");
  for (const char* kind : {"poisson", "tweedie"}) {
    spec["train"] = {{"loss", {{"kind", kind}}}};
    Put("train.csv", rows(4, "3"));
    const Failed failed = MustFail(spec);
    EXPECT_EQ(failed.reason, AttemptEndReason::kDataError);
    EXPECT_EQ(failed.message, absl::StrCat("train.csv: row 5, target 'y': -2.5 is negative, but "
                                           "train.loss.kind ",
                                           kind, " takes targets from 0 on"));
    Put("train.csv", rows(-1, "0.0"));
    EXPECT_EQ(MustFail(spec).message, "train.csv: target 'y' is constant: '0' in every row");
    Put("train.csv", rows(-1, "3"));
    EXPECT_EQ(std::get<Finished>(Run(spec).back()).attempt, 42);
  }
  Put("train.csv", rows(4, "3"));
  spec["train"] = {{"loss", {{"kind", "mse"}}}};
  EXPECT_EQ(std::get<Finished>(Run(spec).back()).attempt, 42);
}

TEST_F(PrepareTest, SpecsThatLackSomethingAreUserErrors) {
  nlohmann::json spec = Spec();
  spec["data"].erase("target");
  Failed failed = MustFail(spec);
  EXPECT_EQ(failed.reason, AttemptEndReason::kUserError);
  EXPECT_THAT(failed.message, HasSubstr("data.target: is missing"));
  spec = Spec();
  spec["task"]["metric"] = "rmse";
  EXPECT_THAT(MustFail(spec).message, HasSubstr("task.metric: 'rmse' does not fit"));
}

TEST_F(PrepareTest, AStateFolderThatCannotBeWrittenIsNoDataError) {
  fs::remove_all(dir_ + "/state");
  Put("state", "a file");
  const Failed failed = MustFail(Spec());
  EXPECT_EQ(failed.reason, AttemptEndReason::kInternal) << failed.message;
}

TEST(PrepareSpecTest, SeedsAreNumbersOrText) {
  const auto seed_of = [](const std::string& seed) {
    return ParsePrepareSpec(absl::StrCat(
        R"({"task":{"type":"regression"},"data":{"train":"/t","target":"y","folds":3,"seed":)",
        seed, "}}"));
  };
  EXPECT_EQ(seed_of("18446744073709551615")->split.seed, 18446744073709551615u);
  EXPECT_EQ(seed_of("\"18446744073709551615\"")->split.seed, 18446744073709551615u);
  EXPECT_EQ(seed_of("null")->split.seed, 0u);
  EXPECT_EQ(seed_of("1")->metric, *MetricByName("rmse"));
  for (const char* bad : {"-1", "1.5", "\"x\"", "[]", "\"18446744073709551616\""}) {
    EXPECT_EQ(seed_of(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(PrepareSpecTest, EveryMistakeNamesItsField) {
  for (const auto& [json, says] : std::vector<std::pair<std::string, std::string>>{
           {"", "JobSpec"},
           {"[]", "JobSpec"},
           {R"({"task":{}})", "data"},
           {R"({"task":3,"data":{}})", "task"},
           {R"({"task":{"type":"sorting"},"data":{}})", "task.type"},
           {R"({"task":{"type":"regression","metric":"x"},"data":{}})", "task.metric"},
           {R"({"task":{"type":"regression"},"data":{}})", "data.train"},
           {R"({"task":{"type":"regression"},"data":{"train":7}})", "data.train"},
           {R"({"task":{"type":"regression"},"data":{"train":"t","target":"y","id":"y"}})",
            "data.id"},
           {R"({"task":{"type":"regression"},"data":{"train":"t","target":"y","folds":1}})",
            "data.folds"}}) {
    const auto status = ParsePrepareSpec(json).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << json;
    EXPECT_THAT(std::string(status.message()), HasSubstr(says)) << json;
  }
}

// ---- the program ----------------------------------------------------------------

struct Process {
  pid_t pid = -1;
  std::unique_ptr<rank_protocol::LineChannel> channel;

  int Wait() const {
    int status = 0;
    return waitpid(pid, &status, 0) == pid ? status : -1;
  }
};

Process StartProgram() {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::string program = "worker/trainprep";
  char* const args[] = {program.data(), nullptr};
  Process process;
  EXPECT_EQ(posix_spawn(&process.pid, program.c_str(), &actions, nullptr, args, environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  process.channel = std::make_unique<rank_protocol::LineChannel>(ends[0], dup(ends[0]));
  return process;
}

TEST_F(PrepareTest, TheProgramTakesOneTaskAndEnds) {
  const Process process = StartProgram();
  ASSERT_TRUE(
      process.channel->WriteLine(rank_protocol::Encode(Task(Spec())), absl::Seconds(30)).ok());
  int messages = 0;
  bool finished = false;
  for (;;) {
    const auto line = process.channel->ReadLine(absl::Seconds(60));
    if (!line.ok()) break;
    const auto message = rank_protocol::DecodeFromProcess(*line);
    ASSERT_TRUE(message.ok()) << message.status();
    finished |= std::holds_alternative<Finished>(*message);
    ++messages;
  }
  EXPECT_EQ(messages, 4);
  EXPECT_TRUE(finished);
  const int status = process.Wait();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(PrepareTest, TheProgramEndsWithItsWorker) {
  Process process = StartProgram();
  process.channel.reset();
  const int status = process.Wait();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace traind
