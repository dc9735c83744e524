#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "worker/trees/library_boosters.h"
#include "worker/trees/smape_gradients.h"
#include "worker/trees/xgboost_api.h"

namespace traind {
namespace {

using Handle = std::unique_ptr<void, int (*)(void*)>;
using Parameters = std::vector<std::pair<const char*, std::string>>;

constexpr uint64_t kGreatestSeed = 0x7fffffff;

// An array as the library takes it: where it lies, and its form.
std::string ArrayText(const void* data, absl::string_view shape, absl::string_view strides) {
  return absl::StrCat("{\"data\":[", reinterpret_cast<uintptr_t>(data), ",true],\"shape\":[", shape,
                      "],\"strides\":[", strides, "],\"typestr\":\"<f4\",\"version\":3}");
}

std::string ArrayText(const std::vector<float>& values) {
  return ArrayText(values.data(), absl::StrCat(values.size()), "4");
}

absl::StatusOr<Handle> NewMatrix(const XgboostApi& api, const TreeMatrix& matrix, int threads) {
  const std::string data =
      ArrayText(matrix.values.data(), absl::StrCat(matrix.rows, ",", matrix.columns),
                absl::StrCat("4,", 4 * matrix.rows));
  void* handle = nullptr;
  RETURN_IF_ERROR(api.Check(
      api.MatrixCreateFromDense(data.c_str(),
                                absl::StrCat("{\"missing\":NaN,\"nthread\":", threads, "}").c_str(),
                                &handle),
      "reading the rows"));
  return Handle(handle, api.MatrixFree);
}

// rounds: 0: all. out: what the library holds until its next call, as many as `size`.
absl::StatusOr<const float*> PredictWith(const XgboostApi& api, void* booster, void* matrix,
                                         int64_t rounds, uint64_t size) {
  const std::string config = absl::StrCat(
      "{\"type\":0,\"training\":false,\"iteration_begin\":0,\"iteration_end\":", rounds,
      ",\"strict_shape\":true}");
  const uint64_t* shape = nullptr;
  uint64_t dimensions = 0;
  const float* out = nullptr;
  RETURN_IF_ERROR(
      api.Check(api.BoosterPredict(booster, matrix, config.c_str(), &shape, &dimensions, &out),
                "predicting"));
  uint64_t found = 1;
  for (uint64_t i = 0; i < dimensions; ++i) found *= shape[i];
  if (found != size) {
    return absl::InternalError(
        absl::StrCat("XGBoost has answered with ", found, " numbers where ", size, " are wanted"));
  }
  return out;
}

uint64_t AnswersOf(int64_t rows, int outputs) {
  return static_cast<uint64_t>(rows) * static_cast<uint64_t>(outputs == 2 ? 1 : outputs);
}

// With two classes the library gives the second one's probability.
void ToAnswers(const float* from, uint64_t size, int outputs, float* out) {
  for (uint64_t i = 0; i < size; ++i) {
    if (outputs == 2) {
      out[2 * i] = 1 - from[i];
      out[2 * i + 1] = from[i];
    } else {
      out[i] = from[i];
    }
  }
}

absl::Status PredictRows(const XgboostApi& api, void* booster, const TreeMatrix& matrix,
                         int64_t rounds, int outputs, int threads, float* out) {
  ASSIGN_OR_RETURN(const Handle rows, NewMatrix(api, matrix, threads));
  const uint64_t size = AnswersOf(matrix.rows, outputs);
  ASSIGN_OR_RETURN(const float* const answers, PredictWith(api, booster, rows.get(), rounds, size));
  ToAnswers(answers, size, outputs, out);
  return absl::OkStatus();
}

absl::Status LoadInto(const XgboostApi& api, const std::string& bytes, void* booster) {
  const absl::Status loaded =
      api.Check(api.BoosterLoadModel(booster, bytes.data(), bytes.size()), "loading trees");
  return loaded.ok() ? loaded : absl::DataLossError(loaded.message());
}

class XgboostTrees final : public TreeModel {
 public:
  XgboostTrees(const XgboostApi& api, Handle booster, int outputs, int threads)
      : api_(api), booster_(std::move(booster)), outputs_(outputs), threads_(threads) {}

