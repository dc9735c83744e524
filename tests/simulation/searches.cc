#include "tests/simulation/searches.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "server/search/search.h"

namespace traind::simulation {

void AddSearch(Spec& spec, Chance& chance) {
  static const char* const kMethods[] = {"auto", "random", "tpe", "asha", kAskMethod};
  spec.search.method = kMethods[chance.Int(0, 4)];
  if (AsksClients(spec.search) && chance.Happens(0.8)) {
    spec.search.wait = absl::Seconds(chance.LogUniform(0.5, 60));
  }
  spec.search.space = {{"train.ema", "uniform(0, 0.9)"}};
  spec.search.seed = chance.Next();
  for (Trial& trial : spec.trials) trial.kind = spec.trials[0].kind;
  spec.trials[0].settings = std::make_shared<const Settings>();
  DrawAtAcceptance(spec).IgnoreError();
}

std::vector<Proposal> ProposalsFor(const Spec& spec, double window, Chance& chance) {
  std::vector<Proposal> proposals;
  if (!AsksClients(spec.search)) return proposals;
  double moment = 0;
  for (int i = chance.Int(0, static_cast<int>(spec.trials.size()) + 1); i > 0; --i) {
    moment += std::min(window, 60.0) * chance.Uniform(0, 0.2);
    const std::string value = absl::StrCat(chance.Int(0, 20) / 25.0);
    proposals.push_back({absl::Seconds(moment),
                         chance.Happens(0.8) ? absl::StrCat("p", chance.Int(0, 9)) : "",
                         std::make_shared<const Settings>(Settings{{"train.ema", value}})});
  }
  return proposals;
}

}  // namespace traind::simulation
