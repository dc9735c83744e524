#include "server/objects/s3_objects.h"

#include <absl/cleanup/cleanup.h>
#include <absl/memory/memory.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/strip.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <utility>

#include "common/base/durable_file.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "server/objects/s3_answers.h"
#include "server/objects/s3_client.h"

namespace traind {
namespace {

// Larger objects are sent in such parts. A store takes at most 10,000 of them.
constexpr int64_t kPartBytes = int64_t{32} << 20;
constexpr int64_t kMostParts = 10000;
constexpr char kOnce[] = "If-None-Match: *";
// Shorter than the time after which the holder of a lease gives up.
constexpr absl::Duration kOftenLimit = absl::Seconds(2);

// Of so many bytes of an open file from an offset on.
absl::StatusOr<std::string> Sha256Of(int fd, int64_t offset, int64_t bytes,
                                     const std::atomic<bool>& stop) {
  Sha256 sha256;
  std::string block(1 << 20, '\0');
  for (int64_t done = 0; done < bytes;) {
    if (stop) return absl::CancelledError("traind ends");
    const auto most =
        static_cast<size_t>(std::min<int64_t>(static_cast<int64_t>(block.size()), bytes - done));
    const ssize_t got = pread(fd, block.data(), most, offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, "cannot read");
    if (got == 0) return absl::UnavailableError("a file became shorter while it was sent");
    sha256.Add(absl::string_view(block.data(), static_cast<size_t>(got)));
    done += got;
  }
  return sha256.Hex();
}

class S3Objects final : public ObjectStore {
 public:
  S3Objects(std::string text, std::unique_ptr<S3Client> client)
      : text_(std::move(text)), client_(std::move(client)) {
    while (absl::EndsWith(text_, "/")) text_.pop_back();
  }

  std::string NameOf(const std::string& key) const override {
    return absl::StrCat(text_, "/", key);
  }
  bool is_folder() const override { return false; }
  // Each look is some requests, which are paid for.
  absl::Duration look_every() const override { return absl::Seconds(1); }

  absl::StatusOr<std::string> Read(const std::string& key) const override {
    ASSIGN_OR_RETURN(S3Answer answer, client_->Call(To(key)));
    RETURN_IF_ERROR(Check(answer, key));
    return std::move(answer.content);
  }

  absl::StatusOr<absl::Time> ReadTo(const std::string& key, int fd,
                                    const std::atomic<bool>& stop) const override {
    if (ftruncate(fd, 0) != 0 || lseek(fd, 0, SEEK_SET) < 0) {
      return ErrnoStatus(errno, absl::StrCat("cannot write the copy of ", NameOf(key)));
    }
    S3Request request = To(key);
    request.to_fd = fd;
    request.stop = &stop;
    ASSIGN_OR_RETURN(const S3Answer answer, client_->Call(request));
    RETURN_IF_ERROR(Check(answer, key));
    int64_t nanos = 0;
    if (!absl::SimpleAtoi(answer.mtime, &nanos)) return absl::InfinitePast();
    return absl::FromUnixNanos(nanos);
  }

  absl::Status WriteOnce(const std::string& key,
                         absl::Span<const absl::string_view> parts) const override {
    S3Request request = To(key);
    request.method = "PUT";
    request.headers = {kOnce};
    request.parts.assign(parts.begin(), parts.end());
    ASSIGN_OR_RETURN(const S3Answer answer, client_->Call(request));
    if (answer.code != 412) return Check(answer, key);
    // The answer of an earlier try may have been lost.
    if (answer.repeated) {
      ASSIGN_OR_RETURN(const std::string there, Read(key));
      if (there == absl::StrJoin(parts, "")) return absl::OkStatus();
    }
    return absl::AlreadyExistsError(absl::StrCat(NameOf(key), " exists"));
  }

  absl::Status Write(const std::string& key, absl::string_view bytes) const override {
    S3Request request = To(key);
    request.method = "PUT";
    request.parts = {bytes};
    ASSIGN_OR_RETURN(const S3Answer answer, client_->Call(request));
    return Check(answer, key);
  }

