// The keys by which folds are taken over, and by which speeds are remembered.
#include "server/intake/domain_spec.h"

#include <gtest/gtest.h>

#include "common/spec/spec_rules.h"

namespace traind {
namespace {

v1::JobSpec Volumes() {
  v1::JobSpec spec;
  spec.set_api("v1");
  spec.mutable_data()->set_train("/data/train.csv");
  spec.mutable_data()->mutable_volume();
  return ResolveSpec(spec);
}

TEST(DomainSpecTest, FoldsThatKeepAllComponentsHaveTheKeyOfBefore) {
  const Spec plain = ToDomain(Volumes());
  v1::JobSpec spec = Volumes();
  ASSERT_EQ(spec.data().volume().components(), "all");
  spec.mutable_data()->mutable_volume()->clear_components();
  EXPECT_EQ(ToDomain(spec).cache_key, plain.cache_key);
  spec.mutable_data()->mutable_volume()->set_components("largest");
  EXPECT_NE(ToDomain(spec).cache_key, plain.cache_key);
  EXPECT_EQ(ToDomain(spec).speed_key, plain.speed_key);
}

TEST(DomainSpecTest, AnotherSpacingIsAnotherFoldAndAnotherSpeed) {
  v1::JobSpec median = Volumes(), given = Volumes();
  median.mutable_data()->mutable_volume()->set_spacing("auto");
  for (int axis = 0; axis < 3; ++axis) given.mutable_data()->mutable_volume()->add_spacings(1);
  const Spec plain = ToDomain(Volumes()), by_median = ToDomain(median), by_given = ToDomain(given);
  EXPECT_NE(by_median.cache_key, plain.cache_key);
  EXPECT_NE(by_given.cache_key, plain.cache_key);
  EXPECT_NE(by_given.cache_key, by_median.cache_key);
  EXPECT_NE(by_median.speed_key, plain.speed_key);
  EXPECT_NE(by_given.speed_key, by_median.speed_key);
}

}  // namespace
}  // namespace traind
