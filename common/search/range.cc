#include "common/search/range.h"

#include <absl/status/status.h>
#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/suggest.h"

namespace traind {
namespace {

constexpr size_t kMostChoices = 1000;
constexpr double kMostWhole = 1e9;

struct Form {
  Range::Kind kind;
  const char* word;
  const char* example;
};
constexpr Form kForms[] = {{Range::kUniform, "uniform", "uniform(0, 0.5)"},
                           {Range::kLog, "log", "log(1e-4, 1e-1)"},
                           {Range::kInt, "int", "int(2, 8)"},
                           {Range::kLogInt, "log_int", "log_int(4, 200)"},
                           {Range::kChoice, "choice", "choice(a, b)"}};

const Form& FormOf(Range::Kind kind) {
  return *std::find_if(std::begin(kForms), std::end(kForms),
                       [kind](const Form& form) { return form.kind == kind; });
}

absl::Status Refuse(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("'", text.substr(0, 80), "' ", why));
}

std::string Number(double value) { return absl::StrFormat("%.12g", value); }

bool IsWhole(double value) { return value == std::floor(value) && std::abs(value) <= kMostWhole; }

// Splits at the commas that stand outside of brackets.
std::vector<std::string> Arguments(absl::string_view text) {
  std::vector<std::string> arguments(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c == ',' && depth == 0) {
      arguments.emplace_back();
    } else {
      arguments.back() += c;
    }
  }
  for (std::string& argument : arguments) absl::StripAsciiWhitespace(&argument);
  return arguments;
}

