#include "tests/simulation/sim_gateway.h"

#include <absl/strings/numbers.h>

#include <utility>
#include <vector>

namespace traind::simulation {

uint64_t SimGateway::Ask(const std::string& worker, Done done) {
  questions_[++last_] = {worker, std::move(done)};
  return last_;
}

void SimGateway::TakeAnswer(const rank_protocol::Answered& answer) {
  const auto found = questions_.find(answer.request);
  if (found == questions_.end() || answer.more) return;
  const Done done = std::move(found->second.done);
  questions_.erase(found);
  int code = 0;
  if (answer.code.empty()) return done(answer.members);
  if (!absl::SimpleAtoi(answer.code, &code)) code = static_cast<int>(absl::StatusCode::kUnknown);
  done(absl::Status(static_cast<absl::StatusCode>(code), answer.message));
}

void SimGateway::StreamEnded(const std::string& worker) {
  std::vector<Done> lost;
  for (auto it = questions_.begin(); it != questions_.end();) {
    if (it->second.worker != worker) {
      ++it;
      continue;
    }
    lost.push_back(std::move(it->second.done));
    it = questions_.erase(it);
  }
  for (const Done& done : lost) done(absl::AbortedError("the rows were lost with their Worker"));
}

}  // namespace traind::simulation
