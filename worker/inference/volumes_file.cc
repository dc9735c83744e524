#include "worker/inference/volumes_file.h"

#include <absl/strings/str_cat.h>

#include "common/base/data_roots.h"
#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "common/data/volume/volume_set_writer.h"

namespace traind {

absl::StatusOr<VolumesFile> WriteVolumesFile(const VolumeInput& input, const std::string& table,
                                             const RowsFile& rows, const std::string& rows_path,
                                             const std::function<bool()>& keep_going) {
  const size_t slash = table.rfind('/');
  const std::string folder = table.substr(0, slash), name = table.substr(slash + 1);
  const std::string path = VolumesPath(rows_path);
  ASSIGN_OR_RETURN(const std::unique_ptr<VolumeSetWriter> writer,
                   VolumeSetWriter::Create(path, input.classes, input.treatment));
  for (int64_t block = 0; block < rows.blocks(); ++block) {
    for (const absl::string_view text : rows.Block(block).texts) {
      ASSIGN_OR_RETURN(const std::string file, FileBelow(folder, text, name));
      ASSIGN_OR_RETURN(const StoredVolume volume, writer->Add(Split::kTest, file, /*mask=*/""));
      if (volume.shape.channels != input.channels) {
        return absl::InvalidArgumentError(absl::StrCat(file, ": ", volume.shape.channels,
                                                       " channels, where the models have seen ",
                                                       input.channels));
      }
      if (!keep_going()) return absl::CancelledError("stopped while volumes were decoded");
    }
  }
  VolumesFile file;
  ASSIGN_OR_RETURN(FileDigest digest, writer->Commit());
  file.sha256 = std::move(digest.sha256);
  ASSIGN_OR_RETURN(file.set, VolumeSet::Open(path));
  return file;
}

}  // namespace traind
