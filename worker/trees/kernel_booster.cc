#include "worker/trees/kernel_booster.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <absl/types/span.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "common/job_rules/kernel_rules.h"
#include "worker/checkpoint/safetensors.h"
#include "worker/data/random.h"
#include "worker/kernel/kernel_ridge.h"

namespace traind {
namespace {

constexpr float kMostDeviations = 4;
constexpr int kMostCategories = 256;

// How a column of a TreeMatrix becomes columns of the kernel's rows.
struct KernelColumns {
  std::vector<float> mean, scale;   // of numbers; scale 0: the column is not used
  std::vector<int32_t> categories;  // 0: a number

  int64_t width() const {
    int64_t sum = 0;
    for (size_t i = 0; i < mean.size(); ++i) {
      sum += categories[i] > 0 ? categories[i] : scale[i] > 0;
    }
    return sum;
  }
};

KernelColumns FitColumns(const TreeColumns& encoder, const TreeMatrix& matrix) {
  KernelColumns columns;
  const auto rows = static_cast<size_t>(matrix.rows);
  for (size_t c = 0; c < static_cast<size_t>(matrix.columns); ++c) {
    const absl::Span<const float> values(matrix.values.data() + c * rows, rows);
    double sum = 0, squares = 0, count = 0, most = -1;
    for (const float value : values) {
      if (std::isnan(value)) continue;
      sum += value;
      ++count;
      most = std::max<double>(most, value);
    }
    const double mean = count > 0 ? sum / count : 0;
    for (const float value : values) {
      if (!std::isnan(value)) squares += (value - mean) * (value - mean);
    }
    const bool varies = squares > 0;
    int32_t categories = 0;
    if (encoder.categorical(c)) {
      categories = varies && most < kMostCategories ? static_cast<int32_t>(most) + 1 : 0;
    }
    columns.categories.push_back(categories);
    const bool number = varies && !encoder.categorical(c);
    // A rare word would be many deviations away from its mean, so words stand as categories do.
    const bool word = number && encoder.word(c);
    columns.mean.push_back(number && !word ? static_cast<float>(mean) : 0);
    columns.scale.push_back(word ? 1 : number ? static_cast<float>(std::sqrt(squares / count)) : 0);
  }
  return columns;
}

KernelRows Encode(const KernelColumns& columns, const TreeMatrix& matrix) {
  KernelRows rows;
  rows.rows = matrix.rows;
  rows.width = columns.width();
  const auto count = static_cast<size_t>(matrix.rows), width = static_cast<size_t>(rows.width);
  rows.values.assign(count * width, 0);
  size_t at = 0;
  for (size_t c = 0; c < columns.mean.size(); ++c) {
    const float* const from = matrix.values.data() + c * count;
    const int32_t categories = columns.categories[c];
    const float mean = columns.mean[c], scale = columns.scale[c];
    if (categories == 0 && !(scale > 0)) continue;
    for (size_t i = 0; i < count; ++i) {
      if (std::isnan(from[i])) continue;
      float* const to = rows.values.data() + i * width + at;
      if (categories == 0) {
        *to = std::clamp((from[i] - mean) / scale, -kMostDeviations, kMostDeviations);
      } else if (from[i] >= 0 && from[i] < static_cast<float>(categories)) {
        to[static_cast<size_t>(from[i])] = 1;
      }
    }
    at += categories > 0 ? static_cast<size_t>(categories) : 1;
  }
  return rows;
}

// All that predicting needs.
struct Kernel {
  KernelColumns columns;
  KernelTask task;  // its rows, outputs, classes and mean
  std::vector<KernelFit> fits;

