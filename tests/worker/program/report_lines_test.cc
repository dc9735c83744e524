#include "worker/program/report_lines.h"

#include <gtest/gtest.h>

namespace traind {
namespace {

TEST(ReportLines, FiguresOfAnObjectAreRead) {
  const ProgramReport report =
      ReadReportLine(R"({"epoch": 3, "epochs": 20, "loss": 0.31, "metric": 0.93, "other": "x"})");
  EXPECT_EQ(report.epoch, 3);
  EXPECT_EQ(report.epochs, 20);
  EXPECT_EQ(report.loss, 0.31);
  EXPECT_EQ(report.metric, 0.93);
}

TEST(ReportLines, WhatIsNoFigureIsPassedOver) {
  const ProgramReport report = ReadReportLine(R"({"epoch": "3", "loss": null, "metric": 1e999})");
  EXPECT_FALSE(report.epoch || report.loss || report.metric);
  for (const char* line : {"", "7", "[1]", "{\"epoch\": 3", "\xff\xfe"}) {
    EXPECT_FALSE(ReadReportLine(line).epoch.has_value()) << line;
  }
}

struct Line {
  const char* text;
  std::optional<double> epoch, epochs, loss;
};

class OutputLine : public testing::TestWithParam<Line> {};

TEST_P(OutputLine, IsRead) {
  const ProgramReport report = ReadOutputLine(GetParam().text);
  EXPECT_EQ(report.epoch, GetParam().epoch) << GetParam().text;
  EXPECT_EQ(report.epochs, GetParam().epochs) << GetParam().text;
  EXPECT_EQ(report.loss, GetParam().loss) << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(
    Libraries, OutputLine,
    testing::Values(
        Line{"Epoch 3/20", 2, 20, {}},                                               // Keras
        Line{"Epoch [3/20], Loss: 0.2954", 2, 20, 0.2954},                           // tutorials
        Line{"Train Epoch: 2 [640/60000 (1%)]\tLoss: 1.0312", 1, {}, 1.0312},        // PyTorch
        Line{"Epoch 4:  35%|###5      | 7/20 [00:03<00:05, loss=0.5]", 3, {}, 0.5},  // Lightning
        Line{"{'loss': 0.4, 'epoch': 1.5}", {}, {}, {}},  // a dictionary: quotes stand between
        Line{"epoch=7 val_loss=0.1 loss=0.2", 6, {}, 0.1}, Line{"Epoch 1 of 3", 0, 3, {}},
        Line{"epochs: 20", {}, {}, {}}, Line{"the loss of my wallet", {}, {}, {}},
        Line{"Epoch: end.", {}, {}, {}}, Line{"", {}, {}, {}}));

}  // namespace
}  // namespace traind
