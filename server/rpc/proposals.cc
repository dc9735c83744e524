#include "server/rpc/proposals.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "common/base/suggest.h"
#include "common/search/range.h"
#include "common/spec/field_text.h"
#include "common/spec/search_rules.h"
#include "common/spec/spec_rules.h"
#include "server/rpc/trial_settings.h"

namespace traind {
namespace {

// Values are written with about five digits.
constexpr double kSame = 1e-4;

// Whether the range has this value: within its ends, and on one of its steps.
bool HasValue(const Range& range, const std::string& value) {
  const std::optional<double> place = PlaceOf(range, value);
  if (!place || range.kind == Range::kChoice || !std::isfinite(ValueCount(range))) {
    return place.has_value();
  }
  double asked = 0, nearest = 0;
  return absl::SimpleAtod(value, &asked) && absl::SimpleAtod(ValueAt(range, *place), &nearest) &&
         std::abs(asked - nearest) <= kSame * std::abs(nearest);
}

class Reader {
 public:
  Reader(const Job& job, Space space, v1::JobSpec spec)
      : job_(job), space_(std::move(space)), spec_(std::move(spec)) {}

  absl::StatusOr<Settings> Read(std::map<std::string, std::string> asked) {
    Settings settings;
    for (const Parameter& parameter : space_) {
      const std::string name = NameOf(parameter);
      const auto text = Take(parameter.path, name, asked);
      if (!text) continue;
      const std::string value = Checked(parameter, name, *text);
      if (!value.empty()) settings.emplace_back(parameter.path, value);
    }
    for (const auto& [name, value] : asked) {
      Add(Printable(name),
          absl::StrCat("is not in the space of job ", job_.id, DidYouMean(name, Names()),
                       "; it has ", absl::StrJoin(Names(), ", ")));
    }
    if (wrong_.empty()) CheckTogether();
    if (!wrong_.empty()) return absl::InvalidArgumentError(absl::StrJoin(wrong_, "\n"));
    return settings;
  }

 private:
  std::string NameOf(const Parameter& parameter) const {
    return ShortName(parameter.path, job_.spec.trials[0].kind);
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const Parameter& parameter : space_) names.push_back(NameOf(parameter));
    return names;
  }
  void Add(const std::string& name, const std::string& what) {
    wrong_.push_back(absl::StrCat("settings.", name, ": ", what));
  }

  // The value of a parameter: as asked, else as in trial 0, else none.
  std::optional<std::string> Take(const std::string& path, const std::string& name,
                                  std::map<std::string, std::string>& asked) {
    const auto by_path = asked.find(path);
    const auto found = by_path != asked.end() ? by_path : asked.find(name);
    if (found != asked.end()) {
      std::string value = std::move(found->second);
      asked.erase(found);
      return value;
    }
    for (const auto& [own, value] : *job_.spec.trials[0].settings) {
      if (own == path) return value;
    }
    return std::nullopt;
  }

  // Fills the value in, and returns it as trials have it; empty: it is wrong.
  std::string Checked(const Parameter& parameter, const std::string& name,
                      const std::string& text) {
    const absl::Status set = SetSearched(parameter.path, text, spec_);
    if (!set.ok()) {
      Add(name, std::string(set.message()));
      return "";
    }
    std::string value = SearchedValue(parameter.path, spec_);
    if (value.empty()) value = text;
    if (HasValue(parameter.range, value)) return value;
    Add(name, absl::StrCat("'", Printable(text), "' is not in ", Text(parameter.range)));
    return "";
  }

  // Values that are right alone may contradict each other.
  void CheckTogether() {
    for (const SpecError& error : CheckSpec(spec_)) {
      wrong_.push_back(absl::StrCat(error.field_path, ": ", error.message));
    }
  }

  const Job& job_;
  const Space space_;
  v1::JobSpec spec_;
  std::vector<std::string> wrong_;
};

}  // namespace

absl::StatusOr<Settings> ReadProposal(const Job& job,
                                      const std::map<std::string, std::string>& asked) {
  ASSIGN_OR_RETURN(Space space, ParseSpace(job.spec.search.space));
  ASSIGN_OR_RETURN(v1::JobSpec spec, SpecFromJson(job.spec_json));
  return Reader(job, std::move(space), std::move(spec)).Read(asked);
}

}  // namespace traind
