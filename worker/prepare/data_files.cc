#include "worker/prepare/data_files.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/time/time.h>

#include <algorithm>
#include <vector>

#include "common/base/cores.h"
#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "common/data/table/other_formats.h"
#include "common/data/table/parquet.h"
#include "common/data/table/table_reader.h"

namespace traind {
namespace {

constexpr size_t kManyBytes = size_t{1} << 40;  // large enough to use all threads

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Number of threads that pay off. Other PREPAREs need cores, too.
int ReaderThreads(size_t bytes) {
  constexpr size_t kBytesPerThread = 32 << 20;
  constexpr size_t kMostThreads = 8;
  const size_t useful = std::min(bytes / kBytesPerThread + 1, kMostThreads);
  return std::min(UsableCores(), static_cast<int>(useful));
}

// Returns the file's text or, for Parquet, that of the plug-in's output, which `made` holds.
absl::StatusOr<std::unique_ptr<TableText>> TextOf(const std::string& path, const MappedFile& file,
                                                  const std::string& scratch, std::string& made) {
  constexpr absl::Duration kMostTime = absl::Hours(1);  // the deadline comes earlier
  if (!IsParquet(file.bytes())) return TableText::Of(file.bytes(), BaseName(path), scratch);
  ASSIGN_OR_RETURN(made, ParquetToCsv(path, file, kMostTime));
  return TableText::Of(made, BaseName(path), scratch);
}

}  // namespace

absl::StatusOr<std::unique_ptr<DataFiles>> DataFiles::Open(const PrepareSpec& spec) {
  std::unique_ptr<DataFiles> files(new DataFiles);
  ASSIGN_OR_RETURN(files->media_, OpenRowMedia(spec, ReaderThreads(kManyBytes)));
  if (files->media_ == nullptr) {
    RETURN_IF_ERROR(files->OpenTables(spec));
  } else {
    files->train_ = files->media_->train();
    files->test_ = files->media_->test();
  }
  return files;
}

absl::Status DataFiles::OpenTables(const PrepareSpec& spec) {
  ASSIGN_OR_RETURN(mapped_train_, MappedFile::Open(spec.train));
  ASSIGN_OR_RETURN(text_train_, TextOf(spec.train, *mapped_train_, spec.scratch, csv_train_));
  train_ = text_train_->csv();
  if (spec.test.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(mapped_test_, MappedFile::Open(spec.test));
  ASSIGN_OR_RETURN(text_test_, TextOf(spec.test, *mapped_test_, spec.scratch, csv_test_));
  test_ = text_test_->csv();
  if (test_.name == train_.name) {
    train_.name = spec.train;
    test_.name = spec.test;
  }
  return absl::OkStatus();
}

std::string DataFiles::Key(const PrepareSpec& spec, absl::string_view tokenizer) const {
  std::vector<std::string> parts = {
      absl::StrCat("table-reader ", kTableReaderVersion),
      std::string(spec.target_kind == TargetKind::kClasses ? "classes" : "value"),
      absl::StrCat(spec.target, spec.more_targets.empty() ? "" : "\n",
                   absl::StrJoin(spec.more_targets, "\n")),
      spec.id,
      spec.time,
      spec.series,
      spec.group,
      spec.fold_column,
      std::string(spec.forecasting ? "history" : ""),
      std::string(spec.text_features ? "text features" : ""),
      Sha256Hex(train_.bytes),
      spec.test.empty() ? "no test" : Sha256Hex(test_.bytes)};
  // A table keeps its warnings, so the same text in another encoding is another table.
  for (const CsvFile* file : {&train_, &test_}) {
    parts.insert(parts.end(), file->warnings.begin(), file->warnings.end());
  }
  if (media_ != nullptr) parts.push_back(media_->content());
  if (!spec.text_columns.empty()) {
    parts.push_back(absl::StrCat("texts\n", absl::StrJoin(spec.text_columns, "\n")));
  }
  if (!tokenizer.empty()) parts.push_back(Sha256Hex(tokenizer));
  return Sha256Hex(absl::StrJoin(parts, absl::string_view("\0", 1)));
}

absl::Status DataFiles::CheckUnchanged() const {
  if (media_ != nullptr) return media_->CheckUnchanged();
  RETURN_IF_ERROR(mapped_train_->CheckUnchanged());
  return mapped_test_ == nullptr ? absl::OkStatus() : mapped_test_->CheckUnchanged();
}

absl::StatusOr<TableRows> DataFiles::Read(const PrepareSpec& spec) const {
  TableSource source;
  source.train = train_;
  source.test = test_;
  source.target = spec.target;
  source.more_targets = spec.more_targets;
  source.id = spec.id;
  source.time = spec.time;
  source.series = spec.series;
  source.group = spec.group;
  source.fold_column = spec.fold_column;
  source.history = spec.forecasting;
  source.text_features = spec.text_features;
  source.text_columns = media_ != nullptr ? media_->text_columns() : spec.text_columns;
  source.target_kind = spec.target_kind;
  source.threads = ReaderThreads(train_.bytes.size());
  absl::StatusOr<TableRows> rows = ReadTable(source);
  // A file that changed meanwhile explains every other error, so this error comes first.
  RETURN_IF_ERROR(CheckUnchanged());
  return rows;
}

}  // namespace traind
