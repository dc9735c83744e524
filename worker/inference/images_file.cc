#include "worker/inference/images_file.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "common/durable_file.h"
#include "common/status_macros.h"

namespace traind {
namespace {

constexpr int64_t kImagesAtOnce = 256;

}  // namespace

absl::StatusOr<ImagesFileInfo> WriteImagesFile(const ImageInput& images, const RowsFile& rows,
                                               int64_t stride, const std::string& rows_path,
                                               const std::function<bool()>& keep_going) {
  ASSIGN_OR_RETURN(const std::unique_ptr<DurableWriter> out,
                   DurableWriter::Create(ImagesPath(rows_path)));
  UnreadableImages unreadable;
  std::vector<uint8_t> pixels;
  for (int64_t block = 0; block < rows.blocks(); ++block) {
    const LaterRows of_block = rows.Block(block);
    const int64_t count = rows.RowsOf(block);
    for (int64_t begin = 0; begin < count; begin += kImagesAtOnce) {
      const int64_t end = std::min(count, begin + kImagesAtOnce);
      const std::vector<std::string> names(of_block.texts.begin() + begin,
                                           of_block.texts.begin() + end);
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
    ASSIGN_OR_RETURN(info.warning, unreadable.Judge(images.table().name, rows.rows()));
  }
  ASSIGN_OR_RETURN(FileDigest digest, out->Commit());
  info.sha256 = std::move(digest.sha256);
  return info;
}

}  // namespace traind
