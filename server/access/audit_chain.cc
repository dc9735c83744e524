#include "server/access/audit_chain.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"

namespace traind {
namespace {

constexpr char kBefore[] = ",\"before\":\"";
constexpr char kEnd[] = "\"}";
constexpr size_t kDigestCharacters = 64;
// A log that becomes the older one while it is read is read again.
constexpr int kTries = 3;

// Returns the digest that a line carries; nullopt: none. Texts in a line have their quotes escaped,
// so none of them looks like the last field.
std::optional<std::string> DigestIn(absl::string_view line) {
  const size_t field = sizeof(kBefore) - 1, end = sizeof(kEnd) - 1;
  if (line.size() < field + kDigestCharacters + end || !absl::EndsWith(line, kEnd)) {
    return std::nullopt;
  }
  line.remove_suffix(end);
  const absl::string_view digest = line.substr(line.size() - kDigestCharacters);
  line.remove_suffix(kDigestCharacters);
  const auto is_hex = [](char c) { return absl::ascii_isxdigit(c); };
  if (!absl::EndsWith(line, kBefore) || !std::all_of(digest.begin(), digest.end(), is_hex)) {
    return std::nullopt;
  }
  return std::string(digest);
}

// Returns the content of a file; of one that is not there, none.
absl::StatusOr<std::string> Content(const std::string& state_dir, const char* file) {
  auto content = ReadFile(absl::StrCat(state_dir, "/", file));
  return absl::IsNotFound(content.status()) ? std::string() : std::move(content);
}

// Takes the lines of the log one after the other.
class ChainReader {
 public:
  explicit ChainReader(const std::string& noted) : noted_(noted), known_(noted.empty()) {
    check_.digest = NoAuditDigest();
  }

  absl::Status Take(const char* file, absl::string_view content) {
    for (int64_t number = 1; !content.empty(); ++number) {
      const size_t end = content.find('\n');
      // Behind the last line end stands what is being written, or was when the power failed.
      if (end == content.npos) return absl::OkStatus();
      RETURN_IF_ERROR(TakeLine(file, number, content.substr(0, end)));
      content.remove_prefix(end + 1);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<AuditCheck> Finish() {
    if (known_) return std::move(check_);
    return absl::DataLossError(
        absl::StrCat("the audit log has no line with the digest ", noted_,
                     ": it was changed or cut off, or that line has gone with the oldest file"));
  }

 private:
  absl::Status TakeLine(const char* file, int64_t number, absl::string_view line) {
    const std::optional<std::string> before = DigestIn(line);
    const bool first = check_.lines == 0;
    // The lines in front of the first one have gone with an older file, or there were none.
    const bool follows =
        before ? first || *before == check_.digest : check_.unchained == check_.lines;
    if (!follows) {
      return absl::DataLossError(
          absl::StrCat(file, ":", number,
                       " does not follow from the line before it: one of "
                       "them was changed, or what stood between was removed"));
    }
    if (first && before) known_ = known_ || *before == noted_;
    ++check_.lines;
    if (!before) ++check_.unchained;
    check_.digest = AuditDigest(line);
    known_ = known_ || check_.digest == noted_;
    return absl::OkStatus();
  }

  const std::string noted_;
  bool known_;  // whether the noted line was there
  AuditCheck check_;
};

absl::StatusOr<AuditCheck> CheckOnce(const std::string& state_dir, const std::string& noted) {
  ChainReader reader(noted);
  for (const char* const file : {kOlderAuditFile, kAuditFile}) {
    ASSIGN_OR_RETURN(const std::string content, Content(state_dir, file));
    RETURN_IF_ERROR(reader.Take(file, content));
  }
  return reader.Finish();
}

}  // namespace

std::string NoAuditDigest() { return std::string(kDigestCharacters, '0'); }

std::string Chained(std::string line, absl::string_view before) {
  line.pop_back();  // the brace
  absl::StrAppend(&line, kBefore, before, kEnd);
  return line;
}

std::string AuditDigest(absl::string_view line) { return Sha256Hex(line); }

absl::StatusOr<AuditEnd> FindAuditEnd(const std::string& state_dir) {
  AuditEnd end;
  end.digest = NoAuditDigest();
  for (const char* const file : {kAuditFile, kOlderAuditFile}) {
    ASSIGN_OR_RETURN(const std::string content, Content(state_dir, file));
    absl::string_view lines = content;
    const size_t last_end = lines.rfind('\n');
    const size_t whole = last_end == lines.npos ? 0 : last_end + 1;
    if (file == absl::string_view(kAuditFile)) {
      end.torn = std::string(lines.substr(whole));
      end.torn_at = static_cast<int64_t>(whole);
    }
    if (whole == 0) continue;
    lines = lines.substr(0, last_end);
    const size_t before = lines.rfind('\n');
    end.digest = AuditDigest(before == lines.npos ? lines : lines.substr(before + 1));
    break;
  }
  return end;
}

absl::StatusOr<AuditCheck> CheckAuditLog(const std::string& state_dir, const std::string& noted) {
  absl::StatusOr<AuditCheck> check = CheckOnce(state_dir, noted);
  for (int i = 1; i < kTries && absl::IsDataLoss(check.status()); ++i) {
    check = CheckOnce(state_dir, noted);
  }
  return check;
}

}  // namespace traind
