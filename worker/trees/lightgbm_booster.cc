#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "worker/data/random.h"
#include "worker/trees/library_boosters.h"
#include "worker/trees/lightgbm_api.h"
#include "worker/trees/smape_gradients.h"

namespace traind {
namespace {

using BoosterHandle = std::unique_ptr<void, int (*)(void*)>;

constexpr int kAllRounds = -1;
constexpr uint64_t kGreatestSeed = 0x7fffffff;

// Returns the number of scores that the library gives for a row: two classes share one.
int ScoresPerRow(int outputs) { return outputs == 2 ? 1 : outputs; }

// REQUIRES: scores are [rows, ScoresPerRow].
void ToAnswers(const std::vector<double>& scores, int outputs, float* out) {
  for (size_t i = 0; i < scores.size(); ++i) {
    if (outputs == 2) {
      out[2 * i] = static_cast<float>(1 - scores[i]);
      out[2 * i + 1] = static_cast<float>(scores[i]);
    } else {
      out[i] = static_cast<float>(scores[i]);
    }
  }
}

absl::Status PredictWith(const LightgbmApi& api, void* booster, const TreeMatrix& matrix,
                         int predict_type, int rounds, int threads, std::vector<double>& out) {
  int64_t length = 0;
  return api.Check(api.BoosterPredictForMat(
                       booster, matrix.values.data(), LightgbmApi::kFloat32,
                       static_cast<int32_t>(matrix.rows), static_cast<int32_t>(matrix.columns),
                       /*is_row_major=*/0, predict_type, /*start_iteration=*/0, rounds,
                       absl::StrCat("num_threads=", threads).c_str(), &length, out.data()),
                   "predicting");
}

// Writes the answers of the first `rounds` to `out`, [rows, outputs].
absl::Status AnswerWith(const LightgbmApi& api, void* booster, const TreeMatrix& matrix,
                        int64_t rounds, int outputs, int threads, absl::Span<float> out) {
  std::vector<double> scores(static_cast<size_t>(matrix.rows) *
                             static_cast<size_t>(ScoresPerRow(outputs)));
  RETURN_IF_ERROR(PredictWith(api, booster, matrix, LightgbmApi::kNormal, static_cast<int>(rounds),
                              threads, scores));
  ToAnswers(scores, outputs, out.data());
  return absl::OkStatus();
}

absl::StatusOr<BoosterHandle> LoadText(const LightgbmApi& api, const std::string& text) {
  void* handle = nullptr;
  int rounds = 0;
  const absl::Status loaded =
      api.Check(api.BoosterLoadModelFromString(text.c_str(), &rounds, &handle), "loading trees");
  if (!loaded.ok()) return absl::DataLossError(loaded.message());
  return BoosterHandle(handle, api.BoosterFree);
}

std::string ObjectiveText(const TreeSpec& spec, const BoosterData& data) {
  switch (spec.loss) {
    case TreeLoss::kCrossEntropy:
      return data.classes > 2 ? absl::StrCat("objective=multiclass num_class=", data.classes)
                              : "objective=binary";
    case TreeLoss::kSquared:
      return "objective=regression";
    case TreeLoss::kAbsolute:
      return "objective=regression_l1";
    case TreeLoss::kHuber:
      return absl::StrCat("objective=huber alpha=",
                          ParameterText(spec.huber_delta * data.target_scale));
    case TreeLoss::kSmape:
      return "objective=custom";
    case TreeLoss::kQuantile:
      return absl::StrCat("objective=quantile alpha=", ParameterText(spec.quantile));
    case TreeLoss::kPoisson:
      return "objective=poisson";
    case TreeLoss::kTweedie:
      return absl::StrCat("objective=tweedie tweedie_variance_power=",
                          ParameterText(spec.tweedie_power));
  }
  return "";
}

std::string ModelText(const plain::LightgbmSpec& m) {
  const auto number = [](double value) { return ParameterText(value); };
  return absl::StrCat("boosting=", m.boosting, " num_iterations=", m.num_iterations,
                      " learning_rate=", number(m.learning_rate), " num_leaves=", m.num_leaves,
                      " max_depth=", m.max_depth, " min_data_in_leaf=", m.min_data_in_leaf,
                      " min_sum_hessian_in_leaf=", number(m.min_sum_hessian_in_leaf),
                      " bagging_fraction=", number(m.bagging_fraction),
                      " bagging_freq=", m.bagging_freq,
                      " feature_fraction=", number(m.feature_fraction),
                      " feature_fraction_bynode=", number(m.feature_fraction_bynode),
                      " lambda_l1=", number(m.lambda_l1), " lambda_l2=", number(m.lambda_l2),
                      " min_gain_to_split=", number(m.min_gain_to_split)) +
         absl::StrCat(" extra_trees=", m.extra_trees ? "true" : "false", " max_bin=", m.max_bin,
                      " path_smooth=", number(m.path_smooth), " cat_l2=", number(m.cat_l2),
                      " cat_smooth=", number(m.cat_smooth),
                      " max_cat_threshold=", m.max_cat_threshold,
                      " max_cat_to_onehot=", m.max_cat_to_onehot,
                      " min_data_per_group=", m.min_data_per_group,
                      " linear_tree=", m.linear_tree ? "true" : "false",
                      " max_delta_step=", number(m.max_delta_step));
}

class LightgbmTrees final : public TreeModel {
 public:
  LightgbmTrees(const LightgbmApi& api, BoosterHandle booster, int outputs, int threads)
      : api_(api), booster_(std::move(booster)), outputs_(outputs), threads_(threads) {}