  absl::Status Predict(const TreeMatrix& matrix, int64_t rounds, absl::Span<float> out) override {
    return PredictRows(api_, booster_.get(), matrix, rounds, outputs_, threads_, out.data());
  }

 private:
  const XgboostApi& api_;
  const Handle booster_;
  const int outputs_, threads_;
};

// The library would begin with one Newton step from 0, which for pseudo-Huber leads far away.
void BeginWithMedian(const BoosterData& data, bool resumed, Parameters& parameters) {
  if (resumed) return;  // the trees have it
  std::vector<float> sorted = data.targets;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  parameters.emplace_back("base_score", ParameterText(*middle));
}

void AddObjective(const TreeSpec& spec, const BoosterData& data, bool resumed,
                  Parameters& parameters) {
  switch (spec.loss) {
    case TreeLoss::kCrossEntropy:
      parameters.emplace_back("objective", data.classes > 2 ? "multi:softprob" : "binary:logistic");
      if (data.classes > 2) parameters.emplace_back("num_class", absl::StrCat(data.classes));
      return;
    case TreeLoss::kSquared:
      return parameters.emplace_back("objective", "reg:squarederror"), void();
    case TreeLoss::kAbsolute:
      return parameters.emplace_back("objective", "reg:absoluteerror"), void();
    case TreeLoss::kHuber:
      parameters.emplace_back("objective", "reg:pseudohubererror");
      parameters.emplace_back("huber_slope", ParameterText(spec.huber_delta * data.target_scale));
      return BeginWithMedian(data, resumed, parameters);
    case TreeLoss::kSmape:  // the gradients are our own
      parameters.emplace_back("objective", "reg:squarederror");
      return BeginWithMedian(data, resumed, parameters);
    case TreeLoss::kQuantile:
      parameters.emplace_back("objective", "reg:quantileerror");
      parameters.emplace_back("quantile_alpha", ParameterText(spec.quantile));
      return;
    case TreeLoss::kPoisson:
      return parameters.emplace_back("objective", "count:poisson"), void();
    case TreeLoss::kTweedie:
      parameters.emplace_back("objective", "reg:tweedie");
      parameters.emplace_back("tweedie_variance_power", ParameterText(spec.tweedie_power));
      return;
  }
}

void AddModel(const plain::XgboostSpec& m, TreeLoss loss, Parameters& parameters) {
  const auto add = [&](const char* name, const auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, double>) {
      parameters.emplace_back(name, ParameterText(value));
    } else {
      parameters.emplace_back(name, absl::StrCat(value));
    }
  };
  add("booster", m.booster);
  add("learning_rate", m.learning_rate);
  add("max_depth", m.max_depth);
  add("max_leaves", m.max_leaves);
  add("grow_policy", m.grow_policy);
  add("min_child_weight", m.min_child_weight);
  add("subsample", m.subsample);
  add("colsample_bytree", m.colsample_bytree);
  add("colsample_bylevel", m.colsample_bylevel);
  add("colsample_bynode", m.colsample_bynode);
  add("gamma", m.gamma);
  add("alpha", m.alpha);
  add("lambda", m.lambda);
  add("max_bin", m.max_bin);
  add("max_cat_to_onehot", m.max_cat_to_onehot);
  add("max_cat_threshold", m.max_cat_threshold);
  add("num_parallel_tree", m.num_parallel_tree);
  // For counts the library has a limit of its own, without which steps from the mean are too long.
  if (loss != TreeLoss::kPoisson || m.max_delta_step > 0) add("max_delta_step", m.max_delta_step);
}

class XgboostBooster final : public Booster {
 public:
  XgboostBooster(const XgboostApi& api, const BoosterOptions& options, BoosterData data)
      : api_(api),
        threads_(options.threads),
        outputs_(data.outputs()),
        data_(std::move(data)),
        training_(nullptr, api.MatrixFree),
        validation_(nullptr, api.MatrixFree),
        booster_(nullptr, api.BoosterFree) {
    if (options.spec.loss == TreeLoss::kSmape) {
      smape_ = std::make_unique<SmapeGradients>(data_.targets, data_.weights);
    }
  }