  // rounds: 1 and more, the fit of that round.
  absl::Status Predict(const TreeMatrix& matrix, int64_t rounds, absl::Span<float> out) const {
    if (rounds < 1 || rounds > static_cast<int64_t>(fits.size()) ||
        matrix.columns != static_cast<int64_t>(columns.mean.size())) {
      return absl::InternalError(absl::StrCat("a kernel of ", fits.size(), " rounds and ",
                                              columns.mean.size(), " columns is asked for round ",
                                              rounds, " and ", matrix.columns, " columns"));
    }
    PredictKernel(task, fits[static_cast<size_t>(rounds) - 1], Encode(columns, matrix), out);
    return absl::OkStatus();
  }
};

// ---- The file ------------------------------------------------------------------

template <class T>
NamedTensorView Named(const char* name, DType dtype, std::vector<int64_t> shape,
                      const std::vector<T>& values) {
  const absl::string_view data(reinterpret_cast<const char*>(values.data()),
                               values.size() * sizeof(T));
  return {name, {dtype, std::move(shape), data}};
}

std::string ToBytes(const Kernel& kernel, int64_t rounds) {
  const KernelTask& task = kernel.task;
  const int64_t n = task.rows.rows, outputs = task.outputs;
  const auto columns = static_cast<int64_t>(kernel.columns.mean.size());
  std::vector<double> coefficients, gamma, temperature, class_weights = task.class_weights;
  if (class_weights.empty()) class_weights.assign(task.mean.size(), 1);
  for (int64_t i = 0; i < rounds; ++i) {
    const KernelFit& fit = kernel.fits[static_cast<size_t>(i)];
    coefficients.insert(coefficients.end(), fit.coefficients.begin(), fit.coefficients.end());
    gamma.push_back(fit.gamma);
    temperature.push_back(task.classes ? fit.temperature : 0);
  }
  // Tensors with the widest numbers come first, so that all are aligned.
  return EncodeSafetensors(
      {Named("coefficients", DType::kF64, {rounds, n, outputs}, coefficients),
       Named("gamma", DType::kF64, {rounds}, gamma),
       Named("temperature", DType::kF64, {rounds}, temperature),
       Named("target.mean", DType::kF64, {outputs}, task.mean),
       Named("class.weights", DType::kF64, {outputs}, class_weights),
       Named("rows", DType::kF32, {n, task.rows.width}, task.rows.values),
       Named("columns.mean", DType::kF32, {columns}, kernel.columns.mean),
       Named("columns.scale", DType::kF32, {columns}, kernel.columns.scale),
       Named("columns.categories", DType::kI32, {columns}, kernel.columns.categories)},
      {{"format", "1"}});
}

absl::Status Damaged(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("the file of a kernel is damaged: ", what));
}

// shape: -1 stands for any extent; gets the tensor's own.
template <class T>
absl::StatusOr<std::vector<T>> Take(const SafetensorsFile& file, const std::string& name,
                                    DType dtype, std::vector<int64_t>& shape) {
  const auto it = file.tensors.find(name);
  if (it == file.tensors.end()) return Damaged(absl::StrCat("it has no ", name));
  const TensorView& tensor = it->second;
  const bool fits =
      tensor.dtype == dtype &&
      std::equal(shape.begin(), shape.end(), tensor.shape.begin(), tensor.shape.end(),
                 [](int64_t wanted, int64_t extent) { return wanted < 0 || wanted == extent; });
  if (!fits) return Damaged(absl::StrCat("the type or shape of ", name, " does not fit"));
  shape = tensor.shape;
  std::vector<T> values(tensor.data.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  return values;
}

absl::StatusOr<Kernel> FromBytes(absl::string_view bytes, int outputs) {
  ASSIGN_OR_RETURN(const SafetensorsFile file, ParseSafetensors(bytes));
  Kernel kernel;
  KernelTask& task = kernel.task;
  task.outputs = outputs;
  std::vector<int64_t> shape = {-1, -1, outputs};
  ASSIGN_OR_RETURN(const std::vector<double> coefficients,
                   Take<double>(file, "coefficients", DType::kF64, shape));
  const int64_t rounds = shape[0], n = shape[1];
  shape = {rounds};
  ASSIGN_OR_RETURN(const std::vector<double> gamma,
                   Take<double>(file, "gamma", DType::kF64, shape));
  ASSIGN_OR_RETURN(const std::vector<double> temperature,
                   Take<double>(file, "temperature", DType::kF64, shape));
  shape = {outputs};
  ASSIGN_OR_RETURN(task.mean, Take<double>(file, "target.mean", DType::kF64, shape));
  ASSIGN_OR_RETURN(task.class_weights, Take<double>(file, "class.weights", DType::kF64, shape));
  shape = {n, -1};
  ASSIGN_OR_RETURN(task.rows.values, Take<float>(file, "rows", DType::kF32, shape));
  task.rows.rows = n;
  task.rows.width = shape[1];
  KernelColumns& columns = kernel.columns;
  shape = {-1};
  ASSIGN_OR_RETURN(columns.mean, Take<float>(file, "columns.mean", DType::kF32, shape));
  ASSIGN_OR_RETURN(columns.scale, Take<float>(file, "columns.scale", DType::kF32, shape));
  ASSIGN_OR_RETURN(columns.categories,
                   Take<int32_t>(file, "columns.categories", DType::kI32, shape));
  for (const int32_t categories : columns.categories) {
    if (categories < 0 || categories > kMostCategories) return Damaged("it has such categories");
  }
  if (columns.width() != task.rows.width) return Damaged("its columns do not fit its rows");
  for (size_t i = 0; i < static_cast<size_t>(rounds); ++i) {
    task.classes = temperature[i] > 0;
    const auto size = static_cast<std::ptrdiff_t>(n * outputs);
    const auto begin = coefficients.begin() + static_cast<std::ptrdiff_t>(i) * size;
    kernel.fits.push_back({gamma[i], temperature[i], {begin, begin + size}});
  }
  return kernel;
}

// ---- Training ------------------------------------------------------------------

// The rows to learn from: all, or so many drawn ones, ascending.
std::vector<size_t> Drawn(size_t rows, size_t most, uint64_t seed) {
  std::vector<size_t> places(rows);
  std::iota(places.begin(), places.end(), size_t{0});
  if (rows <= most) return places;
  Random random(seed);
  for (size_t i = 0; i < most; ++i) std::swap(places[i], places[i + random.Below(rows - i)]);
  places.resize(most);
  std::sort(places.begin(), places.end());
  return places;
}

TreeMatrix RowsOf(const TreeMatrix& matrix, const std::vector<size_t>& places) {
  TreeMatrix part;
  part.rows = static_cast<int64_t>(places.size());
  part.columns = matrix.columns;
  const auto rows = static_cast<size_t>(matrix.rows);
  for (size_t c = 0; c < static_cast<size_t>(matrix.columns); ++c) {
    for (const size_t place : places) part.values.push_back(matrix.values[c * rows + place]);
  }
  return part;
}

void TakeTargets(const BoosterData& data, const std::vector<size_t>& places, KernelTask& task) {
  constexpr double kLeastWeight = 1e-6;
  task.outputs = data.outputs();
  task.classes = data.classes > 0;
  const auto outputs = static_cast<size_t>(task.outputs);
  task.targets.assign(places.size() * outputs, 0);
  task.mean.assign(outputs, 0);
  if (task.classes && !data.weights.empty()) task.class_weights.assign(outputs, 1);
  for (size_t i = 0; i < places.size(); ++i) {
    const float target = data.targets[places[i]];
    const size_t own = task.classes ? static_cast<size_t>(target) : 0;
    task.targets[i * outputs + own] = task.classes ? 1 : target;
    task.mean[own] += task.targets[i * outputs + own] / static_cast<double>(places.size());
    // Rows have the weights of their classes.
    if (!task.class_weights.empty()) {
      task.class_weights[own] = std::max<double>(kLeastWeight, data.weights[places[i]]);
    }
  }
}

class KernelBooster final : public Booster {
 public:
  KernelBooster(Kernel kernel, std::vector<KernelSetting> settings, TreeMatrix validation)
      : kernel_(std::move(kernel)),
        settings_(std::move(settings)),
        validation_(std::move(validation)),
        distance_(MedianSquaredDistance(kernel_.task.rows)) {}

  absl::StatusOr<bool> TrainRound() override {
    if (kernel_.fits.size() >= settings_.size()) return false;
    const KernelSetting& setting = settings_[kernel_.fits.size()];
    ASSIGN_OR_RETURN(KernelFit fit,
                     FitKernel(kernel_.task, setting.gamma / distance_, setting.alpha));
    kernel_.fits.push_back(std::move(fit));
    return true;
  }
  int64_t rounds() const override { return static_cast<int64_t>(kernel_.fits.size()); }
  absl::Status AnswerValidation(std::vector<float>& out) override {
    out.resize(static_cast<size_t>(validation_.rows) * static_cast<size_t>(kernel_.task.outputs));
    return kernel_.Predict(validation_, rounds(), absl::MakeSpan(out));
  }
  absl::StatusOr<std::string> Save(int64_t rounds) override { return ToBytes(kernel_, rounds); }
  absl::Status Predict(const TreeMatrix& matrix, int64_t rounds, absl::Span<float> out) override {
    return kernel_.Predict(matrix, rounds, out);
  }

 private:
  Kernel kernel_;
  const std::vector<KernelSetting> settings_;
  const TreeMatrix validation_;
  const double distance_;
};

class KernelModel final : public TreeModel {
 public:
  explicit KernelModel(Kernel kernel) : kernel_(std::move(kernel)) {}
  absl::Status Predict(const TreeMatrix& matrix, int64_t rounds, absl::Span<float> out) override {
    return kernel_.Predict(matrix, rounds, out);
  }

 private:
  const Kernel kernel_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Booster>> NewKernel(const BoosterOptions& options,
                                                   BoosterData data) {
  const plain::KernelSpec& spec = *options.spec.kernel;
  const std::vector<size_t> places =
      Drawn(data.targets.size(), static_cast<size_t>(spec.max_rows), options.seed);
  const TreeMatrix training = RowsOf(data.training, places);
  Kernel kernel;
  kernel.columns = FitColumns(*data.encoder, training);
  if (kernel.columns.width() == 0) {
    return absl::InvalidArgumentError(
        "model.kernel: no column varies, of numbers or of at most 256 categories");
  }
  kernel.task.rows = Encode(kernel.columns, training);
  TakeTargets(data, places, kernel.task);
  if (!options.resume.empty()) {
    ASSIGN_OR_RETURN(Kernel saved, FromBytes(options.resume, data.outputs()));
    if (saved.task.rows.rows != kernel.task.rows.rows) return Damaged("it is of other rows");
    kernel.fits = std::move(saved.fits);
  }
  return std::make_unique<KernelBooster>(std::move(kernel), KernelSettings(spec.alpha, spec.gamma),
                                         std::move(data.validation));
}

absl::StatusOr<std::unique_ptr<TreeModel>> LoadKernel(const std::string& bytes, int outputs) {
  ASSIGN_OR_RETURN(Kernel kernel, FromBytes(bytes, outputs));
  return std::make_unique<KernelModel>(std::move(kernel));
}

}  // namespace traind
