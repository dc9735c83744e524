#include "common/transfer/folder_pack.h"

#include <absl/cleanup/cleanup.h>
#include <absl/status/status.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "common/base/data_roots.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"

namespace traind {
namespace {

constexpr absl::string_view kFirstLine = "traind-pack 1";
constexpr size_t kLongestPath = 1024;
constexpr size_t kPartBytes = 1 << 20;
constexpr int64_t kMostListBytes = 256 << 20;  // names of some million files

// Whether a path stays inside its folder, on a line of its own.
bool MayBePacked(absl::string_view path) {
  if (path.size() > kLongestPath) return false;
  const auto control = [](unsigned char c) { return c < ' ' || c == 0x7f; };
  if (std::any_of(path.begin(), path.end(), control)) return false;
  absl::ConsumeSuffix(&path, "/");
  const std::vector<absl::string_view> parts = absl::StrSplit(path, '/');
  return std::none_of(parts.begin(), parts.end(), [](absl::string_view part) {
    return part.empty() || part == "." || part == "..";
  });
}

// Opens a regular file below the root, whatever links lead to it. NotFound: it is none.
absl::StatusOr<int> OpenBelow(const std::string& root, const std::string& path,
                              struct stat& about) {
  const int fd =
      open(absl::StrCat(root, "/", path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return absl::NotFoundError(path);
  const absl::StatusOr<std::string> real = RealPathOf(fd);
  if (real.ok() && absl::StartsWith(*real, absl::StrCat(root, "/")) && fstat(fd, &about) == 0 &&
      S_ISREG(about.st_mode)) {
    return fd;
  }
  close(fd);
  return absl::NotFoundError(path);
}

absl::Status NoPack(const std::string& pack, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(pack, " is no pack of a folder: ", what));
}

constexpr char kExecutable[] = "x";  // behind a size

struct Entry {
  std::string path;
  int64_t bytes = 0;
  bool executable = false;
};

// Reads the list in front, and leaves the stream behind it.
absl::StatusOr<std::vector<Entry>> ReadList(const std::string& pack, std::ifstream& in) {
  std::string line;
  // A line is as long as its number and its path may be.
  const auto next = [&]() -> absl::Status {
    line.clear();
    constexpr size_t kLongestLine = kLongestPath + 32;
    for (char c = 0; in.get(c) && c != '\n'; line += c) {
      if (line.size() > kLongestLine) return NoPack(pack, "a line is too long");
    }
    return in.good() ? absl::OkStatus() : NoPack(pack, "it ends within its list");
  };
  RETURN_IF_ERROR(next());
  if (line != kFirstLine) return NoPack(pack, "its first line is another one");
  std::vector<Entry> entries;
  while (true) {
    RETURN_IF_ERROR(next());
    if (line.empty()) return entries;
    if (in.tellg() > kMostListBytes) return NoPack(pack, "it has too many files");
    Entry entry;
    const size_t blank = line.find(' ');
    absl::string_view size = absl::string_view(line).substr(0, blank);
    entry.executable = absl::ConsumeSuffix(&size, kExecutable);
    if (blank == std::string::npos || !absl::SimpleAtoi(size, &entry.bytes) || entry.bytes < 0) {
      return NoPack(pack, "a line without a size");
    }
    entry.path = line.substr(blank + 1);
    const bool folder = absl::EndsWith(entry.path, "/");
    if (!MayBePacked(entry.path) || (folder && entry.bytes > 0)) {
      return NoPack(pack, "a path that it may not have");
    }
    entries.push_back(std::move(entry));
  }
}

// Copies so many bytes of the stream to a new file.
absl::Status WriteNew(const std::string& path, const Entry& entry, std::ifstream& in,
                      std::string& buffer) {
  int64_t bytes = entry.bytes;
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                      entry.executable ? 0777 : 0666);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot create ", path));
  const absl::Cleanup closer = [fd] { close(fd); };
  while (bytes > 0) {
    const auto part = static_cast<size_t>(std::min<int64_t>(bytes, kPartBytes));
    if (!in.read(buffer.data(), static_cast<std::streamsize>(part))) {
      return absl::DataLossError(absl::StrCat(path, ": its pack has become shorter"));
    }
    for (size_t done = 0; done < part;) {
      const ssize_t written = write(fd, buffer.data() + done, part - done);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return ErrnoStatus(errno, absl::StrCat("cannot write ", path));
      done += static_cast<size_t>(written);
    }
    bytes -= static_cast<int64_t>(part);
  }
  return absl::OkStatus();
}

absl::Status WriteEntries(const std::vector<Entry>& entries, const std::string& folder,
                          std::ifstream& in) {
  std::string buffer(kPartBytes, '\0');
  std::string made;  // the folder of the entry before
  RETURN_IF_ERROR(MakeDirs(folder));
  for (const Entry& entry : entries) {
    const std::string path = absl::StrCat(folder, "/", entry.path);
    const std::string parent = path.substr(0, path.rfind('/'));
    if (parent != made) RETURN_IF_ERROR(MakeDirs(parent));
    made = parent;
    if (absl::EndsWith(path, "/")) continue;
    RETURN_IF_ERROR(WriteNew(path, entry, in, buffer));
  }
  // One sync for all of them: a folder may have very many files.
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, folder);
  const absl::Cleanup closer = [fd] { close(fd); };
  return syncfs(fd) == 0 ? absl::OkStatus() : ErrnoStatus(errno, "cannot sync " + folder);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> FilesBelow(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error, gone;
  std::vector<std::string> files;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (absl::StrContains(it->path().filename().string(), kTemporaryMark)) continue;
    if (!it->is_symlink(gone) && it->is_regular_file(gone)) {
      files.push_back(it->path().lexically_relative(folder).string());
    }
  }
  if (error) return absl::AbortedError(absl::StrCat(folder, ": ", error.message()));
  std::sort(files.begin(), files.end());
  return files;
}

absl::StatusOr<std::unique_ptr<FolderPack>> FolderPack::Open(const std::string& root,
                                                             const std::vector<std::string>& files,
                                                             std::vector<std::string> names) {
  std::unique_ptr<FolderPack> pack(new FolderPack(root));
  for (const std::string& named : files) {
    std::string path = std::filesystem::path(named).lexically_normal().string();
    // Whoever reads the folder refuses such a path, whether or not there is a file.
    if (path[0] == '/' || absl::StartsWith(path, "..")) continue;
    struct stat about = {};
    const absl::StatusOr<int> fd = OpenBelow(root, path, about);
    if (!fd.ok()) continue;
    close(*fd);
    pack->files_.push_back({std::move(path), about.st_size, 0, (about.st_mode & S_IXUSR) != 0});
  }
  for (std::string& path : names) pack->files_.push_back({std::move(path)});
  std::vector<File>& all = pack->files_;
  std::sort(all.begin(), all.end(), [](const File& a, const File& b) { return a.path < b.path; });
  const auto same = [](const File& a, const File& b) { return a.path == b.path; };
  all.erase(std::unique(all.begin(), all.end(), same), all.end());
  pack->list_ = absl::StrCat(kFirstLine, "\n");
  for (const File& file : all) {
    if (!MayBePacked(file.path)) {
      return absl::InvalidArgumentError(
          absl::StrCat(root, "/", file.path, ": a file with such a name cannot be sent"));
    }
    absl::StrAppend(&pack->list_, file.bytes, file.executable ? kExecutable : "", " ", file.path,
                    "\n");
  }
  pack->list_ += "\n";
  pack->bytes_ = static_cast<int64_t>(pack->list_.size());
  for (File& file : all) {
    file.begin = pack->bytes_;
    pack->bytes_ += file.bytes;
  }
  return pack;
}

FolderPack::~FolderPack() {
  if (fd_ >= 0) close(fd_);
}

absl::Status FolderPack::OpenFile(size_t index) {
  if (fd_ >= 0 && open_ == index) return absl::OkStatus();
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
  const File& file = files_[index];
  struct stat about = {};
  const absl::StatusOr<int> fd = OpenBelow(root_, file.path, about);
  if (!fd.ok() || about.st_size != file.bytes) {
    if (fd.ok()) close(*fd);
    return absl::AbortedError(
        absl::StrCat(root_, "/", file.path, " has changed while it was sent"));
  }
  fd_ = *fd;
  open_ = index;
  return absl::OkStatus();
}

absl::Status FolderPack::ReadFrom(const File& file, int64_t offset, char* out, size_t bytes) {
  while (bytes > 0) {
    const ssize_t got = pread(fd_, out, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, absl::StrCat(root_, "/", file.path));
    if (got == 0) {
      return absl::AbortedError(
          absl::StrCat(root_, "/", file.path, " has become shorter while it was sent"));
    }
    out += got;
    offset += got;
    bytes -= static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> FolderPack::Read(int64_t offset, size_t most) {
  std::string part;
  if (offset < 0 || offset >= bytes_) return part;
  part.resize(static_cast<size_t>(std::min<int64_t>(static_cast<int64_t>(most), bytes_ - offset)));
  size_t filled = 0;
  const auto list = static_cast<int64_t>(list_.size());
  if (offset < list) {
    filled = list_.copy(part.data(), part.size(), static_cast<size_t>(offset));
  }
  const auto after = [](int64_t at, const File& file) { return at < file.begin; };
  auto file =
      std::upper_bound(files_.begin(), files_.end(), offset + static_cast<int64_t>(filled), after);
  if (file != files_.begin()) --file;
  for (; filled < part.size() && file != files_.end(); ++file) {
    const int64_t inside = offset + static_cast<int64_t>(filled) - file->begin;
    const int64_t bytes =
        std::min<int64_t>(file->bytes - inside, static_cast<int64_t>(part.size() - filled));
    if (bytes <= 0) continue;
    RETURN_IF_ERROR(OpenFile(static_cast<size_t>(file - files_.begin())));
    RETURN_IF_ERROR(ReadFrom(*file, inside, part.data() + filled, static_cast<size_t>(bytes)));
    filled += static_cast<size_t>(bytes);
  }
  return part;
}

absl::StatusOr<FileDigest> FolderPack::Digest() {
  Sha256 sha256;
  for (int64_t offset = 0; offset < bytes_;) {
    ASSIGN_OR_RETURN(const std::string part, Read(offset, kPartBytes));
    sha256.Add(part);
    offset += static_cast<int64_t>(part.size());
  }
  return FileDigest{sha256.Hex(), bytes_};
}

absl::Status FolderPack::WriteTo(const std::string& path) {
  ASSIGN_OR_RETURN(const auto writer, DurableWriter::Create(path));
  while (writer->bytes() < bytes_) {
    ASSIGN_OR_RETURN(const std::string part, Read(writer->bytes(), kPartBytes));
    RETURN_IF_ERROR(writer->Append(part));
  }
  return writer->Commit().status();
}

absl::Status UnpackFolder(const std::string& pack, const std::string& folder) {
  std::error_code error;
  const int fd = open(pack.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) {
    // Somebody else has unpacked it.
    if (std::filesystem::is_directory(folder, error)) return absl::OkStatus();
    return ErrnoStatus(errno, pack);
  }
  const absl::Cleanup closer = [fd] { close(fd); };
  if (flock(fd, LOCK_EX) != 0) return ErrnoStatus(errno, pack);
  if (!std::filesystem::is_directory(folder, error)) {
    std::ifstream in(pack, std::ios::binary);
    ASSIGN_OR_RETURN(const std::vector<Entry> entries, ReadList(pack, in));
    auto left = static_cast<int64_t>(std::filesystem::file_size(pack, error)) -
                static_cast<int64_t>(in.tellg());
    for (const Entry& entry : entries) {
      if (entry.bytes > left) return NoPack(pack, "it has fewer bytes than its list says");
      left -= entry.bytes;
    }
    if (left != 0) return NoPack(pack, "it has more bytes than its list says");
    const std::string part = absl::StrCat(folder, ".part");
    std::filesystem::remove_all(part, error);  // of somebody who died
    if (absl::Status written = WriteEntries(entries, part, in); !written.ok()) {
      std::filesystem::remove_all(part, error);
      return written;
    }
    RETURN_IF_ERROR(RenameDurably(part, folder));
  }
  unlink(pack.c_str());
  return absl::OkStatus();
}

}  // namespace traind
