// Rules of a spec that span several fields, for those who read specs from users and for those who
// are given them. Rules of one field stand in proto/job.proto.
//
// Threads: all functions are safe.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/metrics/metrics.h"
#include "proto/plain/job.h"

namespace traind {

// The metric of a spec that names none: quantiles are judged by a metric of theirs.
Metric DefaultMetricOf(absl::string_view task_type, absl::string_view loss_kind);
// The task's metric, or the default one, at the level of train.loss if it has one.
// Errors: InvalidArgument names the field, task.metric.
absl::StatusOr<Metric> MetricOf(const plain::JobSpec& spec);

// The losses that fit a task.type; the first is its default. mask_classes: the number of
// data.volume.classes.
std::vector<std::string> LossesOf(absl::string_view task_type, int64_t mask_classes);
inline constexpr double kDefaultQuantile = 0.5, kDefaultTweediePower = 1.5;
inline constexpr char kNoTransform[] = "none";  // of train.target_transform
// Whether the loss is one of the logarithm of the mean, which takes no negative targets.
bool RefusesNegativeTargets(absl::string_view loss_kind);
// Whether a kernel, which always learns the squared error, may stand in for a model of this loss.
bool KernelsLearn(absl::string_view loss_kind);
// Whether a random forest learns this loss: each of its trees is one step from the mean.
bool ForestsLearn(absl::string_view loss_kind);

// The momentum that an optimizer has where the spec sets none.
double DefaultMomentum(absl::string_view optimizer_kind);
double DefaultLearningRate(absl::string_view optimizer_kind);
double DefaultWeightDecay(absl::string_view optimizer_kind);
// Whether the optimizer can look ahead along its momentum, as Nesterov's does.
bool MayBeNesterov(absl::string_view optimizer_kind, std::optional<double> momentum);

// A field of the spec, and why it contradicts others: "has more than one of ...".
struct Contradiction {
  std::string field;
  std::string why;
};
// The contradictions of train.loss: classes are weighted in one way, and only where there are some.
std::vector<Contradiction> LossContradictions(absl::string_view task_type, bool balanced,
                                              bool weights, double label_smoothing);
// That of train.target_transform: values alone have transforms, and some losses have the target's
// own scale. loss_kind: empty: that of the task.
std::optional<Contradiction> TransformContradiction(absl::string_view task_type,
                                                    absl::string_view loss_kind,
                                                    absl::string_view transform);
// That of train.schedule, whose warm-up has one length at most.
std::optional<Contradiction> WarmUpContradiction(bool steps, bool epochs, bool share);

// Rows of history and rows between them and what is predicted, of a forecast whose spec sets none.
inline constexpr int64_t kDefaultWindow = 24, kDefaultHorizon = 1;

// The field of the spec that a network needs, such as "data.image"; empty: none.
std::string NeedOfNetwork(absl::string_view network);
// The network of a spec that names none: the first one that needs what its rows have besides their
// columns. media: image, text, volume; empty: nothing.
std::string DefaultNetwork(absl::string_view media);
// Whether a kind of model is boosted trees or a kernel, which a program without LibTorch trains.
bool IsTrees(absl::string_view kind);
// How the file of a checkpoint's state ends, by the kind of model: "txt", "ubj", "safetensors".
const char* StateFileSuffix(absl::string_view kind);
// The epochs of trees that have so many rounds: an epoch of a Plan is a hundredth of the rounds,
// rounded up to whole ones.
int64_t EpochsOfRounds(int64_t rounds);
// The kind of model of a trial of a Job: the spec's own where it names no trials.
std::string KindOfTrial(const plain::JobSpec& spec, int trial);
// The spec as trial `trial` has it: its model and, where it has one, its `train` in place of the
// spec's own. The same spec where it names no trials.
// Errors: InvalidArgument: there is no such trial.
absl::StatusOr<plain::JobSpec> SpecOfTrial(plain::JobSpec spec, int trial);
// Whether a network takes a window of time steps one after the other.
bool IsSequential(absl::string_view network);

// The extents of patches are multiples of this, except that they may be one slice deep.
int64_t PatchMultiple(int64_t unet_levels);
// Whether a patch may have that extent along an axis; 0: depth.
bool IsPatchExtent(size_t axis, int64_t extent, int64_t unet_levels);

}  // namespace traind
