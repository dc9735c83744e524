#include "common/publish/prediction_files.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <utility>
#include <vector>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "common/data/table/csv.h"
#include "common/data/table/npy.h"
#include "common/publish/ended_job.h"
#include "common/publish/tuned.h"
#include "common/publish/zip_writer.h"

namespace traind {
namespace {

namespace fs = std::filesystem;

constexpr char kUnfinished[] = "publishing";  // renamed to prediction-<n>
constexpr char kNextLink[] = "current.next";  // renamed to current
constexpr int kKeptPredictions = 3;

void AppendProbability(std::string& out, float value) {
  char digits[32];
  const auto end =
      std::to_chars(digits, digits + sizeof digits, value, std::chars_format::general, 6);
  out.append(digits, end.ptr);
}

// Appends the shortest text that reads back as the same float.
void AppendValue(std::string& out, float value) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, value);
  out.append(digits, end.ptr);
}

std::vector<int> PredictionNumbers(const fs::path& job_dir) {
  std::vector<int> numbers;
  std::error_code error;
  for (fs::directory_iterator it(job_dir, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    absl::string_view rest = name;
    int number = 0;
    if (absl::ConsumePrefix(&rest, "prediction-") && absl::SimpleAtoi(rest, &number)) {
      numbers.push_back(number);
    }
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace

absl::Status SwitchCurrent(const std::string& state_dir, const std::string& job, int number) {
  const std::string next = absl::StrCat(state_dir, "/", JobDir(job), "/", kNextLink);
  if (unlink(next.c_str()) != 0 && errno != ENOENT) {
    return ErrnoStatus(errno, absl::StrCat("cannot remove ", next));
  }
  if (symlink(absl::StrCat("prediction-", number).c_str(), next.c_str()) != 0) {
    return ErrnoStatus(errno, absl::StrCat("cannot link ", next));
  }
  return RenameDurably(next, absl::StrCat(state_dir, "/", CurrentLink(job)));
}

AnswerColumns AnswerColumnsOf(const TableSchema& schema) {
  AnswerColumns columns;
  columns.id = schema.id;
  columns.targets.push_back(schema.target);
  columns.targets.insert(columns.targets.end(), schema.more_targets.begin(),
                         schema.more_targets.end());
  if (schema.target_kind == TargetKind::kClasses) columns.classes = schema.classes;
  return columns;
}

std::vector<std::string> QuantileNames(const AnswerColumns& columns) {
  std::vector<std::string> names;
  if (columns.quantiles.levels.empty()) return names;
  for (const std::string& target : columns.targets) {
    for (const double level : columns.quantiles.levels) {
      names.push_back(absl::StrCat(target, "_q", level));
    }
  }
  return names;
}

absl::StatusOr<std::unique_ptr<PredictionWriter>> PredictionWriter::Begin(
    const std::string& state_dir, const std::string& job, const AnswerColumns& columns,
    const PredictionForm& form, int64_t rows) {
  std::unique_ptr<PredictionWriter> writer(new PredictionWriter());
  writer->state_dir_ = state_dir;
  writer->job_ = job;
  writer->dir_ = absl::StrCat(state_dir, "/", JobDir(job), "/", kUnfinished);
  writer->columns_ = columns;
  writer->form_ = form;
  writer->rows_ = rows;
  std::error_code ignored;
  fs::remove_all(writer->dir_, ignored);  // left by a publisher that was killed
  RETURN_IF_ERROR(MakeDirs(writer->dir_));
  ASSIGN_OR_RETURN(writer->csv_,
                   DurableWriter::Create(absl::StrCat(writer->dir_, "/", kPredictionsFile)));
  std::string head = CsvField(columns.id.empty() ? "row" : columns.id);
  for (const std::string& target : columns.targets) absl::StrAppend(&head, ",", CsvField(target));
  for (const std::string& name : QuantileNames(columns))
    absl::StrAppend(&head, ",", CsvField(name));
  for (const std::string& name : columns.classes) {
    writer->labels_.push_back(CsvField(name));
    if (form.probabilities) absl::StrAppend(&head, ",", CsvField(absl::StrCat("p_", name)));
  }
  RETURN_IF_ERROR(writer->csv_->Append(head + "\n"));
  if (form.format == FileFormat::kCsv) return writer;
  ASSIGN_OR_RETURN(writer->npy_,
                   DurableWriter::Create(absl::StrCat(writer->dir_, "/", kPredictionsNpy)));
  const int64_t shape[] = {rows, static_cast<int64_t>(columns.outputs())};
  RETURN_IF_ERROR(writer->npy_->Append(NpyHeaderText("<f4", shape)));
  return writer;
}

PredictionWriter::~PredictionWriter() {
  csv_.reset();
  npy_.reset();
  std::error_code ignored;
  if (!dir_.empty()) fs::remove_all(dir_, ignored);
}

void PredictionWriter::AddText(absl::string_view id, absl::Span<const float> values, int step) {
  line_.clear();
  if (columns_.id.empty()) {
    absl::StrAppend(&line_, row_);
  } else {
    line_ += CsvField(id);
  }
  line_.push_back(',');
  if (columns_.classes.empty()) {
    for (size_t k = 0; k < values.size(); ++k) {
      if (k > 0) line_.push_back(',');
      AppendValue(line_, values[k]);
    }
    if (!columns_.quantiles.levels.empty()) {
      QuantilesAt(columns_.quantiles, values.first(columns_.targets.size()), step, quantiles_);
      for (const double quantile : quantiles_) {
        line_.push_back(',');
        if (!std::isnan(quantile)) AppendValue(line_, static_cast<float>(quantile));
      }
    }
  } else {
    line_ += labels_[LabelOf(values, columns_.threshold)];
    for (size_t c = 0; form_.probabilities && c < values.size(); ++c) {
      line_.push_back(',');
      AppendProbability(line_, values[c]);
    }
  }
  line_.push_back('\n');
}

absl::Status PredictionWriter::Add(absl::string_view id, absl::Span<const float> values, int step) {
  AddText(id, values, step);
  ++row_;
  RETURN_IF_ERROR(csv_->Append(line_));
  if (npy_ == nullptr) return absl::OkStatus();
  return npy_->Append(absl::string_view(reinterpret_cast<const char*>(values.data()),
                                        values.size() * sizeof(float)));
}

absl::Status PredictionWriter::WriteZipFile(const std::vector<std::string>& names,
                                            PredictionManifest& manifest) {
  std::vector<std::pair<std::string, std::string>> files;
  for (const std::string& name : names) files.emplace_back(name, absl::StrCat(dir_, "/", name));
  ASSIGN_OR_RETURN(const FileDigest zip, WriteZip(absl::StrCat(dir_, "/", kPredictionsZip), files));
  manifest.prediction.files = {{kPredictionsZip, zip.sha256, zip.bytes}};
  return absl::OkStatus();
}

absl::Status PredictionWriter::Commit(PredictionManifest& manifest) {
  if (row_ != rows_) {
    return absl::InternalError(absl::StrCat(row_, " rows of ", rows_, " were written"));
  }
  PublishedPrediction& p = manifest.prediction;
  ASSIGN_OR_RETURN(const FileDigest csv, csv_->Commit());
  p.sha256 = csv.sha256;
  p.bytes = csv.bytes;
  p.rows = rows_;
  p.files.clear();
  if (npy_ != nullptr) {
    ASSIGN_OR_RETURN(const FileDigest npy, npy_->Commit());
    p.files = {{kPredictionsNpy, npy.sha256, npy.bytes}};
    if (form_.format == FileFormat::kZip) {
      RETURN_IF_ERROR(WriteZipFile({kPredictionsFile, kPredictionsNpy}, manifest));
      unlink(absl::StrCat(dir_, "/", kPredictionsNpy).c_str());
    }
  }
  if (!packed_.empty()) {
    packed_.insert(packed_.begin(), kPredictionsFile);
    RETURN_IF_ERROR(WriteZipFile(packed_, manifest));
  }
  RETURN_IF_ERROR(MakeStanding(state_dir_, job_, dir_, manifest));
  dir_.clear();
  return absl::OkStatus();
}

absl::Status MakeStanding(const std::string& state_dir, const std::string& job,
                          const std::string& dir, PredictionManifest& manifest) {
  const fs::path job_dir = absl::StrCat(state_dir, "/", JobDir(job));
  std::vector<int> numbers = PredictionNumbers(job_dir);
  PublishedPrediction& p = manifest.prediction;
  p.number = numbers.empty() ? 1 : numbers.back() + 1;
  p.path = absl::StrCat(PredictionDir(job, p.number), "/", kPredictionsFile);
  RETURN_IF_ERROR(
      WriteFileDurably(absl::StrCat(dir, "/", kManifestFile), EncodeManifest(manifest)));
  RETURN_IF_ERROR(CheckNotEnded(state_dir, job));  // to write it took time
  RETURN_IF_ERROR(RenameDurably(dir, absl::StrCat(state_dir, "/", PredictionDir(job, p.number))));
  RETURN_IF_ERROR(SwitchCurrent(state_dir, job, p.number));
  // Someone may still be reading the previous Prediction, so it is kept for a while.
  numbers.push_back(p.number);
  std::error_code ignored;
  for (size_t i = 0; i + kKeptPredictions < numbers.size(); ++i) {
    fs::remove_all(absl::StrCat(state_dir, "/", PredictionDir(job, numbers[i])), ignored);
  }
  return absl::OkStatus();
}

}  // namespace traind
