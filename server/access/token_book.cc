#include "server/access/token_book.h"

#include <absl/strings/ascii.h>
#include <absl/strings/escaping.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>
#include <errno.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"

namespace traind {
namespace {

constexpr size_t kTokenBytes = 32;
constexpr size_t kHashDigits = 64;
constexpr size_t kMostNameBytes = 128;
constexpr char kNever[] = "never";

std::string PathOf(const std::string& state_dir) {
  return absl::StrCat(state_dir, "/", kTokenFile);
}

bool IsName(absl::string_view name) {
  return !name.empty() && name.size() <= kMostNameBytes &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' ||
                  c == '-';
         });
}

absl::Status WriteTokens(const std::string& state_dir, const std::vector<TokenEntry>& tokens) {
  std::string text;
  for (const TokenEntry& token : tokens) {
    const std::string expires = token.expires == absl::InfiniteFuture()
                                    ? kNever
                                    : absl::StrCat(absl::ToUnixSeconds(token.expires));
    absl::StrAppend(&text, token.sha256, " ", token.name, " ", RoleName(token.role), " ", expires,
                    "\n");
  }
  return WriteFileDurably(PathOf(state_dir), text);
}

// The time that it takes does not depend on where the texts differ.
bool Equal(absl::string_view a, absl::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char different = 0;
  for (size_t i = 0; i < a.size(); ++i) different |= static_cast<unsigned char>(a[i] ^ b[i]);
  return different == 0;
}

}  // namespace

absl::StatusOr<std::vector<TokenEntry>> ParseTokens(absl::string_view text) {
  std::vector<TokenEntry> tokens;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    const auto wrong = [&] {
      return absl::DataLossError(absl::StrCat("the file of tokens is damaged in its line ",
                                              tokens.size() + 1, "; restore or remove it"));
    };
    if (words.size() != 4 || words[0].size() != kHashDigits || !IsName(words[1])) return wrong();
    const auto role = RoleFromName(words[2]);
    int64_t seconds = 0;
    if (!role || (words[3] != kNever && !absl::SimpleAtoi(words[3], &seconds))) return wrong();
    tokens.push_back(
        {std::string(words[0]), std::string(words[1]), *role,
         words[3] == kNever ? absl::InfiniteFuture() : absl::FromUnixSeconds(seconds)});
  }
  return tokens;
}

absl::StatusOr<std::vector<TokenEntry>> ReadTokens(const std::string& state_dir) {
  const auto text = ReadFile(PathOf(state_dir));
  if (absl::IsNotFound(text.status())) return std::vector<TokenEntry>();
  RETURN_IF_ERROR(text.status());
  return ParseTokens(*text);
}

absl::StatusOr<std::string> AddToken(const std::string& state_dir, TokenEntry entry) {
  if (!IsName(entry.name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", entry.name, "' is no name: use letters, digits, '.', '_' and '-'"));
  }
  ASSIGN_OR_RETURN(std::vector<TokenEntry> tokens, ReadTokens(state_dir));
  for (const TokenEntry& token : tokens) {
    if (token.name != entry.name) continue;
    return absl::AlreadyExistsError(absl::StrCat(
        "there is a token ", entry.name, "; revoke it first: traind token revoke ", entry.name));
  }
  char bytes[kTokenBytes];
  if (getrandom(bytes, sizeof(bytes), 0) != static_cast<ssize_t>(sizeof(bytes))) {
    return ErrnoStatus(errno, "random bytes for a token");
  }
  const std::string text =
      absl::StrCat("traind_", absl::BytesToHexString(absl::string_view(bytes, sizeof(bytes))));
  entry.sha256 = Sha256Hex(text);
  tokens.push_back(std::move(entry));
  RETURN_IF_ERROR(WriteTokens(state_dir, tokens));
  return text;
}

absl::Status RevokeToken(const std::string& state_dir, const std::string& name) {
  ASSIGN_OR_RETURN(std::vector<TokenEntry> tokens, ReadTokens(state_dir));
  const auto kept = std::remove_if(tokens.begin(), tokens.end(),
                                   [&](const TokenEntry& token) { return token.name == name; });
  if (kept == tokens.end()) return absl::NotFoundError(absl::StrCat("there is no token ", name));
  tokens.erase(kept, tokens.end());
  return WriteTokens(state_dir, tokens);
}

TokenBook::TokenBook(std::string state_dir) : state_dir_(std::move(state_dir)) {}

absl::Status TokenBook::Refresh() {
  struct stat about {};
  Version version;
  if (stat(PathOf(state_dir_).c_str(), &about) == 0) {
    version = {static_cast<uint64_t>(about.st_ino), static_cast<int64_t>(about.st_size),
               about.st_mtim.tv_sec * 1'000'000'000 + about.st_mtim.tv_nsec};
  }
  if (read_ && version == version_) return absl::OkStatus();
  read_ = false;
  auto tokens = ReadTokens(state_dir_);
  if (!tokens.ok()) return absl::UnavailableError(tokens.status().message());
  tokens_ = *std::move(tokens);
  version_ = version;
  read_ = true;
  return absl::OkStatus();
}

bool TokenBook::Knows(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  if (!Refresh().ok()) return true;  // nobody gains a right by a damaged file
  return std::any_of(tokens_.begin(), tokens_.end(),
                     [&](const TokenEntry& token) { return token.name == name; });
}

absl::StatusOr<Caller> TokenBook::Find(absl::string_view authorization, absl::Time now) {
  if (!absl::ConsumePrefix(&authorization, "Bearer ")) {
    return absl::UnauthenticatedError(
        "this traind needs a token: trainctl --token FILE; an administrator of traind makes one "
        "with: traind token add");
  }
  const std::string hash = Sha256Hex(authorization);
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(Refresh());
  const TokenEntry* found = nullptr;
  for (const TokenEntry& token : tokens_) {
    if (Equal(token.sha256, hash)) found = &token;
  }
  if (found == nullptr) {
    return absl::UnauthenticatedError(
        "traind does not know this token; it may have been revoked: ask for another");
  }
  if (now >= found->expires) {
    return absl::UnauthenticatedError(
        absl::StrCat("the token ", found->name, " has expired; ask for another"));
  }
  return Caller{found->name, found->role};
}

absl::StatusOr<Caller> TokenBook::Check(absl::string_view method, absl::string_view authorization,
                                        bool has_certificate, absl::Time now) {
  const auto need = NeedOf(method);
  if (!need) {
    return absl::PermissionDeniedError(absl::StrCat("no role may call ", method));
  }
  if (need->open) return Caller{"", Role::kViewer};
  ASSIGN_OR_RETURN(Caller caller, Find(authorization, now));
  if (!Satisfies(caller.role, need->role)) {
    return absl::PermissionDeniedError(absl::StrCat("the token ", caller.name, " has the role ",
                                                    RoleName(caller.role), "; ", method,
                                                    " needs the role ", RoleName(need->role)));
  }
  if (caller.role == Role::kWorker && !has_certificate) {
    return absl::PermissionDeniedError(
        "a Worker needs a certificate of this traind's CA, too: worker.pem and worker.key in the "
        "folder of --tls");
  }
  return caller;
}

}  // namespace traind
