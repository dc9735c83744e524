#include "worker/trees/tree_rows.h"

#include <absl/strings/ascii.h>
#include <absl/strings/string_view.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace traind {
namespace {

constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();

// LightGBM refuses the signs of JSON and takes blanks for the ends of names.
std::string PlainName(absl::string_view name) {
  std::string plain(name);
  for (char& c : plain) {
    if (absl::ascii_isspace(static_cast<unsigned char>(c)) ||
        absl::ascii_iscntrl(static_cast<unsigned char>(c)) ||
        absl::string_view("\",:[]{}<").find(c) != absl::string_view::npos) {
      c = '_';
    }
  }
  return plain;
}

}  // namespace

TreeEncoder::TreeEncoder(const RowEncoder::State& state, const std::vector<Column>& features) {
  for (const RowEncoder::Numeric& column : state.numeric) {
    columns_.push_back({static_cast<size_t>(column.feature), false, {}});
  }
  for (const RowEncoder::Categorical& column : state.categorical) {
    Input input{static_cast<size_t>(column.feature), true, {}};
    for (const int32_t code : column.input_codes) {
      input.codes.push_back(code < kFirstSeenCode ? kMissing
                                                  : static_cast<float>(code - kFirstSeenCode));
    }
    columns_.push_back(std::move(input));
  }
  std::sort(columns_.begin(), columns_.end(),
            [](const Input& a, const Input& b) { return a.feature < b.feature; });
  std::set<std::string> known;
  for (const Input& input : columns_) {
    categorical_.push_back(input.categorical);
    words_.push_back(features[input.feature].text_feature.kind == TextFeature::Kind::kWord);
    names_.push_back(PlainName(features[input.feature].name));
    known.insert(names_.back());
  }
  if (known.size() < names_.size() || known.count("") > 0) names_.clear();
}

FeatureRows TreeEncoder::FeaturesOf(const Table& table, Split split) const {
  FeatureRows rows;
  rows.numbers.resize(table.schema().features.size());
  rows.codes.resize(rows.numbers.size());
  for (const Input& input : columns_) {
    const int feature = static_cast<int>(input.feature);
    if (input.categorical) {
      rows.codes[input.feature] = table.Codes(feature, split).data();
    } else {
      rows.numbers[input.feature] = table.Numeric(feature, split).data();
    }
  }
  return rows;
}

template <class RowOf>
TreeMatrix TreeEncoder::EncodeRows(const FeatureRows& features, int64_t rows,
                                   RowOf&& row_of) const {
  TreeMatrix matrix;
  matrix.rows = rows;
  matrix.columns = columns();
  matrix.values.resize(static_cast<size_t>(rows) * columns_.size());
  float* out = matrix.values.data();
  for (const Input& input : columns_) {
    const float* const numbers = features.numbers[input.feature];
    const int32_t* const codes = features.codes[input.feature];
    for (int64_t i = 0; i < rows; ++i, ++out) {
      const int64_t row = row_of(i);
      if (!input.categorical) {
        *out = numbers[row];
        continue;
      }
      const int32_t code = codes[row];
      const bool known = code >= 0 && static_cast<size_t>(code) < input.codes.size();
      *out = known ? input.codes[static_cast<size_t>(code)] : kMissing;
    }
  }
  return matrix;
}

TreeMatrix TreeEncoder::Encode(const Table& table, Split split,
                               absl::Span<const int32_t> rows) const {
  return EncodeRows(FeaturesOf(table, split), static_cast<int64_t>(rows.size()),
                    [&](int64_t i) -> int64_t { return rows[static_cast<size_t>(i)]; });
}

TreeMatrix TreeEncoder::Encode(const Table& table, Split split, int64_t begin, int64_t end) const {
  return EncodeRows(FeaturesOf(table, split), end - begin, [&](int64_t i) { return begin + i; });
}

TreeMatrix TreeEncoder::Encode(const FeatureRows& rows, int64_t begin, int64_t end) const {
  return EncodeRows(rows, end - begin, [&](int64_t i) { return begin + i; });
}

}  // namespace traind
