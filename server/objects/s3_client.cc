#include "server/objects/s3_client.h"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <thread>

#include "common/base/clock.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/base/write_all.h"
#include "server/objects/s3_answers.h"

namespace traind {
namespace {

constexpr size_t kMostContent = 64 << 20;
constexpr size_t kMostIdle = 16;
constexpr int64_t kConnectMs = 3000;
// Of a file: with fewer bytes a second for so long the connection counts as dead.
constexpr int64_t kLeastSpeed = 1024, kSlowSeconds = 20;
constexpr absl::Duration kFirstPause = absl::Milliseconds(100);
constexpr absl::Duration kGivesUp = absl::Seconds(6);
// Of requests that take no longer, or for which somebody waits: without a byte for so long they
// count as dead.
constexpr absl::Duration kQuick = absl::Seconds(10);
constexpr int64_t kSilentSeconds = 3;

// What libcurl's functions read and write during one try.
struct Transfer {
  const S3Request& request;
  S3Answer answer;
  absl::Status failure;
  int64_t sent = 0;
  int64_t code = 0;  // from the status line; content of errors never goes to the file
  bool Stopped() const { return request.stop != nullptr && *request.stop; }
};

int64_t BytesToSend(const S3Request& request) {
  if (request.from_fd >= 0) return request.from_bytes;
  int64_t bytes = 0;
  for (const absl::string_view part : request.parts) bytes += static_cast<int64_t>(part.size());
  return bytes;
}

size_t ReadBody(char* to, size_t size, size_t count, void* pointer) {
  auto& transfer = *static_cast<Transfer*>(pointer);
  const S3Request& request = transfer.request;
  if (transfer.Stopped()) return CURL_READFUNC_ABORT;
  size_t room = size * count;
  if (request.from_fd >= 0) {
    room = static_cast<size_t>(
        std::min<int64_t>(static_cast<int64_t>(room), request.from_bytes - transfer.sent));
    if (room == 0) return 0;
    const ssize_t got = pread(request.from_fd, to, room, request.from_offset + transfer.sent);
    if (got <= 0) {
      transfer.failure = absl::UnavailableError("the file has changed while it was sent");
      return CURL_READFUNC_ABORT;
    }
    transfer.sent += got;
    return static_cast<size_t>(got);
  }
  int64_t skip = transfer.sent;
  size_t filled = 0;
  for (absl::string_view part : request.parts) {
    const auto length = static_cast<int64_t>(part.size());
    if (skip >= length) {
      skip -= length;
      continue;
    }
    part.remove_prefix(static_cast<size_t>(skip));
    skip = 0;
    const size_t taken = std::min(part.size(), room - filled);
    part.copy(to + filled, taken);
    filled += taken;
    if (filled == room) break;
  }
  transfer.sent += static_cast<int64_t>(filled);
  return filled;
}

int SeekBody(void* pointer, curl_off_t offset, int origin) {
  if (origin != SEEK_SET) return CURL_SEEKFUNC_CANTSEEK;
  static_cast<Transfer*>(pointer)->sent = offset;
  return CURL_SEEKFUNC_OK;
}

size_t WriteContent(char* from, size_t size, size_t count, void* pointer) {
  auto& transfer = *static_cast<Transfer*>(pointer);
  const absl::string_view bytes(from, size * count);
  if (transfer.Stopped()) return 0;
  if (transfer.request.to_fd >= 0 && transfer.code / 100 == 2) {
    transfer.failure = WriteAll(transfer.request.to_fd, bytes, "the copy of an object");
    return transfer.failure.ok() ? bytes.size() : 0;
  }
  if (transfer.answer.content.size() + bytes.size() > kMostContent) {
    transfer.failure = absl::FailedPreconditionError("an object has more than 64 MiB");
    return 0;
  }
  transfer.answer.content.append(bytes.data(), bytes.size());
  return bytes.size();
}

size_t ReadHeader(char* from, size_t size, size_t count, void* pointer) {
  auto& transfer = *static_cast<Transfer*>(pointer);
  const absl::string_view line(from, size * count);
  if (absl::StartsWith(line, "HTTP/")) {
    const size_t space = line.find(' ');
    transfer.code =
        space == line.npos ? 0 : std::atoi(std::string(line.substr(space + 1, 3)).c_str());
  }
  const size_t colon = line.find(':');
  if (colon != line.npos) {
    const std::string name = absl::AsciiStrToLower(line.substr(0, colon));
    const std::string value(absl::StripAsciiWhitespace(line.substr(colon + 1)));
    if (name == "x-amz-meta-mtime") transfer.answer.mtime = value;
    if (name == "etag") transfer.answer.etag = value;
  }
  return line.size();
}

int LookForStop(void* pointer, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Transfer*>(pointer)->Stopped() ? 1 : 0;
}

std::string Sha256OfParts(const S3Request& request) {
  Sha256 sha256;
  for (const absl::string_view part : request.parts) sha256.Add(part);
  return sha256.Hex();
}

// Whether the store may answer otherwise in a moment.
bool MayHelpAgain(int64_t code) { return code == 429 || code >= 500 || code == 408; }

bool MayHelpAgain(CURLcode code) {
  return code != CURLE_PEER_FAILED_VERIFICATION && code != CURLE_SSL_CACERT_BADFILE &&
         code != CURLE_URL_MALFORMAT && code != CURLE_UNSUPPORTED_PROTOCOL &&
         code != CURLE_NOT_BUILT_IN;
}

}  // namespace

absl::StatusOr<std::unique_ptr<S3Client>> S3Client::Create(S3Location location, Environ environ) {
  ASSIGN_OR_RETURN(const CurlLibrary* const curl, OpenCurl());
  RETURN_IF_ERROR(ReadS3Credentials(environ).status());
  return absl::WrapUnique(new S3Client(curl, std::move(location), std::move(environ)));
}

S3Client::~S3Client() {
  const absl::MutexLock lock(&mutex_);
  for (CURL* const handle : idle_) curl_.cleanup(handle);
}

CURL* S3Client::Take() const {
  const absl::MutexLock lock(&mutex_);
  if (idle_.empty()) return curl_.init();
  CURL* const handle = idle_.back();
  idle_.pop_back();
  return handle;
}

void S3Client::GiveBack(CURL* handle) const {
  {
    const absl::MutexLock lock(&mutex_);
    if (idle_.size() < kMostIdle) {
      idle_.push_back(handle);
      return;
    }
  }
  curl_.cleanup(handle);
}

absl::StatusOr<S3Answer> S3Client::TryOnce(const S3Request& request, bool* again) const {
  *again = false;
  // Anew each time: temporary credentials are replaced in their file.
  ASSIGN_OR_RETURN(const S3Credentials credentials, ReadS3Credentials(environ_));
  CURL* const handle = Take();
  if (handle == nullptr) return absl::ResourceExhaustedError("libcurl gives no handle");
  curl_.reset(handle);  // connections stay
  Transfer transfer{request, {}, absl::OkStatus()};
  std::string url = absl::StrCat(location_.url, "/", UrlEncoded(request.key, true));
  for (size_t i = 0; i < request.query.size(); ++i) {
    absl::StrAppend(&url, i == 0 ? "?" : "&", UrlEncoded(request.query[i].first, false), "=",
                    UrlEncoded(request.query[i].second, false));
  }
  curl_slist* headers = nullptr;
  const absl::Cleanup end = [&] {
    curl_.free_list(headers);
    GiveBack(handle);
  };
  const bool sends = request.method == "PUT" || request.method == "POST";
  const std::string sha256 = request.from_fd >= 0 ? request.sha256 : Sha256OfParts(request);
  std::vector<std::string> lines = request.headers;
  lines.push_back(absl::StrCat("x-amz-content-sha256: ", sha256));
  if (!credentials.session.empty()) {
    lines.push_back(absl::StrCat("x-amz-security-token: ", credentials.session));
  }
  for (const std::string& line : lines) headers = curl_.append(headers, line.c_str());
  const std::string scheme = absl::StrCat("aws:amz:", location_.region, ":s3");
  const auto limit_ms = static_cast<long>(absl::ToInt64Milliseconds(request.limit));
  curl_.set(handle, CURLOPT_URL, url.c_str());
  curl_.set(handle, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  curl_.set(handle, CURLOPT_AWS_SIGV4, scheme.c_str());
  curl_.set(handle, CURLOPT_USERNAME, credentials.key.c_str());
  curl_.set(handle, CURLOPT_PASSWORD, credentials.secret.c_str());
  curl_.set(handle, CURLOPT_HTTPHEADER, headers);
  curl_.set(handle, CURLOPT_NOSIGNAL, 1L);
  curl_.set(handle, CURLOPT_PATH_AS_IS, 1L);
  curl_.set(handle, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_.set(handle, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(kConnectMs));
  const bool file = request.from_fd >= 0 || request.to_fd >= 0;
  if (file && !request.waited_for) {
    curl_.set(handle, CURLOPT_LOW_SPEED_LIMIT, static_cast<long>(kLeastSpeed));
    curl_.set(handle, CURLOPT_LOW_SPEED_TIME, static_cast<long>(kSlowSeconds));
  } else {
    if (!file) curl_.set(handle, CURLOPT_TIMEOUT_MS, limit_ms);
    if (file || request.limit <= kQuick) {
      curl_.set(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
      curl_.set(handle, CURLOPT_LOW_SPEED_TIME, static_cast<long>(kSilentSeconds));
    }
  }
  if (!location_.ca_file.empty()) curl_.set(handle, CURLOPT_CAINFO, location_.ca_file.c_str());
  if (sends) {
    curl_.set(handle, CURLOPT_UPLOAD, 1L);
    curl_.set(handle, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(BytesToSend(request)));
    curl_.set(handle, CURLOPT_READFUNCTION, &ReadBody);
    curl_.set(handle, CURLOPT_READDATA, &transfer);
    curl_.set(handle, CURLOPT_SEEKFUNCTION, &SeekBody);
    curl_.set(handle, CURLOPT_SEEKDATA, &transfer);
  }
  curl_.set(handle, CURLOPT_WRITEFUNCTION, &WriteContent);
  curl_.set(handle, CURLOPT_WRITEDATA, &transfer);
  curl_.set(handle, CURLOPT_HEADERFUNCTION, &ReadHeader);
  curl_.set(handle, CURLOPT_HEADERDATA, &transfer);
  curl_.set(handle, CURLOPT_NOPROGRESS, 0L);
  curl_.set(handle, CURLOPT_XFERINFOFUNCTION, &LookForStop);
  curl_.set(handle, CURLOPT_XFERINFODATA, &transfer);
  const CURLcode done = curl_.perform(handle);
  const std::string what = absl::StrCat(request.method, " ", location_.url, "/", request.key);
  if (transfer.Stopped()) return absl::CancelledError("traind ends");
  if (!transfer.failure.ok()) return transfer.failure;
  if (done != CURLE_OK) {
    *again = MayHelpAgain(done);
    const std::string text = absl::StrCat(what, ": ", curl_.error_text(done));
    return *again ? absl::UnavailableError(text) : absl::FailedPreconditionError(text);
  }
  S3Answer& answer = transfer.answer;
  answer.code = transfer.code;
  if (answer.code / 100 == 2 || answer.code == 404 || answer.code == 409 || answer.code == 412) {
    // An upload in parts may fail behind a good status.
    if (answer.code != 200 || S3ErrorText(answer.content).empty() || request.method != "POST") {
      return std::move(answer);
    }
    *again = true;
    return absl::UnavailableError(absl::StrCat(what, ": ", S3ErrorText(answer.content)));
  }
  *again = MayHelpAgain(answer.code);
  const std::string text =
      absl::StrCat(what, ": HTTP ", answer.code, " ", S3ErrorText(answer.content));
  return *again ? absl::UnavailableError(text) : absl::FailedPreconditionError(text);
}

absl::StatusOr<S3Answer> S3Client::Call(const S3Request& request) const {
  absl::Duration pause = kFirstPause;
  const absl::Duration give_up = SystemClock().MonotonicNow() + kGivesUp;
  for (int tried = 1;; ++tried) {
    bool again = false;
    absl::StatusOr<S3Answer> answer = TryOnce(request, &again);
    if (answer.ok() && answer->code == 409 && tried < request.tries) again = true;
    if (!again || tried >= request.tries || SystemClock().MonotonicNow() >= give_up) {
      if (answer.ok()) answer->repeated = tried > 1;
      return answer;
    }
    if (request.to_fd >= 0 &&
        (ftruncate(request.to_fd, 0) != 0 || lseek(request.to_fd, 0, SEEK_SET) < 0)) {
      return absl::InternalError("the copy of an object cannot be begun anew");
    }
    absl::SleepFor(pause);
    pause *= 2;
  }
}

}  // namespace traind