  absl::Status Create(const BoosterOptions& options) {
    ASSIGN_OR_RETURN(training_, NewMatrix(api_, data_.training, threads_));
    ASSIGN_OR_RETURN(validation_, NewMatrix(api_, data_.validation, threads_));
    RETURN_IF_ERROR(DescribeColumns(training_.get()));
    RETURN_IF_ERROR(DescribeColumns(validation_.get()));
    RETURN_IF_ERROR(SetInfo(training_.get(), "label", data_.targets));
    if (!data_.weights.empty()) {
      RETURN_IF_ERROR(SetInfo(training_.get(), "weight", data_.weights));
    }
    if (options.spec.loss == TreeLoss::kQuantile) {
      // It asks each matrix how many targets there are; what they are has no part in the training.
      const std::vector<float> unknown(static_cast<size_t>(data_.validation.rows));
      RETURN_IF_ERROR(SetInfo(validation_.get(), "label", unknown));
    }
    const void* const matrices[] = {training_.get(), validation_.get()};
    void* handle = nullptr;
    RETURN_IF_ERROR(api_.Check(api_.BoosterCreate(const_cast<void* const*>(matrices), 2, &handle),
                               "beginning"));
    booster_.reset(handle);
    if (options.resume_rounds > 0) RETURN_IF_ERROR(LoadInto(api_, options.resume, handle));
    rounds_ = options.resume_rounds;
    for (const auto& [name, value] : ParametersOf(options)) {
      RETURN_IF_ERROR(
          api_.Check(api_.BoosterSetParam(handle, name, value.c_str()), "setting parameters"));
    }
    data_.training = TreeMatrix();  // the library has a copy
    return absl::OkStatus();
  }

  absl::StatusOr<bool> TrainRound() override {
    const int round = static_cast<int>(rounds_);
    if (smape_ == nullptr) {
      RETURN_IF_ERROR(api_.Check(api_.BoosterUpdateOneIter(booster_.get(), round, training_.get()),
                                 "training"));
    } else {
      ASSIGN_OR_RETURN(const float* const predictions,
                       PredictWith(api_, booster_.get(), training_.get(), 0,
                                   AnswersOf(static_cast<int64_t>(data_.targets.size()), 1)));
      smape_->At(predictions);
      RETURN_IF_ERROR(api_.Check(api_.BoosterTrainOneIter(booster_.get(), training_.get(), round,
                                                          ArrayText(smape_->gradients).c_str(),
                                                          ArrayText(smape_->hessians).c_str()),
                                 "training"));
    }
    ++rounds_;
    return true;
  }

  int64_t rounds() const override { return rounds_; }

