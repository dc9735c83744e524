#include "common/publish/prediction_files.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <numeric>
#include <vector>

#include "common/durable_file.h"
#include "common/job_layout.h"
#include "common/status_macros.h"

namespace traind {
namespace {

namespace fs = std::filesystem;

constexpr char kUnfinished[] = "publishing";  // becomes prediction-<n>
constexpr char kNextLink[] = "current.next";  // becomes current
constexpr int kKeptPredictions = 3;

std::string Quoted(absl::string_view text) {
  const bool blank_edge = !text.empty() && (text.front() == ' ' || text.front() == '\t' ||
                                            text.back() == ' ' || text.back() == '\t');
  if (!blank_edge && text.find_first_of(",\"\r\n") == absl::string_view::npos) {
    return std::string(text);
  }
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted.push_back('"');
    quoted.push_back(c);
  }
  quoted.push_back('"');
  return quoted;
}

void AppendProbability(std::string& out, float value) {
  char digits[32];
  const auto end =
      std::to_chars(digits, digits + sizeof digits, value, std::chars_format::general, 6);
  out.append(digits, end.ptr);
}

// The shortest text that reads back as the same float.
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

}  // namespace

std::string PredictionsCsv(const Table& table, absl::Span<const float> values) {
  const TableSchema& schema = table.schema();
  const bool classes = schema.target_kind == TargetKind::kClasses;
  const size_t columns = classes ? schema.classes.size() : schema.targets();
  std::string out = Quoted(schema.id.empty() ? "row" : schema.id);
  absl::StrAppend(&out, ",", Quoted(schema.target));
  for (const std::string& target : schema.more_targets) absl::StrAppend(&out, ",", Quoted(target));
  std::vector<std::string> labels;
  if (classes) {
    for (const std::string& name : schema.classes) {
      labels.push_back(Quoted(name));
      absl::StrAppend(&out, ",", Quoted(absl::StrCat("p_", name)));
    }
  }
  out.push_back('\n');
  const std::vector<std::string> ids = table.TestIds();
  const auto rows = static_cast<size_t>(schema.test_rows);
  out.reserve(out.size() + rows * (16 + columns * 12));
  std::vector<size_t> place(rows);  // [row of the file]: its place in the table
  std::iota(place.begin(), place.end(), size_t{0});
  const auto order = table.TestOrder();
  for (size_t i = 0; i < order.size(); ++i) place[static_cast<size_t>(order[i])] = i;
  for (size_t row = 0; row < rows; ++row) {
    if (schema.id.empty()) {
      absl::StrAppend(&out, row);
    } else {
      out += Quoted(ids[row]);
    }
    out.push_back(',');
    const float* p = values.data() + place[row] * columns;
    if (!classes) {
      for (size_t k = 0; k < columns; ++k) {
        if (k > 0) out.push_back(',');
        AppendValue(out, p[k]);
      }
    } else {
      out += labels[static_cast<size_t>(std::max_element(p, p + columns) - p)];
      for (size_t c = 0; c < columns; ++c) {
        out.push_back(',');
        AppendProbability(out, p[c]);
      }
    }
    out.push_back('\n');
  }
  return out;
}

absl::Status WritePrediction(const std::string& state_dir, const std::string& csv, int64_t rows,
                             Manifest& manifest) {
  const std::string job_dir = absl::StrCat(state_dir, "/", JobDir(manifest.job));
  const std::string unfinished = absl::StrCat(job_dir, "/", kUnfinished);
  std::error_code ignored;
  fs::remove_all(unfinished, ignored);  // of a publisher that was killed
  std::vector<int> numbers = PredictionNumbers(job_dir);

  PublishedPrediction& p = manifest.prediction;
  p.number = numbers.empty() ? 1 : numbers.back() + 1;
  p.path = absl::StrCat(PredictionDir(manifest.job, p.number), "/", kPredictionsFile);
  p.sha256 = Sha256Hex(csv);
  p.bytes = static_cast<int64_t>(csv.size());
  p.rows = rows;
  absl::Status written = MakeDirs(unfinished);
  if (written.ok()) {
    written = WriteFileDurably(absl::StrCat(unfinished, "/", kPredictionsFile), csv);
  }
  if (written.ok()) {
    written =
        WriteFileDurably(absl::StrCat(unfinished, "/", kManifestFile), EncodeManifest(manifest));
  }
  if (written.ok()) {
    written = RenameDurably(unfinished,
                            absl::StrCat(state_dir, "/", PredictionDir(manifest.job, p.number)));
  }
  if (!written.ok()) {
    fs::remove_all(unfinished, ignored);
    return written;
  }
  RETURN_IF_ERROR(SwitchCurrent(state_dir, manifest.job, p.number));
  // Readers of the one before may still be at it, so it stays a while.
  numbers.push_back(p.number);
  for (size_t i = 0; i + kKeptPredictions < numbers.size(); ++i) {
    fs::remove_all(absl::StrCat(state_dir, "/", PredictionDir(manifest.job, numbers[i])), ignored);
  }
  return absl::OkStatus();
}

}  // namespace traind
