// Decodes JPEG and PNG files over and over, on one thread, and prints how many a second, as one
// JSON line: whole, and made into squares as PREPARE makes them. Driven by decode.py.
//   decode_bench --seconds 2 --size 224 FILE...
#include <absl/strings/str_format.h>
#include <absl/time/clock.h>
#include <absl/time/time.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "common/base/durable_file.h"
#include "common/data/image/decode.h"
#include "common/data/image/image.h"

namespace traind {
namespace {

// Images a second; below 0: one could not be decoded.
double Rate(const std::vector<std::string>& files, const DecodeOptions& options, int64_t size,
            absl::Duration time) {
  const absl::Time begin = absl::Now();
  int64_t images = 0;
  absl::Duration took;
  do {
    for (const std::string& bytes : files) {
      const absl::StatusOr<Image> image = DecodeImage(bytes, options);
      if (!image.ok()) return -1;
      if (size > 0 && CropAndResize(*image, size).pixels.empty()) return -1;
      ++images;
    }
    took = absl::Now() - begin;
  } while (took < time);
  return static_cast<double>(images) / absl::ToDoubleSeconds(took);
}

int Run(const std::vector<std::string>& paths, double seconds, int64_t size) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    absl::StatusOr<std::string> bytes = ReadFile(path);
    if (!bytes.ok()) {
      std::fprintf(stderr, "decode_bench: %s: %s\n", path.c_str(),
                   std::string(bytes.status().message()).c_str());
      return 1;
    }
    files.push_back(*std::move(bytes));
  }
  const absl::Duration time = absl::Seconds(seconds);
  const double whole = Rate(files, {}, 0, time);
  const double square = Rate(files, {}, size, time);
  const double reduced = Rate(files, {3, size, true}, size, time);
  if (whole < 0 || square < 0 || reduced < 0) {
    std::fprintf(stderr, "decode_bench: a file is no image\n");
    return 1;
  }
  std::printf("%s\n", absl::StrFormat(R"({"whole": %.1f, "square": %.1f, "reduced": %.1f})", whole,
                                      square, reduced)
                          .c_str());
  return 0;
}

}  // namespace
}  // namespace traind

int main(int argc, char** argv) {
  std::vector<std::string> paths;
  double seconds = 2;
  int64_t size = 224;
  CLI::App app("Images decoded per second");
  app.add_option("--seconds", seconds, "that each way is watched")->capture_default_str();
  app.add_option("--size", size, "side of the squares")->capture_default_str();
  app.add_option("FILE", paths, "JPEG or PNG files")->required();
  CLI11_PARSE(app, argc, argv);
  return traind::Run(paths, seconds, size);
}
