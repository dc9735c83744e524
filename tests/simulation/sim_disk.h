// The state folder: Jobs' files on a disk that fills up, and that forgets at a loss of power what
// was not synced. Predictions are published there by the rules of common/publish/standing_rules.h.
// Threads: confined to one.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/publish/prediction.h"
#include "tests/simulation/world.h"

namespace traind::simulation {

// A publishing, which takes as long as `cost`. alive: whether the process that does it still is; a
// dead one leaves what it has done, and frees the Job's lock.
struct Publishing {
  PublishRequest request;
  // Of a Rank that predicts a later file, in place of what follows from `request`: as
  // common/publish/dataset_publisher.h says.
  std::optional<PublishedPrediction> answer = std::nullopt;
  bool has_test = true;
  absl::Time stamp;
  absl::Duration cost;
  std::function<bool()> alive;
  std::function<void(absl::StatusOr<PublishedPrediction>)> done;
};

class Disk {
 public:
  explicit Disk(World* world) : world_(world) {}

  // ---- files, by their paths in the state folder
  // Replaces the file as a rename does; a loss of power may undo it until it is synced.
  void Write(const std::string& path, const std::string& content);
  void Sync(const std::string& path);
  // nullopt: there is none.
  std::optional<std::string> Read(const std::string& path) const;
  // The files whose paths begin so.
  std::vector<std::string> List(const std::string& prefix) const;
  // Durably, also where the disk is full.
  void Remove(const std::string& path) { files_.erase(path); }
  // All of its folder; nobody writes into it again, as traind removes what returns.
  void RemoveJob(const std::string& job);

  // ---- Predictions
  // Another floor is on disk.
  void WriteFloor(const std::string& job);
  void Publish(Publishing publishing);
  // As common/publish/ended_job.h says.
  void EndPublishing(const std::string& job, int number, std::function<bool()> alive);
  std::optional<PublishedPrediction> Standing(const std::string& job) const;
  // Records which Prediction of each Job stands.
  void RecordStanding() const;

  // Every process is dead.
  void LosePower();

  // How long a sync takes.
  absl::Duration SyncTime();

  bool full = false;  // writes fail
  bool slow = false;  // syncs take long

 private:
  struct File {
    std::string content;
    bool exists = false;
    // What stands there again after a loss of power: its content, or nothing.
    std::optional<std::optional<std::string>> undo;
  };
  struct Numbered {
    PublishedPrediction prediction;
    int floor = 0;  // that it was made with
  };
  struct JobFolder {
    int floor = 0;  // how many there were
    std::map<int, Numbered> predictions;
    int current = 0;          // 0: none stands
    std::optional<int> undo;  // of current
    bool ended = false;
    bool locked = false;
  };

  void Begin(const Publishing& publishing);
  PublishedPrediction Joined(const PublishRequest& request, const JobFolder& folder) const;
  void Commit(const Publishing& publishing, PublishedPrediction next);
  void Point(const std::string& job, std::function<bool()> alive, int number);
  std::vector<Member> Choose(const PublishRequest& request, const JobFolder& folder) const;
  bool Usable(const std::string& job, const Member& member) const;
  bool NotWorse(const std::string& job, const PublishedPrediction& next,
                const PublishedPrediction& standing) const;
  bool Stays(const PublishRequest& request, const JobFolder& folder,
             const PublishedPrediction& next) const;
  void RecordCurrent(const char* kind, const std::string& job) const;

  World* world_;
  std::map<std::string, File> files_;
  std::map<std::string, JobFolder> jobs_;
  std::set<std::string> removed_;  // Jobs
};

}  // namespace traind::simulation
