#include "client/formats.h"

#include <absl/status/status.h>
#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "common/data/table/csv.h"

namespace traind {
namespace {

using Json = nlohmann::ordered_json;

std::string Text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.is_null() ? "" : value.dump();
}

// ---- YAML -------------------------------------------------------------------

// Whether YAML reads the text as this text when it stands there without quotes.
bool IsPlain(const std::string& text) {
  if (text.empty() || !absl::ascii_isalpha(text[0])) return false;
  const bool safe = std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.' || c == '/';
  });
  const std::string lower = absl::AsciiStrToLower(text);
  for (const char* word :
       {"true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf", "infinity"}) {
    if (lower == word) return false;
  }
  return safe;
}

std::string Scalar(const Json& value) {
  if (value.is_string() && IsPlain(value.get<std::string>())) return value.get<std::string>();
  return value.dump();  // JSON's strings are YAML's
}

bool IsEmptyOrScalar(const Json& value) { return !value.is_structured() || value.empty(); }

void WriteYaml(const Json& value, size_t indent, std::string& out);

void WriteEntry(const Json& value, size_t indent, std::string& out) {
  if (IsEmptyOrScalar(value)) {
    absl::StrAppend(&out, " ", Scalar(value), "\n");
  } else {
    out += "\n";
    WriteYaml(value, indent, out);
  }
}

void WriteYaml(const Json& value, size_t indent, std::string& out) {
  const std::string margin(indent, ' ');
  if (IsEmptyOrScalar(value)) {
    absl::StrAppend(&out, margin, Scalar(value), "\n");
  } else if (value.is_array()) {
    for (const Json& item : value) {
      std::string below;
      WriteYaml(item, indent + 2, below);
      below.replace(indent, 1, "-");  // in the margin of the first line
      out += below;
    }
  } else {
    for (const auto& [key, below] : value.items()) {
      absl::StrAppend(&out, margin, Scalar(key), ":");
      WriteEntry(below, indent + 2, out);
    }
  }
}

// ---- Lists ------------------------------------------------------------------

// Returns the list that a document is, or has as its only one; null: it is none.
const Json* ListOf(const Json& document) {
  if (document.is_array()) return &document;
  if (!document.is_object()) return nullptr;
  const Json* list = nullptr;
  for (const auto& [key, value] : document.items()) {
    if (!value.is_array()) continue;
    if (list != nullptr) return nullptr;
    list = &value;
  }
  return list;
}

using Cells = std::vector<std::pair<std::string, std::string>>;  // path, text

void AddCells(const Json& value, const std::string& path, Cells& cells) {
  if (value.is_array()) return;
  if (!value.is_object()) {
    cells.emplace_back(path, Text(value));
    return;
  }
  for (const auto& [key, below] : value.items()) {
    AddCells(below, path.empty() ? key : absl::StrCat(path, ".", key), cells);
  }
}

// The columns are those of all elements, in the order in which they first appear. A section that
// one element lacks is null there, which is no column where others have it.
std::string Csv(const Json& list) {
  std::vector<std::string> columns;
  std::vector<std::map<std::string, std::string>> rows;
  for (const Json& item : list) {
    Cells cells;
    AddCells(item, "", cells);
    for (const auto& [path, text] : cells) {
      if (std::find(columns.begin(), columns.end(), path) == columns.end()) columns.push_back(path);
    }
    rows.emplace_back(cells.begin(), cells.end());
  }
  const auto is_section = [&columns](const std::string& path) {
    return std::any_of(columns.begin(), columns.end(), [&path](const std::string& other) {
      return other.size() > path.size() && other.compare(0, path.size() + 1, path + ".") == 0;
    });
  };
  columns.erase(std::remove_if(columns.begin(), columns.end(), is_section), columns.end());
  std::vector<std::string> line;
  for (const std::string& column : columns) line.push_back(CsvField(column));
  std::string text = absl::StrJoin(line, ",") + "\n";
  for (auto& row : rows) {
    line.clear();
    for (const std::string& column : columns) line.push_back(CsvField(row[column]));
    absl::StrAppend(&text, absl::StrJoin(line, ","), "\n");
  }
  return text;
}

std::string NameOf(const Json& item) {
  if (!item.is_object()) return Text(item);
  for (const char* key : {"id", "name"}) {
    if (item.contains(key) && !item[key].is_structured()) return Text(item[key]);
  }
  Cells cells;
  AddCells(item, "", cells);
  for (const auto& [path, text] : cells) {
    if (!text.empty()) return text;
  }
  return "";
}

// Returns the one element that a document tells of: itself if it has an id, else its only section;
// null: there is none.
const Json* OneOf(const Json& document) {
  if (!document.is_object()) return nullptr;
  if (document.contains("id") && document["id"].is_string()) return &document;
  const Json* section = nullptr;
  for (const auto& [key, value] : document.items()) {
    if (value.is_array() || (value.is_object() && section != nullptr)) return nullptr;
    if (value.is_object()) section = &value;
  }
  return section;
}

}  // namespace

OutputFormat OutputFormatOf(absl::string_view name) {
  return name == "wide"    ? OutputFormat::kWide
         : name == "json"  ? OutputFormat::kJson
         : name == "jsonl" ? OutputFormat::kJsonLines
         : name == "yaml"  ? OutputFormat::kYaml
         : name == "csv"   ? OutputFormat::kCsv
         : name == "name"  ? OutputFormat::kName
                           : OutputFormat::kTable;
}

absl::StatusOr<std::string> FormatDocument(absl::string_view json, OutputFormat format) {
  const Json document = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) return absl::InvalidArgumentError("this is no JSON document");
  std::string out;
  if (format == OutputFormat::kYaml) {
    WriteYaml(document, 0, out);
    return out;
  }
  const Json* const one = format == OutputFormat::kName ? OneOf(document) : nullptr;
  if (one != nullptr) return NameOf(*one) + "\n";
  const Json* const list = ListOf(document);
  if (list == nullptr) return absl::InvalidArgumentError("this is no list");
  if (format == OutputFormat::kCsv) return Csv(*list);
  for (const Json& item : *list) {
    absl::StrAppend(&out, format == OutputFormat::kName ? NameOf(item) : item.dump(), "\n");
  }
  return out;
}

}  // namespace traind
