#include "common/publish/floor_files.h"

#include <absl/strings/str_cat.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "common/durable_file.h"
#include "common/job_layout.h"
#include "common/publish/publish_lock.h"
#include "common/status_macros.h"

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

// The file's bytes, and which generation they are of.
absl::StatusOr<std::string> ReadKnown(const std::string& path,
                                      const std::vector<Generation>& generations,
                                      std::string Generation::*digest, const Generation*& of) {
  ASSIGN_OR_RETURN(std::string bytes, ReadFile(path));
  const std::string sha256 = Sha256Hex(bytes);
  for (const Generation& g : generations) {
    if (g.*digest != sha256) continue;
    of = &g;
    return bytes;
  }
  return absl::DataLossError(absl::StrCat(path, " is damaged: its digest differs"));
}

}  // namespace

absl::Status WriteFloor(const std::string& state_dir, const std::string& job, Floor& floor) {
  const std::string dir = absl::StrCat(state_dir, "/", FloorDir(job));
  RETURN_IF_ERROR(MakeDirs(dir));
  const std::string oof = EncodeNpy(floor.oof.shape, floor.oof.values);
  const std::string test = EncodeNpy(floor.test.shape, floor.test.values);
  floor.oof_sha256 = Sha256Hex(oof);
  floor.test_sha256 = Sha256Hex(test);

  ASSIGN_OR_RETURN(const JobPublishLock lock,
                   JobPublishLock::Take(state_dir, job, PublishLockTimeout()));
  std::vector<Generation> generations = {
      {floor.model, floor.score, floor.oof_sha256, floor.test_sha256}};
  const std::string json_path = absl::StrCat(dir, "/", kFloorFile);
  if (auto before = ReadGenerations(json_path); before.ok() && !before->empty()) {
    generations.push_back(before->front());
  }
  RETURN_IF_ERROR(WriteFileDurably(json_path, EncodeGenerations(generations)));
  RETURN_IF_ERROR(WriteFileDurably(absl::StrCat(dir, "/", kTestFile), test));
  return WriteFileDurably(absl::StrCat(dir, "/", kOofFile), oof);
}

absl::StatusOr<Floor> ReadFloor(const std::string& state_dir, const std::string& job) {
  const std::string dir = absl::StrCat(state_dir, "/", FloorDir(job));
  ASSIGN_OR_RETURN(const auto generations, ReadGenerations(absl::StrCat(dir, "/", kFloorFile)));
  const Generation* oof_of = nullptr;
  const Generation* test_of = nullptr;
  const std::string oof_path = absl::StrCat(dir, "/", kOofFile);
  const std::string test_path = absl::StrCat(dir, "/", kTestFile);
  ASSIGN_OR_RETURN(const std::string oof,
                   ReadKnown(oof_path, generations, &Generation::oof_sha256, oof_of));
  ASSIGN_OR_RETURN(const std::string test,
                   ReadKnown(test_path, generations, &Generation::test_sha256, test_of));
  Floor floor;
  floor.model = test_of->model;
  floor.score = oof_of->score;
  floor.oof_sha256 = oof_of->oof_sha256;
  floor.test_sha256 = test_of->test_sha256;
  ASSIGN_OR_RETURN(floor.oof, ParseNpyFloat(oof, oof_path));
  ASSIGN_OR_RETURN(floor.test, ParseNpyFloat(test, test_path));
  return floor;
}

}  // namespace traind
