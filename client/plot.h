// Curves as text, for terminals and logs.
// Threads: safe, pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace traind {

using Curve = std::vector<std::pair<double, double>>;  // (x, y), x ascending

struct PlotStyle {
  int columns = 80;  // of the whole plot, with its labels
  int rows = 12;     // of the curves
  // Whether the reader shows Braille patterns, which have 2 x 4 dots a character; else a dot is a
  // '*'.
  bool braille = false;
};

// Draws the curves over one pair of axes, with the range of each: the title, style.rows lines and
// two lines of the x axis. Numbers that are not finite are left out. Returns "" if there is no
// point.
std::string PlotCurves(const std::string& title, const std::string& x_name,
                       const std::vector<Curve>& curves, const PlotStyle& style);

}  // namespace traind
