#include "common/transfer/program_pack.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"

namespace traind {

std::string ProgramPackPath(const std::string& job, const ProgramPack& pack) {
  const std::string of_trial = pack.trial == 0 ? "" : absl::StrCat("trial-", pack.trial, "-");
  return absl::StrCat(ProgramsDir(job), "/", of_trial, "fold-", pack.fold, "-", pack.attempt,
                      ".pack");
}

std::optional<ProgramPack> ProgramPackAt(absl::string_view path, const std::string& job) {
  absl::string_view name = path;
  if (!absl::ConsumePrefix(&name, ProgramsDir(job) + "/")) return std::nullopt;
  if (!absl::ConsumeSuffix(&name, ".pack")) return std::nullopt;
  std::vector<absl::string_view> parts = absl::StrSplit(name, '-');
  ProgramPack pack;
  if (parts.size() == 5 && parts[0] == "trial") {
    if (!absl::SimpleAtoi(parts[1], &pack.trial)) return std::nullopt;
    parts.erase(parts.begin(), parts.begin() + 2);
  }
  const bool numbers = parts.size() == 3 && absl::SimpleAtoi(parts[1], &pack.fold) &&
                       absl::SimpleAtoi(parts[2], &pack.attempt);
  // A number may be written in several ways, and only one of them is a path.
  if (!numbers || ProgramPackPath(job, pack) != path) return std::nullopt;
  return pack;
}

std::vector<std::string> ProgramPacksIn(const std::string& state_dir, const std::string& job) {
  std::vector<std::string> paths;
  std::error_code error;
  const std::string folder = absl::StrCat(state_dir, "/", ProgramsDir(job));
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::string path = absl::StrCat(ProgramsDir(job), "/", it->path().filename().string());
    if (ProgramPackAt(path, job)) paths.push_back(std::move(path));
  }
  return paths;
}

void RemoveOlderProgramPacks(const std::string& state_dir, const std::string& job,
                             const ProgramPack& pack) {
  for (const std::string& path : ProgramPacksIn(state_dir, job)) {
    const std::optional<ProgramPack> other = ProgramPackAt(path, job);
    if (other->fold == pack.fold && other->trial == pack.trial && other->attempt < pack.attempt) {
      unlink(absl::StrCat(state_dir, "/", path).c_str());
    }
  }
}

std::optional<ProgramPack> NewestProgramPack(const std::vector<std::string>& paths,
                                             const std::string& job, int64_t last,
                                             const ProgramPack& next) {
  std::optional<ProgramPack> newest;
  for (const std::string& path : paths) {
    const std::optional<ProgramPack> pack = ProgramPackAt(path, job);
    if (!pack || pack->fold != next.fold || pack->trial != next.trial) continue;
    if (pack->attempt <= last || pack->attempt >= next.attempt) continue;
    if (!newest || pack->attempt > newest->attempt) newest = pack;
  }
  return newest;
}

int64_t LastProgramAttempt(const std::string& fold_dir) {
  const auto text = ReadFile(absl::StrCat(fold_dir, "/", kProgramAttemptFile));
  int64_t last = 0;
  return text.ok() && absl::SimpleAtoi(*text, &last) ? last : 0;
}

}  // namespace traind
