// A spec as people write it, YAML (or JSON, which is YAML), to a JobSpec: strict,
// with every mistake reported at its place.
#pragma once

#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <map>
#include <string>
#include <vector>

#include "proto/job.pb.h"

namespace traind {

// A value given outside the file, as with `--set train.epochs=3`. It replaces
// what the file says there. The value is text as YAML would have it; one that
// begins with [ { " or ' is read as YAML. Empty or null: unset.
struct SpecOverride {
  std::string flag;  // for errors: "--set train.epochs", "--budget"
  std::string path;  // "train.epochs"; what follows "labels." is one key
  std::string value;
};

struct SpecReadOptions {
  std::string file = "spec";  // for errors
  // Absolute; fields that name files are relative to it. Empty: such fields stay
  // as they are (and CheckSpec will refuse relative ones).
  std::string base_dir;
  absl::Time now;  // for deadlines like +2h
  std::string root = "the spec";  // how errors call the whole text
  int most_values = 100000;       // an aliased one counts each time it is used
  std::vector<SpecOverride> overrides;
};

struct SpecProblem {
  std::string place;       // "job.yaml:12:5", or the flag of an override
  std::string field_path;  // "train.lerning_rate"
  std::string message;
  std::string meant;  // of an unknown key: the path it probably stands for
  // "job.yaml:12:5: error: unknown key 'lerning_rate' in train; did you mean ...?"
  std::string ToString() const { return place + ": error: " + message; }
};

struct SpecReadResult {
  // Meaningful only where there are no problems; then CheckSpec(spec) is empty.
  v1::JobSpec spec;
  std::vector<SpecProblem> problems;  // file order, then overrides
  // field path -> place, of everything that was set; "" is the whole spec.
  std::map<std::string, std::string> places;
  // Returns the place of a field, or of the nearest section around it that was written down.
  std::string PlaceOf(absl::string_view field_path) const;
};

// Limits: 1 MiB, depth 32, one document, UTF-8. Refused besides what CheckSpec
// refuses: unknown and duplicate keys, wrong types, quoted numbers, booleans
// other than true and false, numbers in other bases, durations without unit,
// two members of a oneof, unknown tags, recursive aliases. Anchors, aliases and
// `<<` merges work. A null or empty value is an unset field.
SpecReadResult ReadSpec(absl::string_view text, const SpecReadOptions& options);

}  // namespace traind
