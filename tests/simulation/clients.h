// Clients that ask for more of Jobs that exist: predictions of later files (PREDICT), rows at once
// (SERVE), and deletions. What server/rpc does for them is simulated; which models answer is
// decided by server/intake/models.h. Threads: confined to one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/simulation/sim_collector.h"
#include "tests/simulation/sim_coordinator.h"
#include "tests/simulation/sim_disk.h"
#include "tests/simulation/truth.h"
#include "tests/simulation/world.h"

namespace traind::simulation {

class Clients {
 public:
  // truths: gets those of the Jobs that are asked for. acked: the Jobs of requests.
  Clients(World* world, Disk* disk, SimCoordinator* coordinator, SimCollector* collector,
          std::map<std::string, JobTruth>* truths, std::map<std::string, std::string>* acked,
          uint64_t seed)
      : world_(world),
        disk_(disk),
        coordinator_(coordinator),
        collector_(collector),
        truths_(truths),
        acked_(acked),
        chance_(seed) {}

  // What they ask of those Jobs until `until`.
  void Choose(const std::vector<std::string>& requests, absl::Time until);
  // Nothing goes wrong any more, and they ask for one of each after that time.
  void AskAtTheEnd(absl::Duration after);
  // When the last deadline is over, of what was chosen.
  absl::Time last_due() const { return last_due_; }
  bool AllOver();

 private:
  // A call that waits for its answer.
  struct RowsCall {
    int id = 0;
    std::string source;  // a Job
    absl::Time deadline;
    int starts = 0;     // of the traind that was called
    bool lost = false;  // once, with a Rank
    absl::Status last;
    bool over = false;
  };
  using Call = std::shared_ptr<RowsCall>;

  void ChoosePredict(absl::Time at);
  void ChooseRows(absl::Time at, int calls);
  void ChooseDeletion(absl::Time at);
  void DeleteAt(absl::Time at, const std::string& source);
  void Told(const JobTruth& truth, const char* what, const std::string& source);
  // The spec as it is stored, with the models that answer now.
  absl::StatusOr<std::string> ModelsNow(const std::string& source) const;
  Job MakeJob(const std::string& request, TaskKind kind, const std::string& source,
              std::string models) const;
  void Submit(const std::string& request, const std::string& source_request, int tries);
  void EndEarly(const std::string& request, bool cancels, int tries);

  void AskRows(const std::string& source_request, absl::Duration patience);
  void Go(const Call& call);
  void GoLater(const Call& call, absl::Duration delay);
  void End(const Call& call, const absl::Status& status, const std::string& answered_by);
  // One that is not over; nullopt: there is none.
  std::optional<Job> FindServer(const std::string& source);
  void StartServer(const Call& call);
  void Answered(const Call& call, const absl::StatusOr<std::string>& answer);

  World* world_;
  Disk* disk_;
  SimCoordinator* coordinator_;
  SimCollector* collector_;
  std::map<std::string, JobTruth>* truths_;
  std::map<std::string, std::string>* acked_;
  Chance chance_;
  std::vector<std::string> sources_;  // requests
  absl::Time last_due_ = absl::InfinitePast();
  bool calm_ = false;
  absl::Time until_;  // of what they ask
  int predicts_ = 0, servers_ = 0, calls_ = 0;
  int open_calls_ = 0;
  std::map<std::string, std::vector<std::string>> served_;  // Jobs that were to serve, by source
  std::set<std::string> starting_;                          // sources
};

}  // namespace traind::simulation
