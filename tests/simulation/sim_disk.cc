#include "tests/simulation/sim_disk.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "common/base/job_layout.h"
#include "common/publish/standing_rules.h"

namespace traind::simulation {
namespace {

constexpr absl::Duration kLockPoll = absl::Milliseconds(5);
constexpr absl::Duration kQuickSync = absl::Milliseconds(3);

// The mean score of each fold's models.
std::map<int, double> ScoresByFold(const std::vector<Member>& members) {
  std::map<int, std::vector<double>> scores;
  for (const Member& member : members) scores[member.fold].push_back(member.score);
  std::map<int, double> means;
  for (const auto& [fold, of_fold] : scores) {
    for (const double score : of_fold) means[fold] += score / static_cast<double>(of_fold.size());
  }
  return means;
}

// Of a path jobs/JOB/...
std::string JobOf(const std::string& path) {
  const size_t begin = JobDir("").size(), end = path.find('/', begin);
  return end == std::string::npos ? std::string() : path.substr(begin, end - begin);
}

// A stand-in counts as none.
size_t CountMembers(const PublishedPrediction& prediction) {
  return prediction.quality == Quality::kFloor ? 0 : prediction.members.size();
}

}  // namespace

void Disk::Write(const std::string& path, const std::string& content) {
  if (!removed_.empty() && removed_.count(JobOf(path)) > 0) return;
  File& file = files_[path];
  if (!file.undo) {
    file.undo.emplace();
    if (file.exists) *file.undo = file.content;
  }
  file.content = content;
  file.exists = true;
}

void Disk::Sync(const std::string& path) {
  const auto file = files_.find(path);
  if (file != files_.end()) file->second.undo.reset();
}

std::optional<std::string> Disk::Read(const std::string& path) const {
  const auto file = files_.find(path);
  if (file == files_.end() || !file->second.exists) return std::nullopt;
  return file->second.content;
}

std::vector<std::string> Disk::List(const std::string& prefix) const {
  std::vector<std::string> paths;
  for (auto file = files_.lower_bound(prefix); file != files_.end(); ++file) {
    if (!absl::StartsWith(file->first, prefix)) break;
    if (file->second.exists) paths.push_back(file->first);
  }
  return paths;
}

void Disk::RemoveJob(const std::string& job) {
  for (const std::string& path : List(absl::StrCat(JobDir(job), "/"))) Remove(path);
  jobs_.erase(job);
  removed_.insert(job);
}

absl::Duration Disk::SyncTime() {
  if (slow) return absl::Seconds(world_->chance.LogUniform(0.002, 0.4));
  return absl::Milliseconds(world_->chance.Int(1, 8));
}

void Disk::LosePower() {
  for (auto& [path, file] : files_) {
    if (!file.undo) continue;
    if (world_->chance.Happens(0.5)) {
      file.exists = file.undo->has_value();
      file.content = file.undo->value_or("");
    }
    file.undo.reset();
  }
  for (auto& [job, folder] : jobs_) {
    folder.locked = false;
    if (!folder.undo) continue;
    if (world_->chance.Happens(0.5)) {
      folder.current = *folder.undo;
      RecordCurrent("current_lost", job);
    }
    folder.undo.reset();
  }
}

// ---- publishing ----

bool Disk::Usable(const std::string& job, const Member& member) const {
  return Read(absl::StrCat("jobs/", job, "/", member.oof)) == member.oof_sha256;
}

// The models that answer, by fold, trial and seed.
std::vector<Member> Disk::Choose(const PublishRequest& request, const JobFolder& folder) const {
  std::vector<Member> candidates = request.members;
  if (folder.current > 0) {
    const std::vector<Member>& earlier = folder.predictions.at(folder.current).prediction.members;
    candidates.insert(candidates.end(), earlier.begin(), earlier.end());
  }
  std::stable_sort(candidates.begin(), candidates.end(), TakenBefore);
  std::map<std::tuple<int, int, int>, Member> chosen;
  for (const Member& member : candidates) {
    if (!Usable(request.job, member)) continue;
    chosen.emplace(std::make_tuple(member.fold, member.trial, member.seed), member);
  }
  std::vector<Member> members;
  for (const auto& [model, member] : chosen) members.push_back(member);
  return members;
}

// As in common/publish/publisher.cc, with a fold's score in place of its rows. A model is taken
// for better than the floor.
bool Disk::NotWorse(const std::string& job, const PublishedPrediction& next,
                    const PublishedPrediction& standing) const {
  if (standing.members.empty()) return true;
  std::vector<Member> readable;
  for (const Member& member : standing.members) {
    if (Usable(job, member)) readable.push_back(member);
  }
  const auto mine = ScoresByFold(next.members), theirs = ScoresByFold(readable);
  double gain = 0;
  bool compared = false;
  for (const auto& [fold, score] : theirs) {
    const auto by_next = mine.find(fold);
    if (by_next == mine.end()) continue;
    gain += by_next->second - score;
    compared = true;
  }
  return compared ? gain >= 0 : mine.size() > ScoresByFold(standing.members).size();
}

bool Disk::Stays(const PublishRequest& request, const JobFolder& folder,
                 const PublishedPrediction& next) const {
  if (folder.current == 0) return false;
  const Numbered& standing = folder.predictions.at(folder.current);
  NextStanding made{&next, {}, CompleteFolds(next.members, {}), false};
  for (const Member& member : next.members) {
    made.folds.insert(member.fold);
    made.trials = made.trials || member.trial != next.members[0].trial;
  }
  return !Replaces(
      made, standing.prediction, {}, [&] { return folder.floor != standing.floor; },
      [&] { return NotWorse(request.job, next, standing.prediction); });
}

void Disk::WriteFloor(const std::string& job) {
  if (removed_.count(job) > 0) return;
  ++jobs_[job].floor;
  const std::string path = absl::StrCat(FloorDir(job), "/model.json");
  Write(path, absl::StrCat(jobs_[job].floor));
  Sync(path);
}

void Disk::Publish(Publishing publishing) {
  if (!publishing.alive()) return;
  const auto folder = jobs_.find(publishing.request.job);
  if (folder != jobs_.end() && folder->second.locked) {
    return world_->After(kLockPoll, [this, publishing] { Publish(publishing); });
  }
  Begin(publishing);
}

PublishedPrediction Disk::Joined(const PublishRequest& request, const JobFolder& folder) const {
  PublishedPrediction next;
  next.members = Choose(request, folder);
  next.quality = QualityOf(request, next.members.size(), CompleteFolds(next.members, {}));
  return next;
}

void Disk::Begin(const Publishing& publishing) {
  const PublishRequest& request = publishing.request;
  if (removed_.count(request.job) > 0) {
    return publishing.done(absl::FailedPreconditionError("the job is deleted"));
  }
  JobFolder& folder = jobs_[request.job];
  if (folder.ended) return publishing.done(absl::FailedPreconditionError("the job is over"));
  PublishedPrediction next = publishing.answer ? *publishing.answer : Joined(request, folder);
  next.at = publishing.stamp;
  next.changed = true;
  if (publishing.answer) {
    const auto standing = Standing(request.job);
    if (standing && CountMembers(*standing) >= CountMembers(next)) {
      return publishing.done(*standing);
    }
  } else if (next.members.empty() && folder.floor == 0) {
    if (folder.current > 0) return publishing.done(*Standing(request.job));
    return publishing.done(absl::NotFoundError("no floor and no member"));
  }
  if (!publishing.has_test) return publishing.done(next);
  if (!publishing.answer && Stays(request, folder, next)) {
    return publishing.done(*Standing(request.job));
  }
  folder.locked = true;
  world_->After(publishing.cost, [this, publishing, next] { Commit(publishing, next); });
}

void Disk::Commit(const Publishing& publishing, PublishedPrediction next) {
  const std::string& job = publishing.request.job;
  if (removed_.count(job) > 0) return publishing.done(absl::NotFoundError("the job is deleted"));
  JobFolder& folder = jobs_[job];
  const auto unlock = [&folder] { folder.locked = false; };
  if (!publishing.alive()) return unlock();
  if (full) {
    unlock();
    return publishing.done(absl::ResourceExhaustedError("disk full"));
  }
  if (folder.ended) {  // meanwhile
    unlock();
    return publishing.done(absl::FailedPreconditionError("the job is over"));
  }
  next.number = folder.predictions.empty() ? 1 : folder.predictions.rbegin()->first + 1;
  next.path = absl::StrCat("jobs/", job, "/prediction-", next.number, "/predictions.csv");
  folder.predictions[next.number] = {next, folder.floor};
  folder.undo = folder.current;
  folder.current = next.number;
  RecordCurrent("published", job);
  world_->After(slow ? SyncTime() : kQuickSync, [this, job, publishing, next] {
    if (removed_.count(job) > 0) return publishing.done(absl::NotFoundError("the job is deleted"));
    if (!publishing.alive()) {
      jobs_[job].locked = false;
      return;
    }
    jobs_[job].undo.reset();
    jobs_[job].locked = false;
    publishing.done(next);
  });
}

void Disk::EndPublishing(const std::string& job, int number, std::function<bool()> alive) {
  if (removed_.count(job) > 0) return;
  JobFolder& folder = jobs_[job];
  if (full) return;
  folder.ended = true;
  folder.undo.reset();  // the mark is written durably, which syncs the folder
  Point(job, std::move(alive), number);
}

void Disk::Point(const std::string& job, std::function<bool()> alive, int number) {
  if (!alive() || removed_.count(job) > 0) return;
  JobFolder& folder = jobs_[job];
  if (folder.locked) {
    return world_->After(kLockPoll, [this, job, alive, number] { Point(job, alive, number); });
  }
  if (folder.current == number) return;
  if (number > 0 && folder.predictions.count(number) == 0) return;
  folder.current = number;
  RecordCurrent("taken_back", job);
}

std::optional<PublishedPrediction> Disk::Standing(const std::string& job) const {
  const auto it = jobs_.find(job);
  if (it == jobs_.end() || it->second.current == 0) return std::nullopt;
  PublishedPrediction standing = it->second.predictions.at(it->second.current).prediction;
  standing.changed = false;
  return standing;
}

void Disk::RecordCurrent(const char* kind, const std::string& job) const {
  nlohmann::json& record = world_->Record(kind);
  const auto standing = Standing(job);
  record["job"] = job;
  record["number"] = standing ? standing->number : 0;
  record["quality"] = standing ? static_cast<int>(standing->quality) : 0;
  std::set<int> folds;
  for (const Member& member : standing ? standing->members : std::vector<Member>()) {
    folds.insert(member.fold);
  }
  record["folds"] = folds;
  record["content"] = standing ? standing->sha256 : "";
}

void Disk::RecordStanding() const {
  for (const auto& [job, folder] : jobs_) RecordCurrent("standing", job);
}

}  // namespace traind::simulation