  absl::Status WriteOften(const std::string& key, absl::string_view bytes) const override {
    S3Request request = To(key);
    request.method = "PUT";
    request.parts = {bytes};
    request.tries = 1;
    request.limit = kOftenLimit;
    ASSIGN_OR_RETURN(const S3Answer answer, client_->Call(request));
    return Check(answer, key);
  }

  absl::Status WriteFile(const std::string& key, const OutgoingObject& file,
                         const std::atomic<bool>& stop) const override;
  absl::StatusOr<std::vector<ObjectInfo>> List(const std::string& prefix) const override;

  absl::Status Remove(const std::string& key) const override {
    S3Request request = To(key);
    request.method = "DELETE";
    ASSIGN_OR_RETURN(const S3Answer answer, client_->Call(request));
    return answer.code == 404 ? absl::OkStatus() : Check(answer, key);
  }

 private:
  S3Request To(const std::string& key) const {
    S3Request request;
    request.key = absl::StrCat(client_->location().prefix, key);
    return request;
  }

  absl::Status Check(const S3Answer& answer, const std::string& key) const {
    if (answer.code / 100 == 2) return absl::OkStatus();
    const std::string text = S3ErrorText(answer.content);
    if (answer.code == 404 && !absl::StartsWith(text, "NoSuchBucket")) {
      return absl::NotFoundError(absl::StrCat(NameOf(key), " does not exist"));
    }
    const std::string told = absl::StrCat(NameOf(key), ": HTTP ", answer.code, " ", text);
    return answer.code == 404 ? absl::FailedPreconditionError(told) : absl::UnavailableError(told);
  }

  absl::StatusOr<S3Answer> SendPart(S3Request request, int fd, int64_t offset, int64_t bytes,
                                    const std::atomic<bool>& stop) const {
    request.method = "PUT";
    request.from_fd = fd;
    request.from_offset = offset;
    request.from_bytes = bytes;
    request.stop = &stop;
    ASSIGN_OR_RETURN(request.sha256, Sha256Of(fd, offset, bytes, stop));
    return client_->Call(request);
  }
  absl::Status SendInParts(const std::string& key, const OutgoingObject& file, int64_t bytes,
                           const std::string& mtime, const std::atomic<bool>& stop) const;

