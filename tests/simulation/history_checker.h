// Reads a history record by record and notes what must not be; the inside of checker.h.
#pragma once

#include <absl/strings/str_cat.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/simulation/places.h"

namespace traind::simulation {

inline bool Terminal(const std::string& state) {
  return state == "SUCCEEDED" || state == "FAILED" || state == "CANCELLED";
}

// Threads: confined to one.
class Checker {
 public:
  using json = nlohmann::json;
  explicit Checker(const std::vector<json>& history) : history_(history) {}
  std::vector<std::string> Run();
  const std::map<std::string, int64_t>& counts() const { return counts_; }

 private:
  // A fold that could run and does not.
  struct Wait {
    size_t task = 0;
    int64_t from = 0, to = -1;
    bool made_room = false;  // once before
  };
  struct JobSeen {
    json last;  // its newest committed row
    int64_t true_deadline = -1;
    int64_t last_deadline = -1;  // the latest it ever had: a Worker out of reach keeps that
    int64_t terminal_at = -1;
    int64_t floor_at = -1;  // on disk
    int64_t published_at = -1;
    int64_t acked_at = -1;
    std::map<std::string, int64_t> waited_until;  // by the Job that it waited for
    int quality_on_disk = 0;
    int number_on_disk = 0;
    int standing = -1;  // at the end; negative: not known
    // From when to when a first fold of it could have run and nothing of it did.
    std::vector<std::pair<int64_t, int64_t>> starved;
    int64_t starved_since = -1;
    std::map<size_t, int64_t> preempted_at;  // the last time on traind's clock, by task
    std::map<size_t, Wait> waiting;          // by task
    std::vector<Wait> waited;
    int64_t unmet_since = -1, told_at = -1;  // that no Worker suits
    int64_t first_at = -1;                   // stored; of one that trains nothing
    int64_t deleted_at = -1;
    std::map<int64_t, std::string> contents;  // of its Predictions that have stood
  };
  // Rows that a client asked for at once.
  struct RowsSeen {
    std::string source;
    int64_t due = 0;
    bool patient = false, calm = false, ended = false;
  };
  struct RankSeen {
    std::string job, worker;
    std::vector<int> slots;
    int64_t from = 0, to = -1;
    double epochs = -1;  // that its fold has; negative: none is known
    int world_size = 1;
    bool stepped = true;  // before it ended
  };
  // A fold's last predictions, which its Worker had.
  struct SavedFold {
    int64_t at = 0;
    std::string job, worker;
    int fold = 0;
  };
  // A Prediction that stood from then on.
  struct StoodFrom {
    int64_t at = 0;
    std::set<int> folds;
  };
  // A Rank must be given these, by what was stored when its Attempt was.
  struct Given {
    std::string resume;
    int64_t batch = 0;
  };

  // An Attempt that was told to make room.
  struct Going {
    std::set<std::string> by;  // the Jobs for which it goes; a restart may choose another one
    int64_t told_at = 0, gone_at = -1;
    double epochs = -1;  // that its fold had when it went
  };
  // Where traind has put an Attempt.
  struct Placement {
    int64_t at = 0, core = 0;  // core: on traind's clock
    std::string job;
    Room parts;
    int slots() const {  // on all Workers
      size_t count = 0;
      for (const auto& [worker, of_it] : parts) count += of_it.size();
      return static_cast<int>(count);
    }
    std::map<std::string, int64_t> ended;  // by Worker
  };
  using BusyBySlot =
      std::map<std::pair<std::string, int>, std::vector<std::pair<int64_t, int64_t>>>;

