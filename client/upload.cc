#include "client/upload.h"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <errno.h>
#include <fcntl.h>
#include <google/protobuf/message.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "client/outgoing_file.h"
#include "common/base/durable_file.h"
#include "common/base/refused_files.h"
#include "common/base/status_macros.h"
#include "common/data/media/media_files.h"
#include "common/job_rules/ignore_rules.h"
#include "common/job_rules/program_folder.h"
#include "common/spec/field_text.h"
#include "common/transfer/folder_pack.h"

namespace traind {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

absl::Status Wrong(const std::string& field, const std::string& path, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", Printable(path, 400), " ", what));
}

absl::Status Wrong(const std::string& field, const absl::Status& status) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", status.message()));
}

// Opens a regular file. The descriptor keeps it, whatever gets its name meanwhile.
absl::StatusOr<int> Open(const std::string& field, const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat about = {};
  if (fd < 0 || fstat(fd, &about) != 0) {
    const int error = errno;
    if (fd >= 0) close(fd);
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": ", ErrnoStatus(error, "cannot read " + path).message()));
  }
  if (S_ISREG(about.st_mode)) return fd;
  close(fd);
  return Wrong(field, path, S_ISDIR(about.st_mode) ? "is a folder, not a file" : "is no file");
}

// Reads the bytes from an offset on, up to `most`.
absl::StatusOr<std::string> ReadPart(int fd, int64_t offset, size_t most) {
  std::string part(most, '\0');
  size_t filled = 0;
  while (filled < most) {
    const ssize_t got = pread(fd, part.data() + filled, most - filled,
                              static_cast<off_t>(offset) + static_cast<off_t>(filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, "cannot read");
    if (got == 0) break;
    filled += static_cast<size_t>(got);
  }
  part.resize(filled);
  return part;
}

// Calls visit(field's path, text, message, field) for every text of the spec that is a path.
template <typename Visit>
absl::Status ForEachPath(Message& message, const std::string& prefix, const Visit& visit) {
  const auto* const reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* const field : fields) {
    const std::string path = prefix + field->name();
    if (field->is_repeated()) continue;
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      RETURN_IF_ERROR(ForEachPath(*reflection->MutableMessage(&message, field), path + ".", visit));
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING && RulesOf(*field).path()) {
      RETURN_IF_ERROR(visit(path, message, *field));
    }
  }
  return absl::OkStatus();
}

// The text of a field, or the default that its rules give.
std::string TextOr(const Message& message, const char* field) {
  const FieldDescriptor& about = *message.GetDescriptor()->FindFieldByName(field);
  const std::string text = message.GetReflection()->GetString(message, &about);
  return text.empty() ? RulesOf(about).default_() : text;
}

// The columns that name files.
std::vector<std::string> ColumnsOf(const v1::DataSpec& data) {
  if (data.has_image()) return {TextOr(data.image(), "column")};
  return {TextOr(data.volume(), "image"), TextOr(data.volume(), "mask")};
}

absl::StatusOr<std::string> UploadPack(FolderPack& pack, const std::string& root,
                                       TrainingClient& client, Environment& environment) {
  OutgoingFile file;
  file.name = root.substr(root.rfind('/') + 1);
  file.shown = Printable(file.name, 200) + "/";
  file.folder = true;
  file.digest = [&pack] { return pack.Digest(); };
  file.read = [&pack](int64_t offset, size_t most) { return pack.Read(offset, most); };
  return SendFile(file, client, environment);
}

// Sends what a program's fold has a copy of.
absl::StatusOr<std::string> UploadProgram(const std::string& field, const std::string& path,
                                          TrainingClient& client, Environment& environment) {
  auto found = ListProgramFiles(path, std::filesystem::temp_directory_path().string());
  if (!found.ok()) return Wrong(field, found.status());
  const auto pack = FolderPack::Open(found->root, found->files, std::move(found->folders));
  if (!pack.ok()) return Wrong(field, pack.status());
  auto there = UploadPack(**pack, found->root, client, environment);
  if (!absl::IsResourceExhausted(there.status())) return there;
  return absl::ResourceExhaustedError(absl::StrCat(field, ": ", there.status().message(), "; what ",
                                                   kIgnoreFile, " names stays here"));
}