  std::string text_;
  const std::unique_ptr<S3Client> client_;
};

absl::Status S3Objects::WriteFile(const std::string& key, const OutgoingObject& file,
                                  const std::atomic<bool>& stop) const {
  struct stat about = {};
  if (fstat(file.fd, &about) != 0) return ErrnoStatus(errno, NameOf(key));
  const std::string mtime = absl::StrCat("x-amz-meta-mtime: ", absl::ToUnixNanos(file.mtime));
  if (about.st_size > kPartBytes) return SendInParts(key, file, about.st_size, mtime, stop);
  S3Request request = To(key);
  request.headers = {mtime};
  request.waited_for = file.waited_for;
  if (file.waited_for) request.tries = 1;
  ASSIGN_OR_RETURN(const S3Answer answer,
                   SendPart(std::move(request), file.fd, 0, about.st_size, stop));
  return Check(answer, key);
}

absl::Status S3Objects::SendInParts(const std::string& key, const OutgoingObject& file,
                                    int64_t bytes, const std::string& mtime,
                                    const std::atomic<bool>& stop) const {
  S3Request begin = To(key);
  begin.method = "POST";
  begin.query = {{"uploads", ""}};
  begin.headers = {mtime};
  ASSIGN_OR_RETURN(const S3Answer begun, client_->Call(begin));
  RETURN_IF_ERROR(Check(begun, key));
  const std::string upload = S3Text(begun.content, "UploadId");
  if (upload.empty()) return absl::UnavailableError(absl::StrCat(NameOf(key), ": no upload id"));
  // Parts that belong to nothing are paid for.
  absl::Cleanup abort = [&] {
    S3Request request = To(key);
    request.method = "DELETE";
    request.query = {{"uploadId", upload}};
    client_->Call(request).IgnoreError();
  };
  const int64_t part_bytes = std::max(kPartBytes, bytes / kMostParts + 1);
  std::string list = "<CompleteMultipartUpload>";
  int number = 0;
  for (int64_t at = 0; at < bytes; at += part_bytes) {
    S3Request request = To(key);
    request.query = {{"partNumber", absl::StrCat(++number)}, {"uploadId", upload}};
    ASSIGN_OR_RETURN(const S3Answer sent, SendPart(std::move(request), file.fd, at,
                                                   std::min(part_bytes, bytes - at), stop));
    RETURN_IF_ERROR(Check(sent, key));
    absl::StrAppend(&list, "<Part><PartNumber>", number, "</PartNumber><ETag>", sent.etag,
                    "</ETag></Part>");
  }
  absl::StrAppend(&list, "</CompleteMultipartUpload>");
  S3Request finish = To(key);
  finish.method = "POST";
  finish.query = {{"uploadId", upload}};
  finish.parts = {absl::string_view(list)};
  finish.limit = absl::Minutes(1);
  ASSIGN_OR_RETURN(const S3Answer finished, client_->Call(finish));
  RETURN_IF_ERROR(Check(finished, key));
  std::move(abort).Cancel();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ObjectInfo>> S3Objects::List(const std::string& prefix) const {
  const std::string& own = client_->location().prefix;
  std::vector<ObjectInfo> objects;
  std::string next;
  do {
    S3Request request;
    if (!next.empty()) request.query.emplace_back("continuation-token", next);
    request.query.emplace_back("encoding-type", "url");
    request.query.emplace_back("list-type", "2");
    request.query.emplace_back("prefix", absl::StrCat(own, prefix));
    ASSIGN_OR_RETURN(const S3Answer answer, client_->Call(request));
    RETURN_IF_ERROR(Check(answer, prefix));
    ASSIGN_OR_RETURN(S3Page page, ParseS3Page(answer.content));
    for (ObjectInfo& object : page.objects) {
      absl::string_view key = object.key;
      if (!absl::ConsumePrefix(&key, own)) continue;
      object.key = std::string(key);
      objects.push_back(std::move(object));
    }
    next = std::move(page.next);
  } while (!next.empty());
  std::sort(objects.begin(), objects.end(),
            [](const ObjectInfo& a, const ObjectInfo& b) { return a.key < b.key; });
  return objects;
}

// Writes a key twice under the condition; the second one must be refused.
absl::Status CheckCondition(const ObjectStore& objects) {
  std::random_device random;
  const std::string key = absl::StrCat("probe-", absl::Hex(random()), absl::Hex(random()));
  const absl::Cleanup remove = [&] { objects.Remove(key).IgnoreError(); };
  RETURN_IF_ERROR(objects.WriteOnce(key, {absl::string_view("first")}));
  const absl::Status second = objects.WriteOnce(key, {absl::string_view("second")});
  if (absl::IsAlreadyExists(second)) return absl::OkStatus();
  RETURN_IF_ERROR(second);
  return absl::FailedPreconditionError(
      absl::StrCat(objects.NameOf(""),
                   ": this store ignores If-None-Match, so two trainds could "
                   "have the archive at once; use another store, or a folder"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const ObjectStore>> OpenS3Objects(const std::string& text,
                                                                 ObjectUse use,
                                                                 const Environ& environ) {
  ASSIGN_OR_RETURN(S3Location location, ParseS3Location(text, environ));
  ASSIGN_OR_RETURN(auto client, S3Client::Create(std::move(location), environ));
  auto objects = std::make_shared<const S3Objects>(text, std::move(client));
  if (use == ObjectUse::kOwn) RETURN_IF_ERROR(CheckCondition(*objects));
  return objects;
}

absl::StatusOr<std::shared_ptr<const ObjectStore>> OpenObjects(const std::string& artifacts,
                                                               ObjectUse use) {
  if (IsBucket(artifacts)) return OpenS3Objects(artifacts, use, ProcessEnviron);
  return OpenFolderObjects(artifacts);
}

}  // namespace traind
