#include "worker/inference/rows_file.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"

namespace traind {
namespace {

constexpr size_t kCellBytes = 4;

template <class T>
absl::Status AppendCells(const std::vector<T>& values, DurableWriter& out) {
  static_assert(sizeof(T) == kCellBytes);
  return out.Append(
      absl::string_view(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)));
}

class Writer {
 public:
  Writer(const FeatureReader& reader, size_t columns) : reader_(reader), columns_(columns) {}

  absl::Status Open(const std::string& rows_path, const std::string& ids_path, bool texts) {
    ASSIGN_OR_RETURN(rows_out_, DurableWriter::Create(rows_path));
    if (texts) {
      ASSIGN_OR_RETURN(texts_out_, DurableWriter::Create(TextsPath(rows_path)));
    }
    if (reader_.id_at() < 0) return absl::OkStatus();
    ASSIGN_OR_RETURN(ids_out_, DurableWriter::Create(ids_path));
    return absl::OkStatus();
  }

  absl::Status Add(const CsvRows& block) {
    for (ColumnRows& column : features_) {
      column.numbers.clear();
      column.codes.clear();
    }
    RETURN_IF_ERROR(reader_.Read(block, rows_, features_, &strays_));
    for (const ColumnRows& column : features_) {
      RETURN_IF_ERROR(column.numbers.empty() ? AppendCells(column.codes, *rows_out_)
                                             : AppendCells(column.numbers, *rows_out_));
    }
    if (ids_out_ != nullptr) RETURN_IF_ERROR(AddIds(block));
    if (texts_out_ != nullptr) RETURN_IF_ERROR(AddTexts(block));
    rows_ += static_cast<int64_t>(block.rows());
    return absl::OkStatus();
  }

  absl::Status Commit() {
    RETURN_IF_ERROR(rows_out_->Commit().status());
    if (texts_out_ != nullptr) {
      RETURN_IF_ERROR(texts_out_->Append({reinterpret_cast<const char*>(text_ends_.data()),
                                          text_ends_.size() * sizeof(uint64_t)}));
      RETURN_IF_ERROR(texts_out_->Commit().status());
    }
    return ids_out_ == nullptr ? absl::OkStatus() : ids_out_->Commit().status();
  }
  int64_t rows() const { return rows_; }
  const std::vector<StrayTexts>& strays() const { return strays_; }

 private:
  absl::Status AddIds(const CsvRows& block) {
    std::string text;
    const absl::string_view* id = block.fields() + reader_.id_at();
    for (size_t i = 0; i < block.rows(); ++i, id += columns_) {
      absl::StrAppend(&text, id->size(), ":", *id);
    }
    return ids_out_->Append(text);
  }

  absl::Status AddTexts(const CsvRows& block) {
    TextRows texts;
    reader_.ReadTexts(block, texts);
    const uint64_t before = text_ends_.empty() ? 0 : text_ends_.back();
    for (const uint64_t end : texts.ends) text_ends_.push_back(before + end);
    return texts_out_->Append(texts.text);
  }

  const FeatureReader& reader_;
  const size_t columns_;
  std::unique_ptr<DurableWriter> rows_out_, ids_out_, texts_out_;
  std::vector<uint64_t> text_ends_;
  std::vector<ColumnRows> features_;
  std::vector<StrayTexts> strays_;
  int64_t rows_ = 0;
};

}  // namespace

