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

// What has come of a part when a connection breaks is lost: so small that a slow link gets on.
constexpr size_t kPartBytes = 128 << 10;
// A call sends for so long, and may take so much longer: a dead connection is found out in time.
constexpr absl::Duration kSends = absl::Seconds(20), kEnds = absl::Seconds(30);
// After so many calls in a row by which nothing came the client gives up.
constexpr int kMostIdle = 5;
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

// A file on its way.
struct Outgoing {
  std::string field, path;
  std::string name;  // as it is shown
  int fd;
  v1::UploadRequest about;  // without a part
};

// Sends parts from an offset on, in one call, which may end before the file does. Aborted and
// errors of the connection: what came is there, and another call goes on behind it.
absl::Status SendFrom(int64_t offset, const Outgoing& file, TrainingClient& client,
                      Environment& environment) {
  const absl::Duration end = environment.clock.MonotonicNow() + kSends;
  const int64_t size = file.about.size_bytes();
  int64_t next = offset;
  absl::Status read;
  const auto reply = client.UploadParts(kSends + kEnds, [&](v1::UploadRequest& part) {
    if (next > offset && (next == size || environment.clock.MonotonicNow() >= end)) return false;
    if (next == offset) {
      part = file.about;
      part.set_offset(offset);
    } else {
      part.Clear();
    }
    const auto most = static_cast<size_t>(std::min<int64_t>(kPartBytes, size - next));
    auto content = ReadPart(file.fd, next, most);
    if (content.ok() && content->size() < most) {
      content = Wrong(file.field, file.path, "has become shorter while it was sent");
    }
    read = content.status();
    if (!read.ok()) return false;
    Show(absl::StrFormat("%s: %s of %s", file.name, Megabytes(next), Megabytes(size)), environment);
    next += static_cast<int64_t>(content->size());
    part.set_content(*std::move(content));
    return true;
  });
  return read.ok() ? reply.status() : read;
}

bool MayGoOn(const absl::Status& status) {
  return status.ok() || absl::IsAborted(status) || IsConnectionLoss(status);
}

// Sends what traind lacks of a file.
absl::StatusOr<v1::UploadReply> SendRest(v1::UploadReply there, const Outgoing& file,
                                         TrainingClient& client, Environment& environment) {
  int idle = 0;
  while (!there.present()) {
    const int64_t offset = there.offset();
    const absl::Status sent = SendFrom(offset, file, client, environment);
    if (!MayGoOn(sent)) return sent;
    ASSIGN_OR_RETURN(there, client.Upload(file.about));
    idle = there.present() || there.offset() > offset ? 0 : idle + 1;
    if (idle == kMostIdle) {
      return sent.ok() ? absl::UnavailableError("traind takes no more of " + file.name) : sent;
    }
  }
  return there;
}

}  // namespace

absl::StatusOr<std::string> UploadFile(const std::string& field, const std::string& path,
                                       TrainingClient& client, Environment& environment) {
  ASSIGN_OR_RETURN(const int fd, Open(field, path));
  const absl::Cleanup closer = [fd] { close(fd); };
  const absl::Duration begin = environment.clock.MonotonicNow();
  ASSIGN_OR_RETURN(const FileDigest digest, DigestFile(absl::StrCat("/proc/self/fd/", fd)));
  Outgoing file = {field, path, Printable(path.substr(path.rfind('/') + 1), 200), fd, {}};
  file.about.set_sha256(digest.sha256);
  file.about.set_name(NameOf(path));
  file.about.set_size_bytes(digest.bytes);
  ASSIGN_OR_RETURN(const v1::UploadReply there, client.Upload(file.about));
  ASSIGN_OR_RETURN(const v1::UploadReply whole, SendRest(there, file, client, environment));
  Show("", environment);
  environment.err << file.name << ": "
                  << (there.present()
                          ? std::string("there already")
                          : absl::StrFormat(
                                "%s sent in %.1f s", Megabytes(digest.bytes - there.offset()),
                                absl::ToDoubleSeconds(environment.clock.MonotonicNow() - begin)))
                  << "\n";
  return whole.path();
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