absl::Status CheckChoices(absl::string_view text, const std::vector<std::string>& choices) {
  if (choices.size() > kMostChoices) {
    return Refuse(text, absl::StrCat("has more than ", kMostChoices, " values"));
  }
  for (size_t i = 0; i < choices.size(); ++i) {
    if (choices[i].empty()) return Refuse(text, "has an empty value");
    if (std::find(choices.begin(), choices.begin() + static_cast<std::ptrdiff_t>(i), choices[i]) !=
        choices.begin() + static_cast<std::ptrdiff_t>(i)) {
      return Refuse(text, absl::StrCat("has '", choices[i], "' twice"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckEnds(absl::string_view text, const Range& range) {
  if (range.low > range.high) {
    return Refuse(text, absl::StrCat("has its ends reversed; write ", FormOf(range.kind).word, "(",
                                     Number(range.high), ", ", Number(range.low), ")"));
  }
  const bool log = range.kind == Range::kLog || range.kind == Range::kLogInt;
  if (log && range.low <= 0) {
    return Refuse(text, "begins at 0 or below; a logarithmic range begins above 0");
  }
  const bool whole = range.kind == Range::kInt || range.kind == Range::kLogInt;
  if (whole && (!IsWhole(range.low) || !IsWhole(range.high) || !IsWhole(range.step))) {
    return Refuse(text, "needs whole numbers");
  }
  return absl::OkStatus();
}

// The third argument: a step, or the number of values of a logarithmic range.
absl::Status TakeStep(absl::string_view text, double number, Range& range) {
  if (range.kind == Range::kLogInt) return Refuse(text, "has a third number; log_int takes two");
  if (range.kind == Range::kLog) {
    if (!IsWhole(number) || number < 2 || number > kMostChoices) {
      return Refuse(text, absl::StrCat("needs a number of values from 2 to ", kMostChoices));
    }
    range.count = static_cast<int>(number);
    return absl::OkStatus();
  }
  if (number <= 0) return Refuse(text, "has a step that is not above 0");
  range.step = number;
  return absl::OkStatus();
}

absl::Status TakeNumbers(absl::string_view text, const std::vector<std::string>& arguments,
                         Range& range) {
  std::vector<double> numbers;
  for (const std::string& argument : arguments) {
    double number = 0;
    if (!absl::SimpleAtod(argument, &number) || !std::isfinite(number)) {
      return Refuse(text, absl::StrCat("has '", argument, "', which is no number"));
    }
    numbers.push_back(number);
  }
  if (numbers.size() < 2 || numbers.size() > 3) {
    return Refuse(text, absl::StrCat("needs two ends, as in ", FormOf(range.kind).example));
  }
  range.low = numbers[0];
  range.high = numbers[1];
  if (numbers.size() == 3) {
    if (const absl::Status step = TakeStep(text, numbers[2], range); !step.ok()) return step;
  } else if (range.kind == Range::kInt) {
    range.step = 1;
  }
  return CheckEnds(text, range);
}

// A whole number of steps, also where decimal fractions are not exact.
int StepsOf(const Range& range) {
  const double steps = std::floor((range.high - range.low) / range.step + 1e-9);
  return static_cast<int>(std::min(steps, kMostWhole));
}

// Short, but never beyond the range.
std::string Rounded(const Range& range, double value) {
  if (range.step > 0) return absl::StrFormat("%.10g", value);
  std::string text = absl::StrFormat("%.5g", value);
  double read = 0;
  if (!absl::SimpleAtod(text, &read)) return text;
  if (read < range.low) return absl::StrFormat("%.17g", range.low);
  if (read > range.high) return absl::StrFormat("%.17g", range.high);
  return text;
}

}  // namespace

absl::StatusOr<Range> ParseRange(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  const size_t open = text.find('(');
  const absl::string_view word = absl::StripAsciiWhitespace(text.substr(0, open));
  std::vector<std::string> words, examples;
  const Form* form = nullptr;
  for (const Form& known : kForms) {
    if (word == known.word) form = &known;
    words.emplace_back(known.word);
    examples.emplace_back(known.example);
  }
  if (open == text.npos || form == nullptr) {
    return Refuse(
        text, absl::StrCat("is no range; write a list, or one of ", absl::StrJoin(examples, ", "),
                           open == text.npos ? "" : DidYouMean(word, words)));
  }
  absl::string_view inner = text.substr(open + 1);
  if (!absl::ConsumeSuffix(&inner, ")")) {
    return Refuse(text, "has no ')' at its end; within braces a range needs quotes");
  }
  Range range;
  range.kind = form->kind;
  std::vector<std::string> arguments = Arguments(inner);
  absl::Status status;
  if (range.kind == Range::kChoice) {
    status = CheckChoices(text, arguments);
    range.choices = std::move(arguments);
  } else {
    status = TakeNumbers(text, arguments, range);
  }
  if (!status.ok()) return status;
  if (ValueCount(range) < 2) return Refuse(text, "has one value; set the field itself");
  return range;
}

std::string Text(const Range& range) {
  const char* const word = FormOf(range.kind).word;
  if (range.kind == Range::kChoice) {
    return absl::StrCat(word, "(", absl::StrJoin(range.choices, ", "), ")");
  }
  std::string text = absl::StrCat(word, "(", Number(range.low), ", ", Number(range.high));
  const bool usual = range.kind == Range::kInt && range.step == 1;
  if (range.step > 0 && !usual) absl::StrAppend(&text, ", ", Number(range.step));
  if (range.count > 0) absl::StrAppend(&text, ", ", range.count);
  return text + ")";
}

double ValueCount(const Range& range) {
  if (range.kind == Range::kChoice) return static_cast<double>(range.choices.size());
  if (range.low == range.high) return 1;
  if (range.kind == Range::kLogInt) return range.high - range.low + 1;
  if (range.step > 0) return StepsOf(range) + 1;
  if (range.count > 0) return range.count;
  return std::numeric_limits<double>::infinity();
}

std::string ValueOf(const Range& range, int index) {
  if (range.kind == Range::kLogInt) return absl::StrCat(static_cast<int64_t>(range.low) + index);
  if (range.step > 0) return Rounded(range, range.low + index * range.step);
  return ValueAt(range, index);
}

Axis AxisOf(const Range& range) {
  Axis axis;
  if (range.kind == Range::kChoice) {
    axis.choices = static_cast<int>(range.choices.size());
  } else if (range.step > 0) {
    axis.step = range.step;
    axis.low = range.low - range.step / 2;
    axis.high = range.low + (StepsOf(range) + 0.5) * range.step;
  } else if (range.kind == Range::kLogInt) {
    axis.low = std::log(range.low - 0.5);
    axis.high = std::log(range.high + 0.5);
  } else if (range.count > 0) {
    axis.step = 1;
    axis.low = -0.5;
    axis.high = range.count - 0.5;
  } else {
    const bool log = range.kind == Range::kLog;
    axis.low = log ? std::log(range.low) : range.low;
    axis.high = log ? std::log(range.high) : range.high;
  }
  return axis;
}

std::string ValueAt(const Range& range, double place) {
  const auto index = [place](int count) {
    return static_cast<size_t>(std::clamp(std::round(place), 0.0, count - 1.0));
  };
  if (range.kind == Range::kChoice) return range.choices[index(AxisOf(range).choices)];
  if (range.step > 0) {
    const double steps = std::round((place - range.low) / range.step);
    return Rounded(range, range.low + std::clamp<double>(steps, 0, StepsOf(range)) * range.step);
  }
  if (range.kind == Range::kLogInt) {
    const double whole = std::clamp(std::round(std::exp(place)), range.low, range.high);
    return absl::StrCat(static_cast<int64_t>(whole));
  }
  if (range.count > 0) {
    const double share = static_cast<double>(index(range.count)) / (range.count - 1);
    return Rounded(range, range.low * std::pow(range.high / range.low, share));
  }
  return Rounded(range, range.kind == Range::kLog ? std::exp(place) : place);
}

std::optional<double> PlaceOf(const Range& range, absl::string_view value) {
  if (range.kind == Range::kChoice) {
    const auto found = std::find(range.choices.begin(), range.choices.end(), value);
    if (found == range.choices.end()) return std::nullopt;
    return static_cast<double>(found - range.choices.begin());
  }
  double number = 0;
  if (!absl::SimpleAtod(value, &number) || !(number >= range.low && number <= range.high)) {
    return std::nullopt;
  }
  if (range.count > 0) {
    return std::log(number / range.low) / std::log(range.high / range.low) * (range.count - 1);
  }
  const bool log = range.kind == Range::kLog || range.kind == Range::kLogInt;
  return log ? std::log(number) : number;
}

absl::StatusOr<Space> ParseSpace(const std::vector<std::pair<std::string, std::string>>& ranges) {
  Space space;
  for (const auto& [path, text] : ranges) {
    absl::StatusOr<Range> range = ParseRange(text);
    if (!range.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": ", range.status().message()));
    }
    space.push_back({path, *std::move(range)});
  }
  return space;
}

double PointCount(const Space& space) {
  double count = 1;
  for (const Parameter& parameter : space) count *= ValueCount(parameter.range);
  return count;
}

}  // namespace traind
