// Numbers in JSON files. JSON has no word for NaN and infinity: they are the texts "NaN",
// "Infinity" and "-Infinity".
#pragma once

#include <cmath>
#include <limits>
#include <optional>

namespace traind {

// Json: nlohmann::json or nlohmann::ordered_json.
template <class Json>
Json NumberToJson(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

// nullopt: it is no number.
template <class Json>
std::optional<double> NumberFromJson(const Json& json) {
  if (json.is_number()) return json.template get<double>();
  if (json == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (json == "Infinity") return std::numeric_limits<double>::infinity();
  if (json == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

}  // namespace traind
