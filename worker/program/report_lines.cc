#include "worker/program/report_lines.h"

#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

namespace traind {
namespace {

std::optional<double> NumberOf(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  return std::isfinite(value) ? std::optional<double>(value) : std::nullopt;
}

void Skip(absl::string_view& text, absl::string_view characters) {
  text.remove_prefix(std::min(text.find_first_not_of(characters), text.size()));
}

// Takes a number from the front of the text.
std::optional<double> TakeNumber(absl::string_view& text) {
  const size_t size = std::min(text.find_first_not_of("0123456789.eE+-"), text.size());
  double value = 0;
  // A full stop may end the sentence.
  const absl::string_view digits = absl::StripSuffix(text.substr(0, size), ".");
  if (digits.empty() || !absl::ascii_isdigit(digits.back())) return std::nullopt;
  if (!absl::SimpleAtod(digits, &value) || !std::isfinite(value)) return std::nullopt;
  text.remove_prefix(size);
  return value;
}

// Returns the text behind a word of its own; empty: it is not there. lower: in small letters.
absl::string_view Behind(absl::string_view lower, absl::string_view word) {
  for (size_t at = lower.find(word); at != absl::string_view::npos; at = lower.find(word, at + 1)) {
    const bool begins = at == 0 || !absl::ascii_isalnum(lower[at - 1]);
    if (begins) return lower.substr(at + word.size());
  }
  return {};
}

}  // namespace

ProgramReport ReadReportLine(absl::string_view line) {
  const nlohmann::json object =
      nlohmann::json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return {};
  return {NumberOf(object, "epoch"), NumberOf(object, "epochs"), NumberOf(object, "loss"),
          NumberOf(object, "metric")};
}

ProgramReport ReadOutputLine(absl::string_view line) {
  constexpr size_t kLooked = 1024;
  const std::string lower = absl::AsciiStrToLower(line.substr(0, kLooked));
  ProgramReport report;
  if (absl::string_view rest = Behind(lower, "epoch"); !rest.empty()) {
    Skip(rest, " :=#[(\t");
    if (const std::optional<double> running = TakeNumber(rest); running && *running >= 0) {
      Skip(rest, " ");
      const bool total = absl::ConsumePrefix(&rest, "/") || absl::ConsumePrefix(&rest, "of ");
      Skip(rest, " ");
      if (total) report.epochs = TakeNumber(rest);
      report.epoch = std::max(0.0, std::ceil(*running) - 1);
    }
  }
  if (absl::string_view rest = Behind(lower, "loss"); !rest.empty()) {
    Skip(rest, " :=\t");
    report.loss = TakeNumber(rest);
  }
  return report;
}

}  // namespace traind
