#include "server/rpc/checked_specs.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/base/durable_file.h"
#include "common/spec/spec_rules.h"

namespace traind {
namespace {

v1::JobSpec SpecOf(const std::string& name) {
  v1::JobSpec spec;
  spec.set_api("v1");
  spec.set_name(name);
  spec.mutable_data()->set_train("/data/train.csv");
  // Stands before the Job's name in the text, and has the same key.
  (*spec.mutable_labels())["name"] = "b";
  spec.mutable_model()->mutable_mlp()->add_hidden(64);
  return spec;
}

CheckedSpec CheckOf(const v1::JobSpec& spec) {
  CheckedSpec checked;
  checked.resolved = spec;
  checked.resolved.set_priority(3);
  checked.spec.name = spec.name();
  checked.json = SpecToJson(checked.resolved);
  checked.sha256 = Sha256Hex(checked.json);
  checked.warnings = {"slow"};
  return checked;
}

TEST(CheckedSpecsTest, TwinsThatDifferInTheirNamesShareOneCheck) {
  CheckedSpecs known;
  const v1::JobSpec first = SpecOf("first"), second = SpecOf("a.second_2");
  const std::string key = CheckedSpecs::KeyOf(first);
  EXPECT_EQ(CheckedSpecs::KeyOf(second), key);
  EXPECT_EQ(known.Find(key), nullptr);
  known.Add(key, first, CheckOf(first));
  CheckedTwins* const twins = known.Find(key);
  ASSERT_NE(twins, nullptr);
  for (const v1::JobSpec* spec : {&first, &second, &first}) {
    const CheckedSpec of_its_own = CheckOf(*spec);
    const CheckedSpec& shared = twins->For(spec->name());
    EXPECT_EQ(shared.spec.name, spec->name());
    EXPECT_EQ(shared.resolved.name(), spec->name());
    EXPECT_EQ(shared.json, of_its_own.json);
    EXPECT_EQ(shared.sha256, of_its_own.sha256);
    EXPECT_EQ(shared.warnings, of_its_own.warnings);
    EXPECT_EQ(twins->AskedJson(spec->name()), SpecToJson(*spec));
  }
}

TEST(CheckedSpecsTest, AnyOtherDifferenceIsAnotherCheck) {
  const std::string key = CheckedSpecs::KeyOf(SpecOf("a"));
  v1::JobSpec other = SpecOf("a");
  other.mutable_data()->set_seed(1);
  EXPECT_NE(CheckedSpecs::KeyOf(other), key);
  other = SpecOf("a");
  other.mutable_budget()->mutable_time()->set_seconds(1);
  EXPECT_NE(CheckedSpecs::KeyOf(other), key);
}

TEST(CheckedSpecsTest, WhatDependsOnOtherJobsOrHasNoRightNameIsCheckedByItself) {
  for (const char* name : {"", "two words", "-a", "q\"uote"}) {
    EXPECT_EQ(CheckedSpecs::KeyOf(SpecOf(name)), "") << name;
  }
  v1::JobSpec spec = SpecOf("a");
  spec.set_from("b-123456");
  EXPECT_EQ(CheckedSpecs::KeyOf(spec), "");
  spec = SpecOf("a");
  spec.mutable_after()->add_jobs("b-123456");
  EXPECT_EQ(CheckedSpecs::KeyOf(spec), "");
  spec = SpecOf("a");
  spec.mutable_predict()->set_from("b-123456");
  EXPECT_EQ(CheckedSpecs::KeyOf(spec), "");
}

TEST(CheckedSpecsTest, ABatchOfSpecsThatAllDifferKeepsAFew) {
  CheckedSpecs known;
  std::vector<v1::JobSpec> specs;
  for (int i = 0; i < 100; ++i) {
    specs.push_back(SpecOf("a"));
    specs.back().mutable_data()->set_seed(i);
  }
  for (const v1::JobSpec& spec : specs) {
    known.Add(CheckedSpecs::KeyOf(spec), spec, CheckOf(spec));
  }
  int kept = 0;
  for (const v1::JobSpec& spec : specs) kept += known.Find(CheckedSpecs::KeyOf(spec)) != nullptr;
  EXPECT_GE(kept, 1);
  EXPECT_LE(kept, 16);
}

}  // namespace
}  // namespace traind
