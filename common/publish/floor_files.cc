#include "common/publish/floor_files.h"

#include <absl/strings/str_cat.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "common/publish/ended_job.h"
#include "common/publish/publish_lock.h"

namespace traind {
namespace {

using Json = nlohmann::json;

constexpr char kFloorFile[] = "floor.json";

struct Generation {
  std::string model;
  double score = 0;
  std::string oof_sha256, test_sha256;
};

std::string EncodeGenerations(const std::vector<Generation>& generations) {
  Json list = Json::array();
  for (const Generation& g : generations) {
    list.push_back({{"model", g.model},
                    {"score", std::isfinite(g.score) ? Json(g.score) : Json("NaN")},
                    {"oof_sha256", g.oof_sha256},
                    {"test_sha256", g.test_sha256}});
  }
  return Json{{"format", 1}, {"generations", std::move(list)}}.dump(1) + "\n";
}

absl::StatusOr<std::vector<Generation>> ReadGenerations(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const absl::Status damaged = absl::DataLossError(absl::StrCat(path, " is damaged"));
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("generations") || !json["generations"].is_array()) {
    return damaged;
  }
  std::vector<Generation> generations;
  for (const Json& item : json["generations"]) {
    if (!item.is_object()) return damaged;
    for (const char* key : {"model", "oof_sha256", "test_sha256"}) {
      if (!item.contains(key) || !item[key].is_string()) return damaged;
    }
    Generation g;
    g.model = item["model"].get<std::string>();
    g.score = item.contains("score") && item["score"].is_number() ? item["score"].get<double>()
                                                                  : std::nan("");
    g.oof_sha256 = item["oof_sha256"].get<std::string>();
    g.test_sha256 = item["test_sha256"].get<std::string>();
    generations.push_back(std::move(g));
  }
  return generations;
}

// Returns the file's values, and the generation that they belong to.
absl::StatusOr<std::shared_ptr<const TestValues>> ReadKnown(
    const std::string& path, const std::vector<Generation>& generations,
    std::string Generation::*digest, const Generation*& of) {
  ASSIGN_OR_RETURN(const FileDigest here, DigestFile(path));
  for (const Generation& g : generations) {
    if (g.*digest != here.sha256) continue;
    of = &g;
    return TestValues::Open(path, here.sha256);
  }
  return absl::DataLossError(absl::StrCat(path, " is damaged: its digest differs"));
}

}  // namespace

absl::Status WriteFloor(const std::string& state_dir, const std::string& job, Floor& floor,
                        absl::FunctionRef<absl::Status()> keep_model) {
  const std::string dir = absl::StrCat(state_dir, "/", FloorDir(job));
  RETURN_IF_ERROR(MakeDirs(dir));
  const std::string oof = EncodeNpy(floor.oof.shape, floor.oof.values);
  floor.oof_sha256 = Sha256Hex(oof);
  std::string test;
  if (floor.test_file.empty()) {
    test = EncodeNpy(floor.test.shape, floor.test.values);
    floor.test_sha256 = Sha256Hex(test);
  }

  ASSIGN_OR_RETURN(const JobPublishLock lock,
                   JobPublishLock::Acquire(state_dir, job, PublishLockTimeout()));
  RETURN_IF_ERROR(CheckNotEnded(state_dir, job));
  RETURN_IF_ERROR(keep_model());
  std::vector<Generation> generations = {
      {floor.model, floor.score, floor.oof_sha256, floor.test_sha256}};
  const std::string json_path = absl::StrCat(dir, "/", kFloorFile);
  if (auto before = ReadGenerations(json_path); before.ok() && !before->empty()) {
    generations.push_back(before->front());
  }
  RETURN_IF_ERROR(WriteFileDurably(json_path, EncodeGenerations(generations)));
  const std::string test_path = absl::StrCat(dir, "/", kTestFile);
  RETURN_IF_ERROR(floor.test_file.empty() ? WriteFileDurably(test_path, test)
                                          : RenameDurably(floor.test_file, test_path));
  return WriteFileDurably(absl::StrCat(dir, "/", kOofFile), oof);
}

absl::StatusOr<StandingFloor> ReadFloor(const std::string& state_dir, const std::string& job) {
  const std::string dir = absl::StrCat(state_dir, "/", FloorDir(job));
  ASSIGN_OR_RETURN(const auto generations, ReadGenerations(absl::StrCat(dir, "/", kFloorFile)));
  const Generation* oof_of = nullptr;
  const Generation* test_of = nullptr;
  ASSIGN_OR_RETURN(
      const std::shared_ptr<const TestValues> oof,
      ReadKnown(absl::StrCat(dir, "/", kOofFile), generations, &Generation::oof_sha256, oof_of));
  StandingFloor floor;
  ASSIGN_OR_RETURN(floor.test, ReadKnown(absl::StrCat(dir, "/", kTestFile), generations,
                                         &Generation::test_sha256, test_of));
  floor.model = test_of->model;
  floor.score = oof_of->score;
  floor.oof.assign(oof->values().begin(), oof->values().end());
  floor.oof_sha256 = oof_of->oof_sha256;
  floor.test_sha256 = test_of->test_sha256;
  return floor;
}

}  // namespace traind
