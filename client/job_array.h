// Arrays of Jobs: one spec with several values of some fields, a Job for each combination. All have
// the label `array` with an id, by which list, wait and cancel find them, and `array_index`.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <utility>
#include <vector>

#include "client/arguments.h"
#include "client/environment.h"
#include "client/training_client.h"

namespace traind {

inline constexpr char kArrayLabel[] = "array";
inline constexpr char kArrayIndexLabel[] = "array_index";
// So many Jobs one array has at most.
inline constexpr size_t kMostArrayJobs = 10'000;

// Why --at-once is refused beside Jobs that the array is to wait for.
inline constexpr char kNotWithLanes[] =
    "does not go together with --at-once, by which each Job of the array waits for another one, "
    "however that ends; `trainctl wait JOB` before, or leave --at-once out";

// A field of the spec with a value for one Job.
using ArraySetting = std::pair<std::string, std::string>;

// Reads "train.learning_rate=0.1,0.01" or "data.seed=1..5" from each text, and returns the settings
// of each Job: all combinations, the values of the last field changing fastest. Commas within
// brackets or quotes belong to a value. InvalidArgument: a text is none of these, or there are too
// many Jobs.
absl::StatusOr<std::vector<std::vector<ArraySetting>>> ExpandArray(
    const std::vector<std::string>& texts);

// submit --array. Returns the exit code.
int SubmitArray(const Arguments& arguments, Environment& environment);

// The Jobs of an array, by their index. NotFound: there are none.
absl::StatusOr<std::vector<v1::Job>> JobsOfArray(TrainingClient& client, const std::string& array);

// cancel --array. Returns the exit code.
int CancelArray(const Arguments& arguments, Environment& environment);

}  // namespace traind
