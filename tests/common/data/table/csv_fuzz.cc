// Reads any bytes as training and test file: the result is an error, or a table that can be written
// and read back.
#include <absl/strings/match.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "common/data/table/csv.h"
#include "common/data/table/table_reader.h"

namespace {

void Check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

void ReadAs(absl::string_view train, absl::string_view test, traind::TargetKind kind) {
  traind::TableSource source;
  source.train = {"train.csv", train};
  if (!test.empty()) source.test = {"test.csv", test};
  source.target = "y";
  source.id = test.empty() ? "" : "id";
  source.target_kind = kind;
  const auto rows = traind::ReadTable(source);
  if (!rows.ok()) {
    Check(absl::IsInvalidArgument(rows.status()), "an error is of the input");
    return;
  }
  const traind::TableSchema& schema = rows->schema;
  Check(schema.train_rows > 0, "there are rows");
  Check(!schema.features.empty(), "there are features");
  for (size_t f = 0; f < schema.features.size(); ++f) {
    const bool numeric = schema.features[f].kind == traind::ColumnKind::kNumeric;
    const auto count = numeric ? rows->train[f].numbers.size() : rows->train[f].codes.size();
    Check(count == static_cast<size_t>(schema.train_rows), "a feature has all rows");
    for (const int32_t code : rows->train[f].codes) {
      Check(code >= traind::kMissingCode &&
                code < static_cast<int32_t>(schema.features[f].categories.size()),
            "a code is in range");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto whole = traind::CheckCsvSample(bytes, true, "x.csv");
  const auto part = traind::CheckCsvSample(bytes, false, "x.csv");
  Check(!whole.ok() || part.ok(), "a good file has a good beginning");
  // A byte 1 separates the training file from the test file.
  const size_t cut = bytes.find('\1');
  const absl::string_view train = bytes.substr(0, cut);
  const absl::string_view test =
      cut == absl::string_view::npos ? absl::string_view() : bytes.substr(cut + 1);
  ReadAs(train, test, traind::TargetKind::kClasses);
  ReadAs(train, test, traind::TargetKind::kValue);
  return 0;
}
