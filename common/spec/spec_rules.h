// The rules of a spec: what may stand in a JobSpec, and what unset fields become.
// Per field they are options in proto/job.proto (proto/field_rules.proto); what
// concerns several fields is in CheckSpec's code. trainctl applies them for
// early, well-placed errors; traind's intake applies them because over gRPC
// nothing else does.
//
// Threads: all functions are safe. Nothing here reads files or the time.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "proto/job.pb.h"

namespace traind {

struct SpecError {
  std::string field_path;  // "train.epochs", "model.mlp.hidden[1]", "labels.team"
  std::string message;     // whole: "train.epochs '0' is below the minimum, 1"
};

// Everything that is wrong with a spec, in the order of the fields; empty: it may
// be resolved. Paths must be absolute here (or "sha256:..."). Unset fields are
// fine unless required.
std::vector<SpecError> CheckSpec(const v1::JobSpec& spec);

// Whether the Job trains nothing: task, data and model are another Job's then, and what
// its `predictions` leave unset is as that one has it.
bool UsesModelsOfAnother(const v1::JobSpec& spec);

// Fills unset fields with their defaults: the metric by task type, the model that
// ChooseModel chooses where none is named, train where no kind is, the space of a search.
// `auto` stays 0 or empty.
// REQUIRES: CheckSpec(spec) is empty; the spec names its task's type, or TypeOfSpec knows it.
v1::JobSpec ResolveSpec(v1::JobSpec spec);

// Fills the unset fields of one section and of those below it, of a oneof only where it was chosen.
void FillDefaults(google::protobuf::Message& message);

// Fields that are set in `over` replace those of `under`; repeated ones are added. Protobuf's own
// MergeFrom would add a Duration of 500ms to one of 60s, as it merges seconds and nanoseconds
// apart.
void MergeSpec(const v1::JobSpec& over, v1::JobSpec& under);

// Canonical JSON, in one line: snake_case keys in alphabetical order, every field
// of a set message printed. As protobuf's JSON has it, 64-bit numbers are strings
// ("seed": "7"), Durations are "60s", Timestamps RFC 3339; enums are their names.
// Equal specs give equal bytes.
std::string SpecToJson(const v1::JobSpec& spec);

// The inverse of SpecToJson. Errors: InvalidArgument (also for unknown keys).
absl::StatusOr<v1::JobSpec> SpecFromJson(absl::string_view json);

// Paths of the fields in which two specs differ, in the order of the fields.
std::vector<std::string> DifferingFields(const v1::JobSpec& a, const v1::JobSpec& b);

// The spec of a Job that goes on from another (spec.from): what `spec` leaves out is as
// in `source`, a resolved one, but for the budget.
v1::JobSpec GoOnFrom(v1::JobSpec source, const v1::JobSpec& spec);

// Fields in which a resolved spec differs from its source's so that the source's folds
// are of no use to it.
std::vector<std::string> FieldsAgainstSource(const v1::JobSpec& source, const v1::JobSpec& spec);

// Whether larger is better for a metric of task.metric.
bool HigherIsBetter(absl::string_view metric);

// The metric by which a Job is judged, of its resolved spec: task.metric, with its level if it has
// one.
std::string MetricOfJob(const v1::JobSpec& spec);

// The metric of a task.type where task.metric is unset.
std::string DefaultMetric(absl::string_view task_type, absl::string_view loss_kind = "");

}  // namespace traind
