#include "common/data/table/table_writer.h"

#include <absl/strings/str_cat.h>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "common/data/table/table_header.h"

namespace traind {
namespace {

absl::string_view Bytes(const void* data, size_t size) {
  return absl::string_view(static_cast<const char*>(data), size);
}

absl::string_view Bytes(const ColumnRows& rows, bool numeric) {
  return numeric ? Bytes(rows.numbers.data(), rows.numbers.size() * sizeof(float))
                 : Bytes(rows.codes.data(), rows.codes.size() * sizeof(int32_t));
}

template <typename T>
absl::string_view Bytes(const std::vector<T>& values) {
  return Bytes(values.data(), values.size() * sizeof(T));
}

uint64_t Padding(uint64_t size) {
  return (kTableAlignment - size % kTableAlignment) % kTableAlignment;
}

// The data part of the file: consecutive arrays, each aligned.
class DataPart {
 public:
  ArrayPlace Add(absl::string_view bytes) {
    static constexpr char kZeros[kTableAlignment] = {};
    ArrayPlace place;
    place.offset = size_;  // relative to the data's beginning; Rebase makes it absolute
    place.bytes = bytes.size();
    parts_.push_back(bytes);
    parts_.emplace_back(kZeros, Padding(bytes.size()));
    size_ += bytes.size() + Padding(bytes.size());
    return place;
  }
  uint64_t size() const { return size_; }
  const std::vector<absl::string_view>& parts() const { return parts_; }

 private:
  std::vector<absl::string_view> parts_;
  uint64_t size_ = 0;
};

void Rebase(TableHeader& header, uint64_t by) {
  for (auto& column : header.texts) {
    for (TableHeader::Texts& texts : column) {
      texts.ends.offset += by;
      texts.text.offset += by;
    }
  }
  for (auto& places : header.features) {
    for (ArrayPlace& place : places) place.offset += by;
  }
  for (ArrayPlace& place : header.target) place.offset += by;
  for (auto& places : header.more_targets) {
    for (ArrayPlace& place : places) place.offset += by;
  }
  for (ArrayPlace* place :
       {&header.id_ends, &header.id_text, &header.series_ends[0], &header.series_ends[1],
        &header.times, &header.test_order, &header.groups, &header.given_folds}) {
    place->offset += by;
  }
}

void AddOptionalArrays(const TableRows& rows, DataPart& data, TableHeader& header) {
  for (size_t i = 0; i < rows.train_texts.size(); ++i) {
    auto& [train, test] = header.texts.emplace_back();
    train = {data.Add(Bytes(rows.train_texts[i].ends)), data.Add(rows.train_texts[i].text)};
    test = {data.Add(Bytes(rows.test_texts[i].ends)), data.Add(rows.test_texts[i].text)};
  }
  for (size_t i = 0; i < rows.more_train_targets.size(); ++i) {
    const ArrayPlace train = data.Add(Bytes(rows.more_train_targets[i], true));
    header.more_targets.push_back({train, data.Add(Bytes(rows.more_test_targets[i], true))});
  }
  header.series_ends[0] = data.Add(Bytes(rows.series_ends));
  header.series_ends[1] = data.Add(Bytes(rows.test_series_ends));
  header.times = data.Add(Bytes(rows.times));
  header.test_order = data.Add(Bytes(rows.test_order));
  header.groups = data.Add(Bytes(rows.groups));
  header.given_folds = data.Add(Bytes(rows.given_folds));
}

}  // namespace

absl::Status WriteTable(const TableRows& rows, const std::string& path) {
  const TableSchema& schema = rows.schema;
  if (rows.train.size() != schema.features.size() || rows.test.size() != schema.features.size() ||
      rows.more_train_targets.size() != schema.more_targets.size() ||
      rows.more_test_targets.size() != schema.more_targets.size() ||
      rows.train_texts.size() != schema.text_columns.size() ||
      rows.test_texts.size() != schema.text_columns.size()) {
    return absl::InvalidArgumentError(absl::StrCat("table ", path, ": a feature has no rows"));
  }
  TableHeader header;
  header.schema = schema;
  DataPart data;
  for (size_t i = 0; i < schema.features.size(); ++i) {
    const bool numeric = schema.features[i].kind == ColumnKind::kNumeric;
    const ArrayPlace train = data.Add(Bytes(rows.train[i], numeric));
    header.features.push_back({train, data.Add(Bytes(rows.test[i], numeric))});
  }
  const bool value = schema.target_kind == TargetKind::kValue;
  header.target[0] = data.Add(Bytes(rows.train_target, value));
  header.target[1] = data.Add(Bytes(rows.test_target, value));
  header.id_ends = data.Add(Bytes(rows.test_ids.ends));
  header.id_text = data.Add(rows.test_ids.text);
  AddOptionalArrays(rows, data, header);
  header.data_sha256 = Sha256Hex(data.parts());

  // Offsets count from the file's beginning, which depends on the header's own length. Numbers only
  // get longer, so the loop reaches a fixed point.
  const TableHeader relative = header;
  std::string bytes = EncodeTableHeader(header);
  for (uint64_t begin = 0; begin != bytes.size();) {
    begin = bytes.size();
    header = relative;
    Rebase(header, begin);
    bytes = EncodeTableHeader(header);
  }
  const uint64_t file_bytes = bytes.size() + data.size();
  if (absl::Status sizes = ParseTableHeader(bytes, file_bytes, path).status(); !sizes.ok()) {
    return absl::InvalidArgumentError(sizes.message());
  }
  std::vector<absl::string_view> parts = {bytes};
  parts.insert(parts.end(), data.parts().begin(), data.parts().end());
  return WriteFileDurably(path, parts);
}

}  // namespace traind
