#include "client/outgoing_file.h"

#include <absl/status/status.h>
#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/time/time.h>

#include <algorithm>

#include "common/base/status_macros.h"
#include "common/transfer/zstd_part.h"

namespace traind {
namespace {

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

struct Sending {
  explicit Sending(const OutgoingFile& of) : file(of) {}

  const OutgoingFile& file;
  v1::UploadRequest about;  // without a part
  bool zstd = false;        // parts may be compressed
  PartPacker packer;
};

// Sends parts from an offset on, in one call, which may end before the file does. Aborted and
// errors of the connection: what came is there, and another call goes on behind it.
absl::Status SendFrom(int64_t offset, Sending& file, TrainingClient& client,
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
    auto content = file.file.read(next, most);
    if (!content.ok()) {
      read = absl::InvalidArgumentError(content.status().message());
    } else if (content->size() < most) {
      read = absl::InvalidArgumentError(file.file.shown + " has become shorter while it was sent");
    }
    if (!read.ok()) return false;
    Show(absl::StrFormat("%s: %s of %s", file.file.shown, Megabytes(next), Megabytes(size)),
         environment);
    next += static_cast<int64_t>(content->size());
    if (file.zstd) part.set_zstd(file.packer.Pack(*content));
    part.set_content(*std::move(content));
    return true;
  });
  return read.ok() ? reply.status() : read;
}

bool MayGoOn(const absl::Status& status) {
  return status.ok() || absl::IsAborted(status) || IsConnectionLoss(status);
}

// Sends what traind lacks of a file.
absl::StatusOr<v1::UploadReply> SendRest(v1::UploadReply there, Sending& file,
                                         TrainingClient& client, Environment& environment) {
  int idle = 0;
  while (!there.present()) {
    const int64_t offset = there.offset();
    const absl::Status sent = SendFrom(offset, file, client, environment);
    if (!MayGoOn(sent)) return sent;
    ASSIGN_OR_RETURN(there, client.Upload(file.about));
    idle = there.present() || there.offset() > offset ? 0 : idle + 1;
    if (idle == kMostIdle) {
      return sent.ok() ? absl::UnavailableError("traind takes no more of " + file.file.shown)
                       : sent;
    }
  }
  return there;
}

}  // namespace

absl::StatusOr<std::string> SendFile(const OutgoingFile& file, TrainingClient& client,
                                     Environment& environment) {
  const absl::Duration begin = environment.clock.MonotonicNow();
  ASSIGN_OR_RETURN(const FileDigest digest, file.digest());
  Sending sending{file};
  sending.about.set_sha256(digest.sha256);
  sending.about.set_name(NameOf(file.name));
  sending.about.set_size_bytes(digest.bytes);
  sending.about.set_folder(file.folder);
  ASSIGN_OR_RETURN(const v1::UploadReply there, client.Upload(sending.about));
  sending.zstd = there.zstd();
  ASSIGN_OR_RETURN(const v1::UploadReply whole, SendRest(there, sending, client, environment));
  Show("", environment);
  environment.err << file.shown << ": "
                  << (there.present()
                          ? std::string("there already")
                          : absl::StrFormat(
                                "%s sent in %.1f s", Megabytes(digest.bytes - there.offset()),
                                absl::ToDoubleSeconds(environment.clock.MonotonicNow() - begin)))
                  << "\n";
  return whole.path();
}

}  // namespace traind