  absl::Status Predict(const TreeMatrix& matrix, int64_t rounds, absl::Span<float> out) override {
    return AnswerWith(api_, booster_.get(), matrix, rounds, outputs_, threads_, out);
  }

 private:
  const LightgbmApi& api_;
  const BoosterHandle booster_;
  const int outputs_, threads_;
};

// After a resume the trees of before are a booster of their own, and their scores are where the
// rows begin: LightGBM cannot go on with a model that it has loaded.
class LightgbmBooster final : public Booster {
 public:
  LightgbmBooster(const LightgbmApi& api, const BoosterOptions& options, BoosterData data)
      : api_(api),
        threads_(options.threads),
        outputs_(data.outputs()),
        data_(std::move(data)),
        parameters_(ParametersOf(options)),
        training_(nullptr, api.DatasetFree),
        validation_(nullptr, api.DatasetFree),
        before_(nullptr, api.BoosterFree),
        booster_(nullptr, api.BoosterFree) {
    if (options.spec.loss == TreeLoss::kSmape) {
      smape_ = std::make_unique<SmapeGradients>(data_.targets, data_.weights);
    }
  }

  absl::Status Create(const BoosterOptions& options) {
    RETURN_IF_ERROR(CreateTrainingData());
    RETURN_IF_ERROR(CreateData(data_.validation, training_.get(), validation_));
    if (options.resume_rounds > 0) RETURN_IF_ERROR(GoOnFrom(options));
    void* handle = nullptr;
    RETURN_IF_ERROR(
        api_.Check(api_.BoosterCreate(training_.get(), parameters_.c_str(), &handle), "beginning"));
    booster_.reset(handle);
    RETURN_IF_ERROR(api_.Check(api_.BoosterAddValidData(handle, validation_.get()),
                               "adding the validation rows"));
    const size_t scores =
        static_cast<size_t>(data_.validation.rows) * static_cast<size_t>(ScoresPerRow(outputs_));
    by_class_.resize(scores);
    by_row_.resize(scores);
    data_.training = TreeMatrix();  // the library has its bins
    return absl::OkStatus();
  }

  absl::StatusOr<bool> TrainRound() override {
    int finished = 0;
    if (smape_ == nullptr) {
      RETURN_IF_ERROR(api_.Check(api_.BoosterUpdateOneIter(booster_.get(), &finished), "training"));
    } else {
      RETURN_IF_ERROR(Scores(0, training_scores_));
      smape_->At(training_scores_.data());
      RETURN_IF_ERROR(
          api_.Check(api_.BoosterUpdateOneIterCustom(booster_.get(), smape_->gradients.data(),
                                                     smape_->hessians.data(), &finished),
                     "training"));
    }
    // The first round stands in any case, as the mean at least.
    if (finished == 0 || rounds_ == 0) ++rounds_;
    return finished == 0;
  }

