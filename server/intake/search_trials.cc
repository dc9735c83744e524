#include "server/intake/search_trials.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "common/base/status_macros.h"
#include "common/search/range.h"
#include "common/spec/search_rules.h"
#include "server/search/search.h"

namespace traind {
namespace {

using google::protobuf::util::TimeUtil;

// The values of the spec itself that lie in the space.
std::shared_ptr<const Settings> OwnSettings(const Space& space, const v1::JobSpec& resolved) {
  Settings own;
  for (const Parameter& parameter : space) {
    const std::string value = SearchedValue(parameter.path, resolved);
    if (PlaceOf(parameter.range, value)) own.emplace_back(parameter.path, value);
  }
  return std::make_shared<const Settings>(std::move(own));
}

std::string MethodOf(const v1::SearchSpec& search, const Space& space) {
  const bool small = PointCount(space) <= search.trials();
  return search.method() == "auto" && small ? "grid" : search.method();
}

}  // namespace

absl::Status FillSearch(const v1::JobSpec& asked, const v1::JobSpec& resolved, Spec& to,
                        std::vector<std::string>* warnings) {
  const v1::SearchSpec& search = resolved.search();
  const std::map<std::string, std::string> sorted(search.space().begin(), search.space().end());
  to.search.space.assign(sorted.begin(), sorted.end());
  to.search.seed = resolved.data().seed();
  ASSIGN_OR_RETURN(const Space space, ParseSpace(to.search.space));
  to.search.method = MethodOf(search, space);
  to.search.wait = absl::Seconds(TimeUtil::DurationToNanoseconds(search.wait()) / 1e9);
  const Trial first = to.trials[0];
  to.trials.resize(static_cast<size_t>(search.trials()), first);
  for (size_t t = 0; t < to.trials.size(); ++t) {
    to.trials[t].name = t == 0 ? first.kind : absl::StrCat(first.kind, "-", t);
  }
  to.trials[0].settings = OwnSettings(space, resolved);
  RETURN_IF_ERROR(DrawAtAcceptance(to));
  if (!asked.has_model()) {
    warnings->push_back(
        absl::StrCat("model: ", first.kind, ", because a search varies one kind of model"));
  }
  if (asked.search().space().empty()) {
    warnings->push_back(absl::StrCat(
        "search.space: ", absl::StrJoin(to.search.space, ", ", absl::PairFormatter(": "))));
  }
  const auto tried = static_cast<int>(to.trials.size());
  if (tried < search.trials()) {
    warnings->push_back(
        absl::StrCat("search.trials: ", tried, ", because the space has no more points"));
  } else if (to.search.method == "grid" && PointCount(space) > tried) {
    warnings->push_back(absl::StrCat("search.trials: ", tried, ", but the grid has ",
                                     PointCount(space), " points; some are not tried"));
  }
  return absl::OkStatus();
}

void TakeDrawnTrials(const Spec& source, Spec& to) {
  const size_t known = std::min(source.trials.size(), to.trials.size());
  for (size_t t = 1; t < known; ++t) {
    if (source.trials[t].settings != nullptr) {
      TakeSettings(source.trials[t].settings, to.trials[t]);
      to.trials[t].proposed = source.trials[t].proposed;
    }
  }
}

}  // namespace traind
