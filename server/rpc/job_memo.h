#pragma once

#include <absl/synchronization/mutex.h>

#include <list>
#include <string>

#include "proto/training_service.pb.h"
#include "server/store/store.h"

namespace traind {

// The last answers to GetJob about Jobs that are over: dashboards and scripts ask for the same Job
// again and again, and making an answer reads the Job's whole record. Threads: safe.
class JobMemo {
 public:
  // Sets *answer to what was kept for that Job with that stamp. False: there is nothing.
  bool Find(const std::string& id, const JobStamp& stamp, v1::Job* answer);
  // Keeps an answer in the place of the Job's earlier one, and forgets the one that nobody has
  // asked for longest where there are too many.
  void Keep(const std::string& id, const JobStamp& stamp, const v1::Job& answer);

 private:
  struct Entry {
    std::string id;
    JobStamp stamp;
    v1::Job answer;
  };

  absl::Mutex mutex_;
  std::list<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // asked for last in front
};

}  // namespace traind
