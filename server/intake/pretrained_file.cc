#include "server/intake/pretrained_file.h"

#include <absl/status/statusor.h>
#include <absl/strings/str_cat.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <system_error>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "common/data/table/mapped_file.h"
#include "common/spec/pretrained_rules.h"

namespace traind {
namespace {

constexpr uintmax_t kMostBytes = uintmax_t{16} << 30;
constexpr size_t kMostMapBytes = 1 << 20;

absl::Status TakeFile(v1::PretrainedSpec& spec, const DataFiles& files) {
  ASSIGN_OR_RETURN(const std::string path, files.Resolve(spec.file()));
  // The size comes first, because a digest takes seconds for each GiB. If the file grows meanwhile,
  // its digest differs when it is read for training.
  std::error_code unknown;
  if (const uintmax_t bytes = std::filesystem::file_size(path, unknown);
      !unknown && bytes > kMostBytes) {
    return absl::InvalidArgumentError(absl::StrCat(path, " has more than 16 GiB"));
  }
  ASSIGN_OR_RETURN(const FileDigest digest, DigestFile(path));
  spec.set_file(path);
  spec.set_sha256(digest.sha256);
  return absl::OkStatus();
}

absl::Status TakeMap(v1::PretrainedSpec& spec, const DataFiles& files) {
  ASSIGN_OR_RETURN(const std::string path, files.Resolve(spec.map_file()));
  ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> mapped, MappedFile::Open(path));
  if (mapped->bytes().size() > kMostMapBytes) {
    return absl::InvalidArgumentError(absl::StrCat(path, " has more than 1 MiB"));
  }
  const absl::StatusOr<std::map<std::string, std::string>> map = ReadNameMap(mapped->bytes());
  if (!map.ok())
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", map.status().message()));
  for (const auto& [parameter, tensors] : *map) (*spec.mutable_map())[parameter] = tensors;
  v1::ModelSpec whole;
  *whole.mutable_pretrained() = spec;
  whole.mutable_pretrained()->clear_map_file();
  absl::Status status;
  CheckPretrained(whole, [&](const std::string&, const std::string& what) {
    status = absl::InvalidArgumentError(absl::StrCat(path, " ", what));
  });
  spec.clear_map_file();
  return status;
}

}  // namespace

void TakePretrained(v1::PretrainedSpec& spec, const DataFiles& files,
                    std::vector<std::string>* mistakes) {
  const absl::Status file = TakeFile(spec, files);
  if (!file.ok()) mistakes->push_back(absl::StrCat("model.pretrained.file: ", file.message()));
  if (spec.map_file().empty()) return;
  const absl::Status map = TakeMap(spec, files);
  if (!map.ok()) mistakes->push_back(absl::StrCat("model.pretrained.map_file: ", map.message()));
}

}  // namespace traind
