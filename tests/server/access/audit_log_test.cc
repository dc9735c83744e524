#include "server/access/audit_log.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "common/base/durable_file.h"

namespace traind {
namespace {

std::string StateFolder() {
  std::string folder = absl::StrCat(testing::TempDir(), "/audit.XXXXXX");
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  return folder;
}

std::string Log(const std::string& state) { return absl::StrCat(state, "/", kAuditFile); }
std::string OlderLog(const std::string& state) { return absl::StrCat(state, "/", kOlderAuditFile); }

std::vector<std::string> LinesOf(const std::string& path) {
  const auto text = ReadFile(path);
  if (!text.ok()) return {};
  return absl::StrSplit(*text, '\n', absl::SkipEmpty());
}

void WriteLines(const std::string& path, const std::vector<std::string>& lines) {
  ASSERT_EQ(WriteFileDurably(path, absl::StrJoin(lines, "\n") + "\n"), absl::OkStatus());
}

AuditEntry Entry(int number) {
  return {absl::UnixEpoch() + absl::Seconds(number),
          "ann",
          "user",
          "PauseJob",
          absl::StrCat("j-", number),
          absl::OkStatus()};
}

// A state folder whose log has lines of the numbers from `first` on.
void AddLines(const std::string& state, int first, int count, int64_t most_bytes = 1 << 20) {
  AuditLog log(state, most_bytes);
  for (int i = 0; i < count; ++i) log.Add(Entry(first + i));
}

TEST(AuditLogTest, ALineTellsWhoDidWhatAndHowItEndedAndWhatCameBefore) {
  const AuditEntry entry{
      absl::FromUnixMillis(1'700'000'000'123), "ann", "user", "CancelJob", "j-\"1",
      absl::NotFoundError("no\nsuch")};
  EXPECT_EQ(AuditLine(entry, "abc"),
            R"({"at":"2023-11-14T22:13:20.123Z","caller":"ann","role":"user",)"
            R"("method":"CancelJob","subject":"j-\"1","code":"NOT_FOUND","message":"no\nsuch",)"
            R"("before":"abc"})");
}

TEST(AuditLogTest, AFullFileBecomesTheOlderOneAndOnlyItsOwnerReadsIt) {
  const std::string state = StateFolder();
  AddLines(state, 0, 4, /*most_bytes=*/600);
  struct stat about {};
  ASSERT_EQ(stat(Log(state).c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
  EXPECT_EQ(LinesOf(Log(state)).size(), 1u);
  EXPECT_EQ(LinesOf(OlderLog(state)).size(), 3u);
  AddLines(state, 4, 1, 600);  // a traind that was started again goes on
  EXPECT_EQ(LinesOf(Log(state)).size(), 2u);
}

TEST(AuditLogTest, EachLineCarriesTheDigestOfTheOneBeforeAlsoInANewFileAndAfterARestart) {
  const std::string state = StateFolder();
  AddLines(state, 0, 4, 600);
  AddLines(state, 4, 1, 600);
  std::vector<std::string> lines = LinesOf(OlderLog(state));
  for (const std::string& line : LinesOf(Log(state))) lines.push_back(line);
  ASSERT_EQ(lines.size(), 5u);
  std::string before(64, '0');
  for (const std::string& line : lines) {
    EXPECT_TRUE(absl::EndsWith(line, absl::StrCat("\"before\":\"", before, "\"}"))) << line;
    before = Sha256Hex(line);
  }
  const auto check = CheckAuditLog(state, "");
  ASSERT_EQ(check.status(), absl::OkStatus());
  EXPECT_EQ(check->lines, 5);
  EXPECT_EQ(check->unchained, 0);
  EXPECT_EQ(check->digest, before);
}

TEST(AuditLogTest, AnEmptyLogIsInOrder) {
  const auto check = CheckAuditLog(StateFolder(), "");
  ASSERT_EQ(check.status(), absl::OkStatus());
  EXPECT_EQ(check->lines, 0);
}

TEST(AuditLogTest, ALineThatWasChangedRemovedOrAddedIsFound) {
  const std::string state = StateFolder();
  AddLines(state, 0, 5);
  const std::vector<std::string> sound = LinesOf(Log(state));
  const auto wrong_at = [&](std::vector<std::string> lines) -> std::string {
    WriteLines(Log(state), lines);
    const auto check = CheckAuditLog(state, "");
    if (!absl::IsDataLoss(check.status())) return "nowhere";
    const std::string message(check.status().message());
    return message.substr(0, message.find(' '));
  };
  std::vector<std::string> lines = sound;
  lines[1].replace(lines[1].find("ann"), 3, "bob");
  EXPECT_EQ(wrong_at(lines), "audit.jsonl:3");
  lines = sound;
  lines.erase(lines.begin() + 2);
  EXPECT_EQ(wrong_at(lines), "audit.jsonl:3");
  lines = sound;
  lines.insert(lines.begin() + 3, AuditLine(Entry(9), Sha256Hex(sound[2])));
  EXPECT_EQ(wrong_at(lines), "audit.jsonl:5");
  lines = sound;
  lines[3] = R"({"at":"1970","message":"a line without a digest"})";
  EXPECT_EQ(wrong_at(lines), "audit.jsonl:4");
  EXPECT_EQ(wrong_at(sound), "nowhere");
}

TEST(AuditLogTest, WhoNotedADigestNoticesThatTheLogWasCutOffOrMadeAnew) {
  const std::string state = StateFolder();
  AddLines(state, 0, 5);
  const std::string noted = CheckAuditLog(state, "")->digest;
  AddLines(state, 5, 2);
  EXPECT_EQ(CheckAuditLog(state, noted)->lines, 7);
  std::vector<std::string> lines = LinesOf(Log(state));
  lines.resize(4);
  WriteLines(Log(state), lines);
  EXPECT_EQ(CheckAuditLog(state, "").status(), absl::OkStatus());
  EXPECT_TRUE(absl::IsDataLoss(CheckAuditLog(state, noted).status()));
  // All of it anew, with another first line: its chain is in order.
  ASSERT_EQ(unlink(Log(state).c_str()), 0);
  AddLines(state, 1, 7);
  EXPECT_EQ(CheckAuditLog(state, "").status(), absl::OkStatus());
  EXPECT_TRUE(absl::IsDataLoss(CheckAuditLog(state, noted).status()));
}

TEST(AuditLogTest, LinesOfAnEarlierVersionMayStandInFront) {
  const std::string state = StateFolder();
  WriteLines(Log(state), {R"({"at":"1970","message":""})", R"({"at":"1971","message":""})"});
  AddLines(state, 0, 2);
  const auto check = CheckAuditLog(state, "");
  ASSERT_EQ(check.status(), absl::OkStatus());
  EXPECT_EQ(check->lines, 4);
  EXPECT_EQ(check->unchained, 2);
}

TEST(AuditLogTest, APieceOfALineIsRemovedBeforeTheNextOne) {
  const std::string state = StateFolder();
  AddLines(state, 0, 2);
  const std::string sound = ReadFile(Log(state)).value();
  ASSERT_EQ(WriteFileDurably(Log(state), sound + R"({"at":"1970-01-0)"), absl::OkStatus());
  EXPECT_EQ(CheckAuditLog(state, "")->lines, 2);
  AddLines(state, 2, 1);
  EXPECT_TRUE(absl::StartsWith(ReadFile(Log(state)).value(), sound));
  EXPECT_EQ(CheckAuditLog(state, "")->lines, 3);
}

}  // namespace
}  // namespace traind
