#include "worker/inference/images_file.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"

namespace traind {
namespace {

// The most work between two checks of the clock.
constexpr int64_t kMostAtOnce = 256, kBytesAtOnce = int64_t{64} << 20;

}  // namespace

absl::StatusOr<ImagesFileInfo> WriteImagesFile(const ImageInput& images, const RowsFile& rows,
                                               int64_t stride, const std::string& rows_path,
                                               const std::function<bool()>& keep_going) {
  ASSIGN_OR_RETURN(const std::unique_ptr<DurableWriter> out,
                   DurableWriter::Create(ImagesPath(rows_path)));
  UnreadableImages unreadable;
  std::vector<uint8_t> pixels;
  const int64_t at_once = std::clamp<int64_t>(kBytesAtOnce / stride, 1, kMostAtOnce);
  for (int64_t block = 0; block < rows.blocks(); ++block) {
    const LaterRows block_rows = rows.Block(block);
    const int64_t count = rows.RowsOf(block);
    for (int64_t begin = 0; begin < count; begin += at_once) {
      const int64_t end = std::min(count, begin + at_once);
      const std::vector<std::string> names(block_rows.texts.begin() + begin,
                                           block_rows.texts.begin() + end);
      pixels.resize(names.size() * static_cast<size_t>(stride));
      const ImagesRead read = images.Read(names, absl::MakeSpan(pixels));
      for (const std::string& error : read.errors) {
        if (!error.empty()) unreadable.Add(error);
      }
      RETURN_IF_ERROR(out->Append({reinterpret_cast<const char*>(pixels.data()), pixels.size()}));
      if (!keep_going()) return absl::CancelledError("stopped while images were decoded");
    }
  }
  ImagesFileInfo info;
  if (unreadable.count() > 0) {
    ASSIGN_OR_RETURN(info.warning, unreadable.CheckTolerable(images.table().name, rows.rows()));
  }
  ASSIGN_OR_RETURN(FileDigest digest, out->Commit());
  info.sha256 = std::move(digest.sha256);
  return info;
}

}  // namespace traind