absl::StatusOr<RowsFileInfo> WriteRowsFile(const InputSchema& schema, const CsvFile& data,
                                           const std::string& rows_path,
                                           const std::string& ids_path,
                                           const std::function<bool()>& keep_going) {
  RowsFileInfo info;
  ASSIGN_OR_RETURN(const CsvText text, OpenDataFile(data, info.warnings));
  ASSIGN_OR_RETURN(const auto reader, FeatureReader::Match(schema, text.header, data.name));
  if (!reader->ignored().empty()) {
    info.warnings.push_back(absl::StrCat(data.name, ": the models do not use these columns: '",
                                         absl::StrJoin(reader->ignored(), "', '"), "'"));
  }
  Writer writer(*reader, text.header.size());
  RETURN_IF_ERROR(writer.Open(rows_path, ids_path, !schema.text_columns.empty()));
  BlockReader blocks(text);
  CsvRows block;
  absl::Status read;
  do {
    block.Clear();
    read = blocks.Next(static_cast<size_t>(kRowsPerBlock), block);
    // Errors in earlier rows come first.
    RETURN_IF_ERROR(writer.Add(block));
    if (!keep_going()) return absl::CancelledError("stopped while the file was read");
  } while (read.ok() && block.rows() == static_cast<size_t>(kRowsPerBlock));
  RETURN_IF_ERROR(read);
  info.rows = writer.rows();
  if (info.rows == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(data.name, ": there is no row below the header"));
  }
  RETURN_IF_ERROR(reader->Check(writer.strays(), info.warnings));
  RETURN_IF_ERROR(writer.Commit());
  return info;
}

absl::StatusOr<RowsFile> RowsFile::Open(const std::string& path, const InputSchema& schema,
                                        int64_t rows) {
  RowsFile file;
  file.rows_ = rows;
  for (const Column& column : schema.features) {
    file.numeric_.push_back(column.kind == ColumnKind::kNumeric);
  }
  ASSIGN_OR_RETURN(file.file_, MappedFile::Open(path, MapUse::kStream));
  const size_t expected = static_cast<size_t>(rows) * file.numeric_.size() * kCellBytes;
  if (file.file_->bytes().size() != expected) {
    return absl::DataLossError(absl::StrCat(path, " has the wrong size for ", rows, " rows"));
  }
  if (schema.text_columns.empty()) return file;
  ASSIGN_OR_RETURN(file.texts_, MappedFile::Open(TextsPath(path), MapUse::kStream));
  if (file.texts_->bytes().size() < static_cast<size_t>(rows) * sizeof(uint64_t)) {
    return absl::DataLossError(absl::StrCat(TextsPath(path), " is too short for ", rows, " rows"));
  }
  return file;
}

int64_t RowsFile::RowsOf(int64_t block) const {
  return std::min(kRowsPerBlock, rows_ - block * kRowsPerBlock);
}

absl::Status RowsFile::OpenImages(const std::string& path, int64_t stride) {
  ASSIGN_OR_RETURN(images_, MappedFile::Open(path, MapUse::kStream));
  stride_ = stride;
  if (images_->bytes().size() == static_cast<size_t>(rows_ * stride)) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, " has the wrong size for ", rows_, " images"));
}

LaterRows RowsFile::Block(int64_t block) const {
  LaterRows rows;
  const size_t features = numeric_.size();
  rows.numbers.resize(features);
  rows.codes.resize(features);
  const char* at =
      file_->bytes().data() + static_cast<size_t>(block * kRowsPerBlock) * features * kCellBytes;
  for (size_t f = 0; f < features; ++f) {
    if (numeric_[f]) {
      rows.numbers[f] = reinterpret_cast<const float*>(at);
    } else {
      rows.codes[f] = reinterpret_cast<const int32_t*>(at);
    }
    at += static_cast<size_t>(RowsOf(block)) * kCellBytes;
  }
  if (images_ != nullptr) {
    rows.pixels =
        reinterpret_cast<const uint8_t*>(images_->bytes().data()) + block * kRowsPerBlock * stride_;
  }
  if (texts_ == nullptr) return rows;
  const absl::string_view bytes = texts_->bytes();
  const size_t limit = bytes.size() - static_cast<size_t>(rows_) * sizeof(uint64_t);
  const auto end_of = [&](int64_t row) {  // 0 before the first row
    uint64_t end = 0;
    if (row >= 0)
      std::memcpy(&end, bytes.data() + limit + static_cast<size_t>(row) * 8, sizeof end);
    return std::min<size_t>(end, limit);
  };
  for (int64_t i = 0; i < RowsOf(block); ++i) {
    const int64_t row = block * kRowsPerBlock + i;
    const size_t begin = end_of(row - 1);
    rows.texts.push_back(bytes.substr(begin, std::max(begin, end_of(row)) - begin));
  }
  return rows;
}

}  // namespace traind
