// Measures how fast CSV files become a column cache: CPU seconds of each step, as one JSON line.
// Without files it makes its own: ten columns of decimals, one of words, and a class.
//
//   table_bench [--rounds=N] [--mebibytes=N] [--threads=N] [--out=TABLE]
//               [--train=FILE --target=COLUMN [--test=FILE] [--value]]
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/strip.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/durable_file.h"
#include "common/data/table/folds.h"
#include "common/data/table/table_reader.h"
#include "common/data/table/table_writer.h"

namespace traind {
namespace {

struct Options {
  int rounds = 5;
  int mebibytes = 16;
  int threads = 1;
  std::string train, test, target = "kind", out;
  TargetKind kind = TargetKind::kClasses;
};

bool Parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    absl::string_view arg = argv[i];
    if (absl::ConsumePrefix(&arg, "--rounds=")) {
      if (!absl::SimpleAtoi(arg, &options.rounds) || options.rounds < 1) return false;
    } else if (absl::ConsumePrefix(&arg, "--mebibytes=")) {
      if (!absl::SimpleAtoi(arg, &options.mebibytes)) return false;
    } else if (absl::ConsumePrefix(&arg, "--threads=")) {
      if (!absl::SimpleAtoi(arg, &options.threads) || options.threads < 1) return false;
    } else if (absl::ConsumePrefix(&arg, "--train=")) {
      options.train = std::string(arg);
    } else if (absl::ConsumePrefix(&arg, "--test=")) {
      options.test = std::string(arg);
    } else if (absl::ConsumePrefix(&arg, "--target=")) {
      options.target = std::string(arg);
    } else if (absl::ConsumePrefix(&arg, "--out=")) {
      options.out = std::string(arg);
    } else if (arg == "--value") {
      options.kind = TargetKind::kValue;
    } else {
      return false;
    }
  }
  return true;
}

std::string MakeCsv(size_t bytes) {
  constexpr int kNumbers = 10;
  static constexpr const char* kWords[] = {"north", "south", "east", "west"};
  std::string text;
  for (int i = 0; i < kNumbers; ++i) absl::StrAppend(&text, "x", i, ",");
  text += "word,kind\n";
  SeededRandom random(1);
  while (text.size() < bytes) {
    double sum = 0;
    for (int i = 0; i < kNumbers; ++i) {
      // A sum of uniform numbers has about the digits of a normal distribution.
      double x = -2;
      for (int k = 0; k < 4; ++k) x += static_cast<double>(random.Below(1 << 20)) / (1 << 20);
      sum += x;
      absl::StrAppendFormat(&text, "%.6f,", x);
    }
    absl::StrAppend(&text, kWords[random.Below(4)], ",", sum > 0 ? "a" : "b", "\n");
  }
  return text;
}

double CpuSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

absl::Status Run(const Options& options) {
  std::string train, test;
  if (options.train.empty()) {
    train = MakeCsv(static_cast<size_t>(options.mebibytes) << 20);
  } else {
    absl::StatusOr<std::string> bytes = ReadFile(options.train);
    if (!bytes.ok()) return bytes.status();
    train = *std::move(bytes);
  }
  if (!options.test.empty()) {
    absl::StatusOr<std::string> bytes = ReadFile(options.test);
    if (!bytes.ok()) return bytes.status();
    test = *std::move(bytes);
  }
  const std::string out =
      options.out.empty() ? absl::StrCat("/tmp/table_bench-", getpid()) : options.out;
  TableSource source;
  source.train = {"train.csv", train};
  if (!options.test.empty()) source.test = {"test.csv", test};
  source.target = options.target;
  source.target_kind = options.kind;
  source.threads = options.threads;
  std::vector<double> digest_s, read_s, write_s, all_s, wall_s;
  int64_t rows = 0;
  for (int round = 0; round < options.rounds; ++round) {
    const absl::Duration begin = SystemClock().MonotonicNow();
    const double start = CpuSeconds();
    std::string sha256 = Sha256Hex(train);
    const double digested = CpuSeconds();
    absl::StatusOr<TableRows> table = ReadTable(source);
    if (!table.ok()) return table.status();
    const double read = CpuSeconds();
    table->schema.content_sha256 = std::move(sha256);
    if (absl::Status written = WriteTable(*table, out); !written.ok()) return written;
    const double end = CpuSeconds();
    rows = table->schema.train_rows;
    digest_s.push_back(digested - start);
    read_s.push_back(read - digested);
    write_s.push_back(end - read);
    all_s.push_back(end - start);
    wall_s.push_back(absl::ToDoubleSeconds(SystemClock().MonotonicNow() - begin));
  }
  const absl::StatusOr<FileDigest> made = DigestFile(out);
  if (!made.ok()) return made.status();
  if (options.out.empty()) unlink(out.c_str());
  const double bytes = static_cast<double>(train.size() + test.size());
  absl::PrintF(
      "{\"bench\": \"table\", \"bytes\": %.0f, \"rows\": %d, \"digest_cpu_s\": %.4f, "
      "\"read_cpu_s\": %.4f, \"write_cpu_s\": %.4f, \"cpu_s\": %.4f, \"wall_s\": %.4f, "
      "\"mb_per_cpu_s\": %.1f, \"table_sha256\": \"%s\"}\n",
      bytes, rows, Median(digest_s), Median(read_s), Median(write_s), Median(all_s), Median(wall_s),
      bytes / 1e6 / Median(all_s), made->sha256);
  return absl::OkStatus();
}

}  // namespace
}  // namespace traind

int main(int argc, char** argv) {
  traind::Options options;
  if (!traind::Parse(argc, argv, options)) {
    absl::FPrintF(stderr, "unknown argument; see the head of table_bench.cc\n");
    return 2;
  }
  const absl::Status status = traind::Run(options);
  if (!status.ok()) absl::FPrintF(stderr, "%s\n", status.ToString());
  return status.ok() ? 0 : 1;
}
