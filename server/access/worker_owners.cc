#include "server/access/worker_owners.h"

#include <absl/status/statusor.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <utility>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"

namespace traind {

WorkerOwners::WorkerOwners(std::string state_dir,
                           std::function<bool(const std::string&)> known_token)
    : path_(absl::StrCat(state_dir, "/", kWorkerOwnersFile)),
      known_token_(std::move(known_token)) {}

absl::Status WorkerOwners::Read() {
  if (read_) return absl::OkStatus();
  const auto text = ReadFile(path_);
  if (!text.ok() && !absl::IsNotFound(text.status())) {
    return absl::UnavailableError(text.status().message());
  }
  const std::string lines = text.ok() ? *text : "";
  for (const absl::string_view line : absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> words = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    if (words.second.empty()) {
      return absl::UnavailableError(absl::StrCat(path_, " is damaged; restore or remove it"));
    }
    tokens_[words.second] = words.first;
  }
  read_ = true;
  return absl::OkStatus();
}

absl::Status WorkerOwners::Write() {
  std::string text;
  for (const auto& [worker, token] : tokens_) absl::StrAppend(&text, token, " ", worker, "\n");
  const absl::Status written = WriteFileDurably(path_, text);
  return written.ok() ? written : absl::UnavailableError(written.message());
}

absl::Status WorkerOwners::Claim(const std::string& worker, const std::string& token) {
  if (worker.find('\n') != worker.npos) {
    return absl::PermissionDeniedError("a Worker's id has no line breaks");
  }
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(Read());
  std::string& owner = tokens_[worker];
  if (owner == token) return absl::OkStatus();
  if (!owner.empty() && known_token_(owner)) {
    return absl::PermissionDeniedError(
        absl::StrCat("the Worker ", worker, " belongs to the token ", owner,
                     "; start it with that one, or revoke it: traind token revoke ", owner));
  }
  owner = token;
  const absl::Status written = Write();
  if (!written.ok()) tokens_.erase(worker);
  return written;
}

}  // namespace traind