  absl::Status AnswerValidation(std::vector<float>& out) override {
    const uint64_t size = AnswersOf(data_.validation.rows, outputs_);
    ASSIGN_OR_RETURN(const float* const answers,
                     PredictWith(api_, booster_.get(), validation_.get(), 0, size));
    out.resize(static_cast<size_t>(data_.validation.rows) * static_cast<size_t>(outputs_));
    ToAnswers(answers, size, outputs_, out.data());
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Save(int64_t rounds) override {
    if (rounds >= rounds_) return Bytes(booster_.get());
    void* handle = nullptr;
    RETURN_IF_ERROR(
        api_.Check(api_.BoosterSlice(booster_.get(), 0, static_cast<int>(rounds), 1, &handle),
                   "cutting trees"));
    const Handle part(handle, api_.BoosterFree);
    return Bytes(part.get());
  }

  absl::Status Predict(const TreeMatrix& matrix, int64_t rounds, absl::Span<float> out) override {
    return PredictRows(api_, booster_.get(), matrix, rounds, outputs_, threads_, out.data());
  }

 private:
  Parameters ParametersOf(const BoosterOptions& options) const {
    Parameters parameters;
    AddObjective(options.spec, data_, options.resume_rounds > 0, parameters);
    AddModel(*options.spec.xgboost, options.spec.loss, parameters);
    parameters.emplace_back("tree_method", "hist");
    parameters.emplace_back("device", "cpu");
    parameters.emplace_back("nthread", absl::StrCat(threads_));
    parameters.emplace_back("seed", absl::StrCat(options.seed & kGreatestSeed));
    // Draws follow from the round, so that a resumed booster goes on with the same ones.
    parameters.emplace_back("seed_per_iteration", "1");
    parameters.emplace_back("disable_default_eval_metric", "1");
    parameters.emplace_back("verbosity", "1");
    return parameters;
  }

  absl::Status DescribeColumns(void* matrix) const {
    std::vector<const char*> kinds, names;
    for (size_t i = 0; i < static_cast<size_t>(data_.encoder->columns()); ++i) {
      kinds.push_back(data_.encoder->categorical(i) ? "c" : "q");
    }
    for (const std::string& name : data_.encoder->names()) names.push_back(name.c_str());
    if (!names.empty()) {
      RETURN_IF_ERROR(api_.Check(
          api_.MatrixSetStrFeatureInfo(matrix, "feature_name", names.data(), names.size()),
          "naming the columns"));
    }
    return api_.Check(
        api_.MatrixSetStrFeatureInfo(matrix, "feature_type", kinds.data(), kinds.size()),
        "setting the kinds of columns");
  }

  absl::Status SetInfo(void* matrix, const char* field, const std::vector<float>& values) const {
    return api_.Check(api_.MatrixSetInfo(matrix, field, ArrayText(values).c_str()),
                      absl::StrCat("setting the ", field));
  }

  absl::StatusOr<std::string> Bytes(void* booster) const {
    uint64_t length = 0;
    const char* bytes = nullptr;
    RETURN_IF_ERROR(api_.Check(
        api_.BoosterSaveModel(booster, "{\"format\":\"ubj\"}", &length, &bytes), "saving trees"));
    return std::string(bytes, length);
  }

  const XgboostApi& api_;
  const int threads_, outputs_;
  BoosterData data_;
  std::unique_ptr<SmapeGradients> smape_;
  Handle training_, validation_, booster_;  // the booster ends before its data
  int64_t rounds_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Booster>> NewXgboost(const BoosterOptions& options,
                                                    BoosterData data) {
  ASSIGN_OR_RETURN(const XgboostApi* const api, LoadXgboost());
  auto booster = std::make_unique<XgboostBooster>(*api, options, std::move(data));
  const absl::Status created = booster->Create(options);
  if (absl::IsInternal(created)) return absl::InvalidArgumentError(created.message());
  RETURN_IF_ERROR(created);
  return booster;
}

absl::StatusOr<std::unique_ptr<TreeModel>> LoadXgboostTrees(const std::string& bytes, int outputs,
                                                            int threads) {
  ASSIGN_OR_RETURN(const XgboostApi* const api, LoadXgboost());
  void* handle = nullptr;
  RETURN_IF_ERROR(api->Check(api->BoosterCreate(nullptr, 0, &handle), "beginning"));
  Handle booster(handle, api->BoosterFree);
  RETURN_IF_ERROR(LoadInto(*api, bytes, handle));
  RETURN_IF_ERROR(api->Check(api->BoosterSetParam(handle, "nthread", absl::StrCat(threads).c_str()),
                             "setting parameters"));
  return std::make_unique<XgboostTrees>(*api, std::move(booster), outputs, threads);
}

}  // namespace traind
