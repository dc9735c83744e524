// Tables of long texts, whose specs name no model.
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <memory>
#include <string>

#include "common/base/durable_file.h"
#include "server/intake/intake.h"

namespace traind {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

const absl::Time kNow = absl::FromUnixSeconds(1'795'000'000);

class LongTextsTest : public testing::Test {
 protected:
  LongTextsTest() {
    std::string folder = absl::StrCat(testing::TempDir(), "/texts.XXXXXX");
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    char* const real = realpath(folder.c_str(), nullptr);
    folder_ = real;
    free(real);
    intake_ = std::make_unique<Intake>(std::vector<std::string>{folder_});
  }

  // A spec for a table with a target, texts of so many words, and so many columns of numbers.
  v1::JobSpec SpecOf(int words, int numbers) const {
    std::string file = "y,text";
    for (int i = 0; i < numbers; ++i) absl::StrAppend(&file, ",n", i);
    for (int row = 0; row < 40; ++row) {
      absl::StrAppend(&file, "\n", row % 2 ? "good" : "bad", ",film", row);
      for (int word = 1; word < words; ++word) absl::StrAppend(&file, " word");
      for (int i = 0; i < numbers; ++i) absl::StrAppend(&file, ",", row * i);
    }
    EXPECT_EQ(WriteFileDurably(folder_ + "/train.csv", file + "\n"), absl::OkStatus());
    v1::JobSpec spec;
    spec.set_api("v1");
    spec.mutable_data()->set_train(folder_ + "/train.csv");
    spec.mutable_data()->set_target("y");
    spec.mutable_budget()->mutable_time()->set_seconds(60);
    return spec;
  }
  CheckedSpec Checked(const v1::JobSpec& spec) {
    auto checked = intake_->Check(spec, kNow);
    EXPECT_TRUE(checked.ok()) << checked.status();
    return checked.ok() ? *std::move(checked) : CheckedSpec();
  }

  std::string folder_;
  std::unique_ptr<Intake> intake_;
};

TEST_F(LongTextsTest, ATableOfTextsAloneIsLearntAsTexts) {
  const CheckedSpec checked = Checked(SpecOf(3, 0));
  ASSERT_EQ(checked.resolved.data().text().columns_size(), 1);
  EXPECT_EQ(checked.resolved.data().text().columns(0), "text");
  EXPECT_TRUE(checked.resolved.model().has_text());
  EXPECT_THAT(checked.warnings,
              Contains(HasSubstr("data.text.columns: 'text' (3 words a row), because")));
}

TEST_F(LongTextsTest, BesideOtherColumnsTextsMustBeLong) {
  EXPECT_TRUE(Checked(SpecOf(20, 3)).resolved.model().has_text());
  for (const auto& [words, numbers] : {std::pair(19, 1), {20, 4}, {2, 0}}) {
    const CheckedSpec checked = Checked(SpecOf(words, numbers));
    EXPECT_FALSE(checked.resolved.data().has_text()) << words << " " << numbers;
    EXPECT_TRUE(checked.resolved.model().has_automatic());
    EXPECT_THAT(checked.warnings, Not(Contains(HasSubstr("data.text"))));
  }
}

TEST_F(LongTextsTest, WhatTheSpecSaysStands) {
  v1::JobSpec spec = SpecOf(30, 1);
  spec.mutable_model()->mutable_automatic();
  EXPECT_FALSE(Checked(spec).resolved.data().has_text());
  spec = SpecOf(30, 1);
  spec.mutable_model()->mutable_lightgbm();
  EXPECT_FALSE(Checked(spec).resolved.data().has_text());
  spec = SpecOf(30, 1);
  spec.mutable_data()->set_text_features(true);
  EXPECT_FALSE(Checked(spec).resolved.data().has_text());
  spec = SpecOf(30, 1);
  spec.mutable_data()->set_id("text");
  EXPECT_FALSE(Checked(spec).resolved.data().has_text());
}

}  // namespace
}  // namespace traind