// Sends what a Job reads of a folder with weights.
absl::StatusOr<std::string> UploadWeights(const std::string& field, const std::string& path,
                                          TrainingClient& client, Environment& environment) {
  std::error_code error;
  const std::filesystem::path root = std::filesystem::canonical(path, error);
  if (error || !std::filesystem::is_directory(root, error)) {
    return Wrong(field, path, "is no folder");
  }
  const auto pack = FolderPack::Open(
      root.string(),
      {"config.json", "model.safetensors", "tokenizer.json", "vocab.txt", "tokenizer_config.json"},
      {});
  if (!pack.ok()) return Wrong(field, pack.status());
  return UploadPack(**pack, root.string(), client, environment);
}

}  // namespace

absl::StatusOr<std::string> UploadFile(const std::string& field, const std::string& path,
                                       TrainingClient& client, Environment& environment) {
  ASSIGN_OR_RETURN(const int fd, Open(field, path));
  const absl::Cleanup closer = [fd] { close(fd); };
  OutgoingFile file;
  file.name = path.substr(path.rfind('/') + 1);
  file.shown = Printable(file.name, 200);
  file.digest = [fd] { return DigestFile(absl::StrCat("/proc/self/fd/", fd)); };
  file.read = [fd](int64_t offset, size_t most) { return ReadPart(fd, offset, most); };
  return SendFile(file, client, environment);
}

absl::StatusOr<std::string> UploadData(const std::string& field, const std::string& path,
                                       const v1::DataSpec& data, TrainingClient& client,
                                       Environment& environment) {
  if (!data.has_image() && !data.has_volume()) return UploadFile(field, path, client, environment);
  const std::string scratch = std::filesystem::temp_directory_path().string();
  const auto media = ListMediaFiles(path, ColumnsOf(data), data.has_image(), scratch);
  if (!media.ok()) return Wrong(field, media.status());
  if (!*media) return UploadFile(field, path, client, environment);
  const auto pack = FolderPack::Open((*media)->root, (*media)->files, (*media)->names);
  if (!pack.ok()) return Wrong(field, pack.status());
  ASSIGN_OR_RETURN(const std::string there,
                   UploadPack(**pack, (*media)->root, client, environment));
  return (*media)->table.empty() ? there : absl::StrCat(there, "/", (*media)->table);
}

absl::Status UploadFilesOf(v1::JobSpec& spec, TrainingClient& client, Environment& environment) {
  if (!spec.run().results().empty()) {
    return absl::InvalidArgumentError(
        "run.results: must be empty with --upload, because traind keeps what the program leaves; "
        "--out DIR names the folder here to which it is copied at the end");
  }
  const v1::DataSpec data = spec.data();
  return ForEachPath(
      spec, "",
      [&](const std::string& path, Message& message, const FieldDescriptor& field) -> absl::Status {
        if (path == "output") return absl::OkStatus();  // on this machine
        const std::string file = message.GetReflection()->GetString(message, &field);
        if (absl::StartsWith(file, "sha256:")) return absl::OkStatus();
        const bool of_data = path == "data.train" || path == "data.test";
        absl::StatusOr<std::string> there;
        if (path == "model.pretrained.folder") {
          there = UploadWeights(path, file, client, environment);
        } else if (path == "model.command.code" || path == "run.folder") {
          there = UploadProgram(path, file, client, environment);
        } else if (of_data) {
          there = UploadData(path, file, data, client, environment);
        } else {
          there = UploadFile(path, file, client, environment);
        }
        RETURN_IF_ERROR(there.status());
        message.GetReflection()->SetString(&message, &field, *there);
        return absl::OkStatus();
      });
}

void SuggestUpload(v1::JobSpec spec, const absl::Status& refusal, Environment& environment) {
  const RefusedFiles refused = RefusedFilesOf(refusal);
  if (refused.empty()) return;
  std::vector<const char*> here;
  const auto look = [&](const std::string& path, Message& message, const FieldDescriptor& field) {
    const std::string file = message.GetReflection()->GetString(message, &field);
    struct stat about = {};
    const auto found = refused.find(path);
    const bool unseen = found != refused.end() && found->second != FileProblem::kUnfit;
    if (!unseen || stat(file.c_str(), &about) != 0) return absl::OkStatus();
    if (S_ISREG(about.st_mode)) here.push_back("file");
    if (S_ISDIR(about.st_mode)) here.push_back("folder");
    return absl::OkStatus();
  };
  ForEachPath(spec, "", look).IgnoreError();
  if (here.empty()) return;
  if (here.size() > 1) {
    environment.err << "they are on this machine; --upload sends them to traind\n";
  } else {
    environment.err << "the " << here[0] << " is on this machine; --upload sends it to traind\n";
  }
}

}  // namespace traind
