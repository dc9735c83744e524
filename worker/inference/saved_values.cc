#include "worker/inference/saved_values.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/status_macros.h"

namespace traind {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

Json IdentityJson(const FileIdentity& data) {
  Json json = {data.device, data.inode, data.bytes, data.modified_ns};
  if (!data.pixels_sha256.empty()) json.push_back(data.pixels_sha256);
  return json;
}

// Newest first.
std::vector<int64_t> Attempts(const std::string& state_dir, const std::string& job) {
  std::vector<int64_t> attempts;
  std::error_code error;
  const std::string dir = absl::StrCat(state_dir, "/", JobDir(job), "/attempts");
  for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
    int64_t attempt = 0;
    if (absl::SimpleAtoi(it->path().filename().string(), &attempt)) attempts.push_back(attempt);
  }
  std::sort(attempts.begin(), attempts.end(), std::greater<int64_t>());
  return attempts;
}

std::optional<MemberValues> Read(const std::string& stem, const FileIdentity& data,
                                 int64_t model_attempt) {
  const absl::StatusOr<std::string> text = ReadFile(stem + ".json");
  if (!text.ok()) return std::nullopt;
  MemberValues values;
  values.path = stem + ".npy";
  try {
    const Json json = Json::parse(*text);
    if (json.at("data") != IdentityJson(data)) return std::nullopt;
    json.at("attempt").get_to(values.member.attempt);
    json.at("best_epoch").get_to(values.member.best_epoch);
    json.at("step").get_to(values.member.step);
    json.at("sha256").get_to(values.member.test_sha256);
  } catch (const Json::exception&) {
    return std::nullopt;
  }
  if (values.member.attempt != model_attempt) return std::nullopt;
  const auto digest = DigestFile(values.path);
  if (!digest.ok() || digest->sha256 != values.member.test_sha256) return std::nullopt;
  return values;
}

}  // namespace

absl::StatusOr<FileIdentity> IdentityOf(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  FileIdentity data;
  data.device = info.st_dev;
  data.inode = info.st_ino;
  data.bytes = info.st_size;
  data.modified_ns = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
  return data;
}

absl::Status SaveValues(const std::string& dir, int index, const FileIdentity& data,
                        const std::string& sha256, const Member& member) {
  const Json json = {{"data", IdentityJson(data)},
                     {"attempt", member.attempt},
                     {"best_epoch", member.best_epoch},
                     {"step", member.step},
                     {"sha256", sha256}};
  return WriteFileDurably(absl::StrCat(dir, "/values-", index, ".json"), json.dump() + "\n");
}

std::optional<MemberValues> FindValues(const std::string& state_dir, const std::string& job,
                                       int index, const FileIdentity& data,
                                       const std::string& model_dir) {
  int64_t model_attempt = 0;
  if (!absl::SimpleAtoi(fs::path(model_dir).filename().string(), &model_attempt)) {
    return std::nullopt;
  }
  for (const int64_t attempt : Attempts(state_dir, job)) {
    const std::string stem =
        absl::StrCat(state_dir, "/", AttemptDir(job, attempt), "/values-", index);
    if (auto values = Read(stem, data, model_attempt)) return values;
  }
  return std::nullopt;
}

}  // namespace traind
