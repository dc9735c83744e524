#include "server/rpc/fact_checks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/common/facts/field_values.h"

namespace traind {
namespace {

TEST(FactChecksTest, PathsThatLeaveTheirFolderAreRefused) {
  for (const char* path : {"/etc/passwd", "../x", "a/../../x", ".."}) {
    facts::FoldSaved oof, test;
    oof.oof = path;
    test.test = path;
    facts::TableReady table;
    table.table = path;
    facts::CheckpointSaved checkpoint;
    checkpoint.manifest = path;
    for (const facts::Fact& fact : std::vector<facts::Fact>{oof, test, table, checkpoint}) {
      EXPECT_FALSE(CheckedFact(fact).has_value()) << path << " " << fact.index();
    }
  }
  facts::FoldSaved good;
  good.oof = "attempts/1/oof..npy";
  EXPECT_TRUE(CheckedFact(good).has_value());
}

TEST(FactChecksTest, MeasurementsThatAreNoNumbersAreNotMeasured) {
  facts::Probe probe;
  probe.step_s = std::nan("");
  probe.step_p90_s = -1;
  probe.evaluate_s = std::numeric_limits<double>::infinity();
  probe.predict_s = 0.5;
  const auto checked = std::get<facts::Probe>(*CheckedFact(probe));
  EXPECT_EQ(checked.step_s, 0);
  EXPECT_EQ(checked.step_p90_s, 0);
  EXPECT_EQ(checked.evaluate_s, 0);
  EXPECT_EQ(checked.predict_s, 0.5);
  facts::FoldSaved fold;
  fold.predict_s = -3;
  fold.best_epoch = std::nan("");
  const auto saved = std::get<facts::FoldSaved>(*CheckedFact(fold));
  EXPECT_EQ(saved.predict_s, 0);
  EXPECT_EQ(saved.best_epoch, 0);
}

TEST(FactChecksTest, EachColumnHasItsImportance) {
  facts::Importance importance;
  importance.columns = {"a", "b", "c"};
  importance.drops = {0.5, 0.25};
  EXPECT_EQ(std::get<facts::Importance>(*CheckedFact(importance)).columns.size(), 2u);
  importance.columns.assign(5000, "a");
  importance.drops.assign(5000, 0.5);
  EXPECT_EQ(std::get<facts::Importance>(*CheckedFact(importance)).drops.size(), 1000u);
}

TEST(FactChecksTest, AnEpochsShareOfTheRowsIsAboveZeroAndOneAtMost) {
  facts::Epoch epoch;
  epoch.evaluate_s = epoch.epoch_s = -1;
  for (const double share : {0.0, -0.5, 1.5, std::nan("")}) {
    epoch.row_share = share;
    const auto checked = std::get<facts::Epoch>(*CheckedFact(epoch));
    EXPECT_EQ(checked.row_share, 1) << share;
    EXPECT_EQ(checked.epoch_s, 0);
    EXPECT_EQ(checked.evaluate_s, 0);
  }
  epoch.row_share = 0.25;
  EXPECT_EQ(std::get<facts::Epoch>(*CheckedFact(epoch)).row_share, 0.25);
}

TEST(FactChecksTest, AnEndWithoutAReasonIsInternal) {
  const auto ended = std::get<facts::Ended>(*CheckedFact(facts::Ended{}));
  EXPECT_EQ(ended.reason, AttemptEndReason::kInternal);
}

template <class M>
class GoodFactTest : public ::testing::Test {};
template <class Variant>
struct Alternatives;
template <class... M>
struct Alternatives<std::variant<M...>> {
  using Types = ::testing::Types<M...>;
};
TYPED_TEST_SUITE(GoodFactTest, Alternatives<facts::Fact>::Types);

TYPED_TEST(GoodFactTest, IsLeftAsItIs) {
  TypeParam fact = Filled<TypeParam>();
  if constexpr (std::is_same_v<TypeParam, facts::Epoch>) fact.row_share = 0.5;
  EXPECT_EQ(Shown(std::get<TypeParam>(*CheckedFact(fact))), Shown(fact));
}

TEST(FactChecksTest, FiguresOfDevicesThatCannotBeAreLeftOut) {
  v1::DeviceFigures figures;
  figures.set_utilisation(1.5);
  figures.set_memory_bytes(-1);
  figures.set_power_watts(std::nan(""));
  figures.set_temperature_celsius(std::numeric_limits<double>::infinity());
  figures.set_energy_joules(-0.5);
  EXPECT_EQ(CheckedFigures(figures).ByteSizeLong(), 0u);
  figures.set_utilisation(1);
  figures.set_memory_bytes(0);
  figures.set_power_watts(250);
  figures.set_temperature_celsius(61);
  figures.set_energy_joules(0);
  EXPECT_EQ(CheckedFigures(figures).SerializeAsString(), figures.SerializeAsString());
}

}  // namespace
}  // namespace traind
