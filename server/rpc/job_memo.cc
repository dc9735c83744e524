#include "server/rpc/job_memo.h"

#include <algorithm>
#include <cstddef>

namespace traind {
namespace {

constexpr size_t kMostKept = 32;

}  // namespace

bool JobMemo::Find(const std::string& id, const JobStamp& stamp, v1::Job* answer) {
  absl::MutexLock lock(&mutex_);
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.id == id; });
  if (found == entries_.end() || !(found->stamp == stamp)) return false;
  entries_.splice(entries_.begin(), entries_, found);
  *answer = found->answer;
  return true;
}

void JobMemo::Keep(const std::string& id, const JobStamp& stamp, const v1::Job& answer) {
  absl::MutexLock lock(&mutex_);
  entries_.remove_if([&](const Entry& entry) { return entry.id == id; });
  entries_.push_front({id, stamp, answer});
  if (entries_.size() > kMostKept) entries_.pop_back();
}

}  // namespace traind
