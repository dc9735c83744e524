// What a program tells of itself: JSON lines on its descriptor 3, else what its output says.
#pragma once

#include <absl/strings/string_view.h>

#include <optional>

namespace traind {

// Figures of a program; what it has not told is empty.
struct ProgramReport {
  std::optional<double> epoch;   // epochs done; may be a fraction
  std::optional<double> epochs;  // that it means to do
  std::optional<double> loss;
  std::optional<double> metric;
};

// Reads {"epoch": 3, "epochs": 20, "loss": 0.31, "metric": 0.93}. Unknown keys, null and numbers
// that are not finite are passed over; a line that is no object has no figures.
ProgramReport ReadReportLine(absl::string_view line);

// Finds the figures in a line of output as common libraries print them: "Epoch 3/20",
// "epoch [3/20]", "Epoch: 3", "epoch=3 loss=0.31", "Train Epoch: 3 ... Loss: 0.31". Such a line
// names the running epoch: with "Epoch 3" two are done.
ProgramReport ReadOutputLine(absl::string_view line);

}  // namespace traind
