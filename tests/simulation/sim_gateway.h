// Rows on their way to Workers and their answers, as server/rpc/worker_gateway.h keeps them: each
// question is answered, or given back when the Worker's stream ends.
// Threads: confined to one.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "worker/rank_protocol/messages.h"

namespace traind::simulation {

class SimGateway {
 public:
  // What answered: the Job whose models did.
  using Done = std::function<void(const absl::StatusOr<std::string>&)>;

  // Returns the number of the question.
  uint64_t Ask(const std::string& worker, Done done);
  void TakeAnswer(const rank_protocol::Answered& answer);
  // Nobody waits for it any more.
  void Forget(uint64_t question) { questions_.erase(question); }
  void StreamEnded(const std::string& worker);
  // traind has died, and its callers with it.
  void Forget() { questions_.clear(); }

 private:
  struct Question {
    std::string worker;
    Done done;
  };
  uint64_t last_ = 0;  // of all lives of traind, so that no answer is taken for another one's
  std::map<uint64_t, Question> questions_;
};

}  // namespace traind::simulation
