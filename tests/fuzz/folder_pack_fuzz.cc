// Unpacks any bytes: a folder comes of them, or nothing, and nothing beside it.
#include <cstdint>
#include <filesystem>

#include "common/transfer/folder_pack.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/scratch.h"

namespace {

using namespace traind;
namespace fs = std::filesystem;

// What the folder has, as one may pack it again.
void Walk(const fs::path& root, std::vector<std::string>& files, std::vector<std::string>& names) {
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    Check(!entry.is_symlink(), "no links come");
    const std::string path = fs::relative(entry.path(), root).string();
    if (entry.is_directory()) {
      names.push_back(path + "/");
    } else {
      files.push_back(path);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Scratch* const scratch = new Scratch();
  const std::string home = scratch->path() + "/home";
  fs::remove_all(home);
  const std::string pack = scratch->Write("home/folder.pack", Bytes(data, size));
  const std::string folder = home + "/folder";
  const absl::Status status = UnpackFolder(pack, folder);
  Check(status.ok() == fs::exists(folder), "a folder comes, or an error");
  Check(!fs::exists(folder + ".part"), "no part stays");
  Check(status.ok() != fs::exists(pack), "the pack goes, or stays");
  const auto beside = std::distance(fs::directory_iterator(home), fs::directory_iterator());
  Check(beside == 1, "nothing comes beside it");
  Check(std::distance(fs::directory_iterator(scratch->path()), fs::directory_iterator()) == 1,
        "nothing comes above it");
  if (!status.ok()) return 0;
  std::vector<std::string> files, names;
  Walk(folder, files, names);
  const auto again = FolderPack::Open(fs::canonical(folder).string(), files, names);
  Check(again.ok() && (*again)->Digest().ok(), "what came can be sent on");
  return 0;
}
