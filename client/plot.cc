#include "client/plot.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace traind {
namespace {

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void Add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  // Returns where the value stands, from 0 to 1.
  double Place(double value) const { return high > low ? (value - low) / (high - low) : 0.5; }
};

std::string Number(double value) { return absl::StrFormat("%.4g", value); }

// The bits of a Braille pattern's dots, [row][column].
constexpr int kDots[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};

// A field of dots, several to a character.
// Threads: confined to one.
class Canvas {
 public:
  Canvas(int columns, int rows, bool braille)
      : braille_(braille),
        wide_(columns * (braille ? 2 : 1)),
        high_(rows * (braille ? 4 : 1)),
        columns_(columns),
        cells_(static_cast<size_t>(columns) * rows) {}

  // x, y: 0 to 1, y upwards.
  void Line(double x0, double y0, double x1, double y1) {
    const int steps =
        1 + static_cast<int>(std::max(std::abs(x1 - x0) * wide_, std::abs(y1 - y0) * high_));
    for (int i = 0; i <= steps; ++i) {
      const double share = static_cast<double>(i) / steps;
      Dot(x0 + (x1 - x0) * share, y0 + (y1 - y0) * share);
    }
  }

  std::string Row(int row) const {
    std::string text;
    for (int column = 0; column < columns_; ++column) {
      const int bits = cells_[static_cast<size_t>(row) * columns_ + column];
      if (bits == 0) {
        text += ' ';
      } else if (braille_) {
        // U+2800 + bits in UTF-8.
        text += {static_cast<char>(0xE2), static_cast<char>(0xA0 | bits >> 6),
                 static_cast<char>(0x80 | (bits & 0x3F))};
      } else {
        text += '*';
      }
    }
    return text.substr(0, text.find_last_not_of(' ') + 1);
  }

 private:
  void Dot(double x, double y) {
    const int column = std::min(wide_ - 1, static_cast<int>(x * wide_));
    const int row = std::min(high_ - 1, static_cast<int>((1 - y) * high_));
    if (braille_) {
      cells_[static_cast<size_t>(row / 4) * columns_ + column / 2] |= kDots[row % 4][column % 2];
    } else {
      cells_[static_cast<size_t>(row) * columns_ + column] = 1;
    }
  }

  const bool braille_;
  const int wide_, high_;  // in dots
  const int columns_;
  std::vector<int> cells_;  // [rows, columns]
};

bool IsFinite(const std::pair<double, double>& point) {
  return std::isfinite(point.first) && std::isfinite(point.second);
}

void Draw(const Curve& curve, const Range& x, const Range& y, Canvas& canvas) {
  const std::pair<double, double>* last = nullptr;
  for (const auto& point : curve) {
    if (!IsFinite(point)) continue;
    const auto& from = last == nullptr ? point : *last;
    canvas.Line(x.Place(from.first), y.Place(from.second), x.Place(point.first),
                y.Place(point.second));
    last = &point;
  }
}

}  // namespace

std::string PlotCurves(const std::string& title, const std::string& x_name,
                       const std::vector<Curve>& curves, const PlotStyle& style) {
  Range x, y;
  for (const Curve& curve : curves) {
    for (const auto& point : curve) {
      if (!IsFinite(point)) continue;
      x.Add(point.first);
      y.Add(point.second);
    }
  }
  if (x.low > x.high) return "";
  const std::string labels[] = {Number(y.high), Number((y.low + y.high) / 2), Number(y.low)};
  size_t margin = 0;
  for (const std::string& label : labels) margin = std::max(margin, label.size());
  const int columns = std::max(10, style.columns - static_cast<int>(margin) - 3);
  const int rows = std::max(3, style.rows);
  Canvas canvas(columns, rows, style.braille);
  for (const Curve& curve : curves) Draw(curve, x, y, canvas);
  std::string text = title + "\n";
  for (int row = 0; row < rows; ++row) {
    const std::string label = row == 0          ? labels[0]
                              : row == rows / 2 ? labels[1]
                              : row == rows - 1 ? labels[2]
                                                : "";
    absl::StrAppend(&text, std::string(margin - label.size(), ' '), label, " |", canvas.Row(row),
                    "\n");
  }
  const std::string indent(margin + 2, ' ');
  const std::string left = Number(x.low), right = Number(x.high);
  const std::string middle = absl::StrCat("  ", x_name, "  ");
  const int gap = columns - static_cast<int>(left.size() + middle.size() + right.size());
  const std::string blanks(static_cast<size_t>(std::max(0, gap / 2)), ' ');
  absl::StrAppend(&text, std::string(margin + 1, ' '), "+", std::string(columns, '-'), "\n", indent,
                  left, blanks, middle, blanks, right, "\n");
  return text;
}

}  // namespace traind
