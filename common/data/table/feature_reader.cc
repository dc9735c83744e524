#include "common/data/table/feature_reader.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>

#include "common/base/status_macros.h"
#include "common/base/suggest.h"
#include "common/data/table/date_parts.h"
#include "common/data/table/feature_columns.h"
#include "common/data/table/number.h"
#include "common/data/table/train_file.h"
#include "common/data/table/written_date.h"

namespace traind {
namespace {

constexpr char kTrainedOn[] = "the training data";

void ReadNumbers(const FeatureField& field, const absl::string_view* texts, size_t columns,
                 size_t count, float* out) {
  if (field.offset != 0) return ParseNumbersLess(field.offset, texts, columns, count, out);
  if (field.date_part < 0) return ParseNumbers(texts, columns, count, out);
  for (size_t i = 0; i < count; ++i) {
    double time;
    const bool date = ParseTime(texts[i * columns], field.date_order, time);
    out[i] = date ? DatePartOf(static_cast<size_t>(field.date_part), time) : std::nanf("");
  }
}

// Appends the parts of each text to as many features.
void ReadParts(const TextFeatureReader& reader, const absl::string_view* texts, size_t columns,
               size_t count, ColumnRows* rows) {
  std::vector<float> parts(reader.parts().size());
  for (size_t i = 0; i < count; ++i) {
    const absl::string_view text = texts[i * columns];
    reader.Read(IsMissingValue(text) ? "" : text, parts.data());
    for (size_t part = 0; part < parts.size(); ++part) rows[part].numbers.push_back(parts[part]);
  }
}

bool IsOfText(const Column& feature) {
  return feature.text_feature.kind != TextFeature::Kind::kNone;
}

// The parts that the features from `first` on have of one column's texts.
std::vector<TextFeature> PartsFrom(const std::vector<Column>& features, size_t first) {
  std::vector<TextFeature> parts;
  for (size_t i = first; i < features.size() && IsOfText(features[i]); ++i) {
    if (features[i].source != features[first].source) break;
    parts.push_back(features[i].text_feature);
  }
  return parts;
}

absl::Status BadField(const FeatureField& field, const FeaturePlace& place, int64_t row,
                      int64_t line, absl::string_view text) {
  float ignored;
  const bool is_text = ParseNumber(text, ignored) == NumberKind::kText;
  const std::string where = Place(place.file, row, line, field.name);
  return absl::InvalidArgumentError(
      field.date_part >= 0
          ? absl::StrCat(where, ": '", text.substr(0, 64), "' is not a date, but ",
                         place.trained_on, " has dates there")
          : absl::StrCat(where, ": '", text.substr(0, 64), "' is ",
                         is_text ? "not a number, but " : "not a finite number, but ",
                         place.trained_on, " has numbers there"));
}

}  // namespace

absl::Status AddFeatureRows(const std::vector<FeatureField>& fields, const CsvRows& block,
                            size_t columns, const FeaturePlace& place,
                            std::vector<ColumnRows>& rows, std::vector<StrayTexts>* strays) {
  if (strays != nullptr) strays->resize(fields.size());
  if (block.rows() == 0) return absl::OkStatus();  // it has no fields to point to
  size_t first_bad = block.rows();                 // the error names the first bad row
  absl::Status status;
  for (size_t f = 0; f < fields.size(); ++f) {
    const absl::string_view* field = block.fields() + fields[f].column;
    if (fields[f].categories != nullptr) {
      for (size_t i = 0; i < block.rows(); ++i, field += columns) {
        rows[f].codes.push_back(IsMissingValue(*field) ? kMissingCode
                                                       : fields[f].categories->Find(*field));
      }
      continue;
    }
    if (fields[f].text) {
      if (fields[f].parts != nullptr)
        ReadParts(*fields[f].parts, field, columns, block.rows(), &rows[f]);
      continue;
    }
    std::vector<float>& numbers = rows[f].numbers;
    const size_t begin = numbers.size();
    numbers.resize(begin + block.rows());
    ReadNumbers(fields[f], field, columns, block.rows(), numbers.data() + begin);
    const bool date = fields[f].date_part >= 0;
    // The parts of a date have the same texts.
    const bool counted = strays != nullptr && !(date && f > 0 && fields[f - 1].date_part >= 0 &&
                                                fields[f - 1].column == fields[f].column);
    for (size_t i = 0; i < first_bad; ++i) {
      const absl::string_view text = field[i * columns];
      if (!std::isnan(numbers[begin + i])) {
        if (counted) ++(*strays)[f].numbers;
        continue;
      }
      if (IsMissingNumber(text)) continue;
      const int64_t row = place.before + static_cast<int64_t>(i) + 1;
      float ignored;
      if (strays != nullptr && (date || ParseNumber(text, ignored) == NumberKind::kText)) {
        if (counted) {
          (*strays)[f].Add({row, block.lines()[i], std::string(text.substr(0, 64))});
        }
        continue;
      }
      first_bad = i;
      status = BadField(fields[f], place, row, block.lines()[i], text);
    }
  }
  return status;
}

absl::Status CheckStrayTexts(const std::vector<FeatureField>& fields, const FeaturePlace& place,
                             const std::vector<StrayTexts>& strays,
                             std::vector<std::string>& warnings) {
  const BadValue* first_bad = nullptr;
  size_t bad_field = 0;
  for (size_t f = 0; f < strays.size(); ++f) {
    if (strays[f].count == 0) continue;
    const BadValue& first = strays[f].first.front();
    if (strays[f].Few()) {
      warnings.push_back(StrayTextsWarning(place.file, fields[f].name, strays[f],
                                           fields[f].date_part >= 0 ? "date" : "number"));
    } else if (first_bad == nullptr || first.row < first_bad->row) {
      first_bad = &first;
      bad_field = f;
    }
  }
  if (first_bad == nullptr) return absl::OkStatus();
  return BadField(fields[bad_field], place, first_bad->row, first_bad->line, first_bad->text);
}

InputSchema InputSchemaOf(const TableSchema& schema) {
  InputSchema input;
  for (const Column& column : schema.features) {
    if (!column.floor_only) input.features.push_back(column);
  }
  input.id = schema.id;
  input.target_kind = schema.target_kind;
  input.targets.push_back(schema.target);
  input.targets.insert(input.targets.end(), schema.more_targets.begin(), schema.more_targets.end());
  input.classes = schema.classes;
  input.text_columns = schema.text_columns;
  return input;
}

absl::StatusOr<CsvText> OpenDataFile(const CsvFile& file, std::vector<std::string>& warnings) {
  TableFileHeader header;
  RETURN_IF_ERROR(header.Read(file, warnings));
  return header.text();
}

absl::StatusOr<std::unique_ptr<FeatureReader>> FeatureReader::Match(
    const InputSchema& schema, const std::vector<std::string>& header, std::string file) {
  std::unique_ptr<FeatureReader> reader(new FeatureReader());
  absl::flat_hash_map<absl::string_view, size_t> places;
  for (size_t i = 0; i < header.size(); ++i) places.emplace(header[i], i);
  absl::flat_hash_set<absl::string_view> used(schema.targets.begin(), schema.targets.end());
  std::vector<std::string> missing;
  size_t parts_end = 0;  // the first feature behind those of the last reader of parts
  for (size_t f = 0; f < schema.features.size(); ++f) {
    const Column& feature = schema.features[f];
    const std::string& column = feature.file_column();
    const auto at = places.find(column);
    used.insert(column);
    if (at == places.end()) {
      if (std::find(missing.begin(), missing.end(), column) == missing.end()) {
        missing.push_back(column);
      }
      continue;
    }
    FeatureField field;
    field.column = at->second;
    field.name = column;
    field.date_part = feature.date_part;
    field.date_order = feature.date_order;
    field.offset = feature.offset;
    field.text = IsOfText(feature);
    if (field.text && f >= parts_end) {
      const std::vector<TextFeature> parts = PartsFrom(schema.features, f);
      parts_end = f + parts.size();
      field.parts = reader->parts_.emplace_back(new TextFeatureReader(parts)).get();
    }
    if (feature.kind == ColumnKind::kCategorical) {
      Dictionary& dictionary = *reader->dictionaries_.emplace_back(new Dictionary());
      dictionary.Unlimit();
      for (const std::string& category : feature.categories) dictionary.Code(category);
      field.categories = &dictionary;
    }
    reader->fields_.push_back(field);
  }
  for (const std::string& column : schema.text_columns) {
    const auto at = places.find(column);
    used.insert(column);
    if (at == places.end()) {
      missing.push_back(column);
    } else {
      reader->text_at_.push_back(at->second);
    }
  }
  if (!schema.id.empty()) {
    const auto at = places.find(schema.id);
    used.insert(schema.id);
    if (at == places.end()) {
      if (std::find(missing.begin(), missing.end(), schema.id) == missing.end()) {
        missing.push_back(schema.id);
      }
    } else {
      reader->id_at_ = static_cast<ptrdiff_t>(at->second);
    }
  }
  if (!missing.empty()) {
    std::string hint = DidYouMean(missing[0], header);
    if (hint.empty() && header.size() == 1) {
      hint = absl::StrCat("; its one column is '", header[0], "': ", kDelimiterHint);
    }
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": ", NameColumns(missing), missing.size() == 1 ? " is missing" : " are missing",
        ": the models were trained on ", missing.size() == 1 ? "it" : "them", hint));
  }
  for (const std::string& name : header) {
    if (used.count(name) == 0) reader->ignored_.push_back(name);
  }
  reader->file_ = std::move(file);
  reader->columns_ = header.size();
  return reader;
}

absl::Status FeatureReader::Read(const CsvRows& block, int64_t before,
                                 std::vector<ColumnRows>& rows,
                                 std::vector<StrayTexts>* strays) const {
  rows.resize(fields_.size());
  return AddFeatureRows(fields_, block, columns_, {file_, kTrainedOn, before}, rows, strays);
}

absl::Status FeatureReader::Check(const std::vector<StrayTexts>& strays,
                                  std::vector<std::string>& warnings) const {
  return CheckStrayTexts(fields_, {file_, kTrainedOn}, strays, warnings);
}

void FeatureReader::ReadTexts(const CsvRows& block, TextRows& texts) const {
  if (text_at_.empty()) return;
  std::string text;
  const absl::string_view* row = block.fields();
  for (size_t i = 0; i < block.rows(); ++i, row += columns_) {
    text.clear();
    for (size_t k = 0; k < text_at_.size(); ++k) {
      const absl::string_view value = row[text_at_[k]];
      absl::StrAppend(&text, k == 0 ? "" : "\n", IsMissingValue(value) ? "" : value);
    }
    texts.Add(text);
  }
}

}  // namespace traind
