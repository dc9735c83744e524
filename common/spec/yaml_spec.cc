#include "common/spec/yaml_spec.h"

#include <absl/strings/match.h>

#include <cstddef>
#include <utility>

#include "common/spec/spec_rules.h"
#include "common/spec/yaml_bind.h"

namespace traind {
namespace {

// "data.train" is within "data"; "data.training" is not within "data.train".
bool IsWithin(absl::string_view path, absl::string_view outer) {
  return absl::StartsWith(path, outer) &&
         (path.size() == outer.size() || path[outer.size()] == '.' || path[outer.size()] == '[');
}

}  // namespace

std::string SpecReadResult::PlaceOf(absl::string_view field_path) const {
  std::string path(field_path);
  while (!path.empty()) {
    const auto found = places.find(path);
    if (found != places.end()) return found->second;
    const size_t cut = path.find_last_of(".[");
    path.resize(cut == std::string::npos ? 0 : cut);
  }
  const auto root = places.find("");
  return root == places.end() ? "" : root->second;
}

SpecReadResult ReadSpec(absl::string_view text, const SpecReadOptions& options) {
  SpecReadResult result;
  BindYaml(text, options, result.spec, result.problems, result.places);
  // A text that could not be read as YAML at all lacks everything; its one
  // error is enough.
  for (const SpecProblem& problem : result.problems) {
    if (problem.field_path.empty()) return result;
  }
  const size_t read_problems = result.problems.size();
  for (SpecError& error : CheckSpec(result.spec)) {
    bool known = false;
    for (size_t i = 0; i < read_problems; ++i) {
      const SpecProblem& problem = result.problems[i];
      known = known || problem.meant == error.field_path ||
              IsWithin(problem.field_path, error.field_path) ||
              IsWithin(error.field_path, problem.field_path);
    }
    if (known) continue;
    result.problems.push_back(
        {result.PlaceOf(error.field_path), error.field_path, std::move(error.message), ""});
  }
  return result;
}

}  // namespace traind