  int64_t rounds() const override { return rounds_; }

  absl::Status AnswerValidation(std::vector<float>& out) override {
    RETURN_IF_ERROR(Scores(1, by_class_));
    out.resize(static_cast<size_t>(data_.validation.rows) * static_cast<size_t>(outputs_));
    const size_t rows = static_cast<size_t>(data_.validation.rows);
    const size_t width = static_cast<size_t>(ScoresPerRow(outputs_));
    if (width == 1) {
      ToAnswers(by_class_, outputs_, out.data());
      return absl::OkStatus();
    }
    for (size_t k = 0; k < width; ++k) {
      for (size_t i = 0; i < rows; ++i) by_row_[i * width + k] = by_class_[k * rows + i];
    }
    ToAnswers(by_row_, outputs_, out.data());
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Save(int64_t rounds) override {
    if (before_ == nullptr) return Text(booster_.get(), rounds);
    // A copy of the new trees, behind the old ones.
    ASSIGN_OR_RETURN(const std::string own, Text(booster_.get(), kAllRounds));
    if (rounds_ == rounds_before_) return Text(before_.get(), rounds);
    ASSIGN_OR_RETURN(const BoosterHandle whole, LoadText(api_, own));
    RETURN_IF_ERROR(api_.Check(api_.BoosterMerge(whole.get(), before_.get()), "joining trees"));
    return Text(whole.get(), rounds);
  }

  absl::Status Predict(const TreeMatrix& matrix, int64_t rounds, absl::Span<float> out) override {
    if (before_ == nullptr) {
      return AnswerWith(api_, booster_.get(), matrix, rounds, outputs_, threads_, out);
    }
    ASSIGN_OR_RETURN(const std::string text, Save(rounds));
    ASSIGN_OR_RETURN(const BoosterHandle whole, LoadText(api_, text));
    return AnswerWith(api_, whole.get(), matrix, kAllRounds, outputs_, threads_, out);
  }

 private:
  std::string ParametersOf(const BoosterOptions& options) const {
    // Draws after a resume are others than those before it.
    const uint64_t seed = options.resume_rounds == 0
                              ? options.seed
                              : StreamSeed(options.seed, Stream::kModel,
                                           static_cast<uint64_t>(options.resume_rounds));
    std::vector<size_t> categorical;
    for (size_t i = 0; i < static_cast<size_t>(data_.encoder->columns()); ++i) {
      if (data_.encoder->categorical(i)) categorical.push_back(i);
    }
    return absl::StrCat(
        ObjectiveText(options.spec, data_), " ", ModelText(*options.spec.lightgbm),
        // The same bits on every run: no layout is chosen by timing.
        " deterministic=true force_col_wise=true feature_pre_filter=false metric=none",
        " verbosity=-1 num_threads=", options.threads, " seed=", seed & kGreatestSeed,
        categorical.empty() ? "" : " categorical_feature=", absl::StrJoin(categorical, ","));
  }

  absl::Status CreateData(const TreeMatrix& matrix, void* reference, BoosterHandle& out) {
    void* handle = nullptr;
    RETURN_IF_ERROR(api_.Check(
        api_.DatasetCreateFromMat(matrix.values.data(), LightgbmApi::kFloat32,
                                  static_cast<int32_t>(matrix.rows),
                                  static_cast<int32_t>(matrix.columns), /*is_row_major=*/0,
                                  parameters_.c_str(), reference, &handle),
        "reading the rows"));
    out.reset(handle);
    return absl::OkStatus();
  }

  absl::Status CreateTrainingData() {
    RETURN_IF_ERROR(CreateData(data_.training, nullptr, training_));
    const int rows = static_cast<int>(data_.training.rows);
    RETURN_IF_ERROR(api_.Check(api_.DatasetSetField(training_.get(), "label", data_.targets.data(),
                                                    rows, LightgbmApi::kFloat32),
                               "setting the targets"));
    if (!data_.weights.empty()) {
      RETURN_IF_ERROR(
          api_.Check(api_.DatasetSetField(training_.get(), "weight", data_.weights.data(), rows,
                                          LightgbmApi::kFloat32),
                     "setting the weights"));
    }
    std::vector<const char*> names;
    for (const std::string& name : data_.encoder->names()) names.push_back(name.c_str());
    if (names.empty()) return absl::OkStatus();
    return api_.Check(
        api_.DatasetSetFeatureNames(training_.get(), names.data(), static_cast<int>(names.size())),
        "naming the columns");
  }

  absl::Status GoOnFrom(const BoosterOptions& options) {
    ASSIGN_OR_RETURN(before_, LoadText(api_, options.resume));
    rounds_ = rounds_before_ = options.resume_rounds;
    RETURN_IF_ERROR(BeginWith(data_.training, training_.get()));
    return BeginWith(data_.validation, validation_.get());
  }

  // The trees' sums, class by class, as the scores that rows begin with.
  absl::Status BeginWith(const TreeMatrix& matrix, void* dataset) {
    const size_t rows = static_cast<size_t>(matrix.rows);
    const size_t width = static_cast<size_t>(ScoresPerRow(outputs_));
    std::vector<double> sums(rows * width), by_class(rows * width);
    RETURN_IF_ERROR(PredictWith(api_, before_.get(), matrix, LightgbmApi::kRawScore, kAllRounds,
                                threads_, sums));
    for (size_t i = 0; i < rows; ++i) {
      for (size_t k = 0; k < width; ++k) by_class[k * rows + i] = sums[i * width + k];
    }
    return api_.Check(
        api_.DatasetSetField(dataset, "init_score", by_class.data(),
                             static_cast<int>(by_class.size()), LightgbmApi::kFloat64),
        "setting the scores to begin with");
  }

  absl::Status Scores(int data, std::vector<double>& out) {
    if (data == 0) out.resize(data_.targets.size() * static_cast<size_t>(ScoresPerRow(outputs_)));
    int64_t length = 0;
    return api_.Check(api_.BoosterGetPredict(booster_.get(), data, &length, out.data()),
                      "answering");
  }

  absl::StatusOr<std::string> Text(void* booster, int64_t rounds) const {
    constexpr int kSplits = 0;  // the kind of importance that the text tells
    std::string text;
    int64_t length = 1 << 20;
    while (static_cast<int64_t>(text.size()) < length) {
      text.resize(static_cast<size_t>(length));
      RETURN_IF_ERROR(api_.Check(
          api_.BoosterSaveModelToString(booster, /*start_iteration=*/0, static_cast<int>(rounds),
                                        kSplits, static_cast<int64_t>(text.size()), &length,
                                        text.data()),
          "saving trees"));
    }
    text.resize(static_cast<size_t>(length) - 1);  // the length counts the end of the text
    return text;
  }

  const LightgbmApi& api_;
  const int threads_, outputs_;
  BoosterData data_;
  const std::string parameters_;
  std::unique_ptr<SmapeGradients> smape_;
  BoosterHandle training_, validation_;  // Datasets, of the same type
  BoosterHandle before_;                 // null: nothing was resumed
  BoosterHandle booster_;                // ends before its data
  int64_t rounds_ = 0, rounds_before_ = 0;
  std::vector<double> by_class_, by_row_, training_scores_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Booster>> NewLightgbm(const BoosterOptions& options,
                                                     BoosterData data) {
  ASSIGN_OR_RETURN(const LightgbmApi* const api, LoadLightgbm());
  auto booster = std::make_unique<LightgbmBooster>(*api, options, std::move(data));
  const absl::Status created = booster->Create(options);
  if (absl::IsInternal(created)) return absl::InvalidArgumentError(created.message());
  RETURN_IF_ERROR(created);
  return booster;
}

absl::StatusOr<std::unique_ptr<TreeModel>> LoadLightgbmTrees(const std::string& bytes, int outputs,
                                                             int threads) {
  ASSIGN_OR_RETURN(const LightgbmApi* const api, LoadLightgbm());
  ASSIGN_OR_RETURN(BoosterHandle booster, LoadText(*api, bytes));
  return std::make_unique<LightgbmTrees>(*api, std::move(booster), outputs, threads);
}

}  // namespace traind
