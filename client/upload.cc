#include "client/upload.h"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <errno.h>
#include <fcntl.h>
#include <google/protobuf/message.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "common/base/durable_file.h"
#include "common/base/refused_files.h"
#include "common/base/status_macros.h"
#include "common/spec/field_text.h"

namespace traind {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr size_t kPartBytes = 2 << 20;
constexpr size_t kMostName = 128;

// A name that traind takes, with the same ending.
std::string NameOf(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-') c = '_';
  }
  if (name.size() > kMostName) name = name.substr(name.size() - kMostName);
  if (name.empty() || name[0] == '.') name = "_" + name.substr(std::min<size_t>(1, name.size()));
  return name;
}

std::string Megabytes(int64_t bytes) {
  return absl::StrFormat("%.1f MB", static_cast<double>(bytes) / 1e6);
}

// A line on a terminal, which the next one replaces.
void Show(const std::string& line, Environment& environment) {
  if (environment.err_is_terminal) environment.err << "\r\x1b[K" << line << std::flush;
}

absl::Status Wrong(const std::string& field, const std::string& path, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", Printable(path, 400), " ", what));
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
  return Wrong(field, path,
               S_ISDIR(about.st_mode) ? "is a folder; --upload sends single files" : "is no file");
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

// Why a Job's files cannot be sent; empty: they can.
std::string WhyNot(const v1::JobSpec& spec) {
  if (spec.has_run() || spec.model().has_command()) return "programs and their folders";
  if (spec.data().has_image()) return "images";
  if (spec.data().has_volume()) return "volumes";
  return "";
}

}  // namespace

absl::StatusOr<std::string> UploadFile(const std::string& field, const std::string& path,
                                       TrainingClient& client, Environment& environment) {
  ASSIGN_OR_RETURN(const int fd, Open(field, path));
  const absl::Cleanup closer = [fd] { close(fd); };
  const absl::Time begin = environment.clock.WallNow();
  ASSIGN_OR_RETURN(const FileDigest digest, DigestFile(absl::StrCat("/proc/self/fd/", fd)));
  v1::UploadRequest request;
  request.set_sha256(digest.sha256);
  request.set_name(NameOf(path));
  request.set_size_bytes(digest.bytes);
  const std::string name = Printable(path.substr(path.rfind('/') + 1), 200);
  int64_t sent = 0;
  while (true) {
    ASSIGN_OR_RETURN(const v1::UploadReply reply, client.Upload(request));
    if (reply.present()) {
      Show("", environment);
      environment.err << name << ": "
                      << (sent == 0 ? std::string("there already")
                                    : absl::StrFormat("%s sent in %.1f s", Megabytes(sent),
                                                      absl::ToDoubleSeconds(
                                                          environment.clock.WallNow() - begin)))
                      << "\n";
      return reply.path();
    }
    const auto most = static_cast<size_t>(
        std::min<int64_t>(kPartBytes, std::max<int64_t>(0, digest.bytes - reply.offset())));
    ASSIGN_OR_RETURN(std::string part, ReadPart(fd, reply.offset(), most));
    if (part.empty()) return Wrong(field, path, "has become shorter while it was sent");
    Show(absl::StrFormat("%s: %s of %s", name, Megabytes(reply.offset()), Megabytes(digest.bytes)),
         environment);
    sent += static_cast<int64_t>(part.size());
    request.set_offset(reply.offset());
    request.set_content(std::move(part));
  }
}

absl::Status UploadFilesOf(v1::JobSpec& spec, TrainingClient& client, Environment& environment) {
  if (const std::string why = WhyNot(spec); !why.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--upload does not send ", why,
                     "; put them into a folder that traind reads, and submit without it"));
  }
  return ForEachPath(
      spec, "",
      [&](const std::string& path, Message& message, const FieldDescriptor& field) -> absl::Status {
        if (path == "output") return absl::OkStatus();  // on this machine
        const std::string file = message.GetReflection()->GetString(message, &field);
        if (absl::StartsWith(file, "sha256:")) return absl::OkStatus();
        ASSIGN_OR_RETURN(const std::string there, UploadFile(path, file, client, environment));
        message.GetReflection()->SetString(&message, &field, there);
        return absl::OkStatus();
      });
}

void SuggestUpload(v1::JobSpec spec, const absl::Status& refusal, Environment& environment) {
  const RefusedFiles refused = RefusedFilesOf(refusal);
  if (refused.empty() || !WhyNot(spec).empty()) return;
  bool here = false;
  const auto look = [&](const std::string& path, Message& message, const FieldDescriptor& field) {
    const std::string file = message.GetReflection()->GetString(message, &field);
    struct stat about = {};
    const auto found = refused.find(path);
    const bool unseen = found != refused.end() && found->second != FileProblem::kUnfit;
    here |= unseen && stat(file.c_str(), &about) == 0 && S_ISREG(about.st_mode);
    return absl::OkStatus();
  };
  ForEachPath(spec, "", look).IgnoreError();
  if (!here) return;
  environment.err << "the file is on this machine; --upload sends it to traind\n";
}

}  // namespace traind