  template <typename... Parts>
  void Violation(const Parts&... parts) {
    violations_.push_back(absl::StrCat(parts...));
  }
  void Read(const json& r);
  void ReadJob(const json& r);
  void ReadAckedFold(int64_t attempt);
  void SetDeadline(const json& r, JobSeen& job);
  void CheckTasks(const json& r, const json* before);
  void CheckSettings(const json& r, const json& before);
  void CheckAfter(const json& r, JobSeen& job);
  void ReadPreemption(const json& r, JobSeen& job);
  void ReadToldToGo(const json& r);
  void CheckMadeRoom(const json& r, const json& attempt);
  void ReadGone(const json& r);
  void CheckWentOn(const json& r);
  void CheckGone();
  void CheckStarved();
  void CheckAfterAtEnd(const std::string& id, const JobSeen& job);
  void CheckFirst(const json& r, size_t begun);
  bool FoldHasTime(const json& r) const;
  void CheckNumber(const std::string& id, int64_t attempt);
  void ExpectStart(const json& r, const json& attempt);
  void CheckStart(const json& r);
  void CheckAnswer(const json& r);
  void CheckJobAtEnd(const std::string& id, const JobSeen& job);
  void CheckDeadline(const std::string& id, const JobSeen& job);
  void CheckIdle(const std::string& id, const JobSeen& job);
  void CheckUsed(const std::string& id, const JobSeen& job);
  void CheckProgressTold(const json& r);
  void CheckGang(const json& r);
  void CheckRanks();
  void CheckAlone();
  void CheckAlone(const SavedFold& saved);
  // checker_of_places.cc
  void ReadMachine(const json& r);
  void ReadPlacements(const json& r);
  void ReadPartEnd(const json& r);
  int SlotsOf(const std::string& owner) const;
  void CheckOwners();
  void ReadTold(const json& r);
  Demand DemandOfJob(const JobSeen& job) const;
  void CheckPlace(const json& r);
  void CheckGangPlace(int64_t attempt, const json& r);
  void CheckGangSize(int64_t attempt, const Placement& placement);
  void CheckGangIsTogether(int64_t attempt, const Placement& placement, const json& r);
  bool AnySuits(const JobSeen& job, const std::string& worker, const std::vector<int>& slots) const;
  bool IsFree(const std::string& worker, int slot, int64_t t) const;
  bool IsFreeForAll(const std::string& worker, int slot, const json& r) const;
  bool SlotsMayBeKept(const std::string& except) const;
  void NoteUnmet(const json& r, JobSeen& job);
  void CheckUnmet(const std::string& id, const JobSeen& job);
  void CheckSmallerGang(const std::string& id, const JobSeen& job);
  void NoteWaits(const json& r, JobSeen& job);
  void CheckWaits();
  BusyBySlot BusySpans() const;
  int64_t IdleBeside(const Demand& demand, const Wait& wait, const BusyBySlot& busy) const;
  // checker_of_asks.cc
  // Whether it predicts or serves with another one's models.
  bool IsAsked(const JobSeen& job) const { return job.last["models_from"] != ""; }
  bool ReadAsks(const json& r);
  void ReadDeleted(const json& r);
  void CheckToGo(const json& r);
  void ReadAskedJob(const json& r, JobSeen& job);
  void ReadContent(const json& r);
  void CheckPredicting(const json& r);
  void ReadRowsAnswered(const json& r);
  void ReadRowsEnd(const json& r);
  void CheckAskedAtEnd(const std::string& id, const JobSeen& job);
  void CheckPrediction(const std::string& id, const JobSeen& job, const json& asked);
  void CheckPredictedInTime(const std::string& id, const JobSeen& job, const json& asked);
  void CheckRows();
  // Until when, from `t` on, traind could not write; t: it could.
  int64_t BlockedUntil(int64_t t) const;

  const std::vector<json>& history_;
  std::vector<std::string> violations_;
  std::map<std::string, JobSeen> jobs_;
  std::map<std::string, std::string> by_request_;
  std::map<std::string, json> truths_;  // by request
  std::map<std::string, json> asked_;   // what was asked, by Job that trains nothing
  std::map<int64_t, RowsSeen> calls_;
  // Questions that Workers have and have not answered, by Worker.
  std::map<std::string, std::set<int64_t>> questions_;
  std::set<int64_t> answered_;                         // questions
  std::map<std::string, std::set<int64_t>> predicts_;  // Attempts that predict a file, by Worker
  int64_t calm_at_ = -1;                               // nothing goes wrong from then on
  std::map<int64_t, RankSeen> ranks_;
  // The parts of gangs that span Workers, besides those with rank 0: by Attempt and Worker.
  std::map<std::pair<int64_t, std::string>, RankSeen> parts_;
  std::map<int64_t, std::string> job_of_;  // by Attempt
  std::map<int64_t, Given> given_;         // by Attempt
  std::map<int64_t, Going> going_;         // by Attempt
  std::map<int64_t, size_t> task_of_;      // by Attempt
  // The Attempts that have made room last, by Job and task, until these go on.
  std::map<std::pair<std::string, size_t>, int64_t> went_;
  std::set<std::string> closed_;                      // Workers that take nothing new
  std::set<int64_t> attempts_;                        // ever committed
  std::set<int64_t> shortened_;                       // with an epoch of a share of the rows
  std::vector<std::pair<int64_t, int64_t>> blocked_;  // down, or disk full
  int64_t blocked_since_ = -1;
  std::vector<std::pair<int64_t, int64_t>> away_;  // traind was
  std::vector<SavedFold> saved_;
  std::map<std::string, std::vector<StoodFrom>> stood_;       // by Job
  std::map<std::string, std::vector<int64_t>> worker_ended_;  // by Worker
  std::vector<int64_t> disk_faults_;                          // when it was full, or lost power
  bool down_ = true, full_ = false;
  int64_t offset_ = 0, lag_ = 0;  // of traind's clock; what it lost at restarts
  bool started_ = false;
  int64_t committed_at_ = 0;  // the last commit
  bool faults_ = false;
  bool standalone_ = false;
  int64_t preempted_by_ = -1, preempt_pause_ = 0;  // -1: nobody makes room
  int64_t preempt_least_run_ = 0, preempt_grace_ = 0;
  int owner_slots_ = 0;  // that one owner may use; 0: there is no limit
  std::map<std::string, Machine> machines_;
  std::map<int64_t, Placement> placements_;                    // by Attempt
  std::map<std::pair<std::string, int>, int64_t> busy_until_;  // by slot; INT64_MAX: it is busy
  std::map<std::string, int64_t> counts_;
  int64_t began_ = -1, end_ = 0;
};

}  // namespace traind::simulation
