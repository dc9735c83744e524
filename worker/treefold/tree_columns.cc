#include "worker/treefold/tree_columns.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"

namespace traind {
namespace {

class TreeColumnScorer final : public ColumnScorer {
 public:
  TreeColumnScorer(const TreeFold& fold, TreeModel& trees, int64_t rounds, Metric metric,
                   Smearing smearing)
      : fold_(fold),
        trees_(trees),
        rounds_(rounds),
        metric_(metric),
        smearing_(std::move(smearing)) {}

  std::vector<std::string> Columns() const override {
    std::vector<std::string> names;
    const TreeEncoder& encoder = *fold_.encoder;
    for (int64_t column = 0; column < encoder.columns(); ++column) {
      const size_t feature = encoder.feature(static_cast<size_t>(column));
      names.push_back(fold_.table->schema().features[feature].name);
    }
    return names;
  }

  int64_t rows() const override { return static_cast<int64_t>(fold_.rows.validation.size()); }

  absl::Status Take(absl::Span<const int32_t> rows) override {
    std::vector<int32_t> of_table;
    classes_.clear();
    values_.clear();
    for (const int32_t row : rows) {
      const auto at = static_cast<size_t>(row);
      of_table.push_back(fold_.rows.validation[at]);
      if (fold_.classes.empty()) {
        values_.push_back(fold_.values[at]);
      } else {
        classes_.push_back(fold_.classes[at]);
      }
    }
    matrix_ = fold_.encoder->Encode(*fold_.table, Split::kTrain, of_table);
    answers_.resize(rows.size() * static_cast<size_t>(fold_.outputs));
    return absl::OkStatus();
  }

  absl::StatusOr<double> Score(size_t column, absl::Span<const int32_t> order) override {
    const auto rows = static_cast<size_t>(matrix_.rows);
    float* const values = matrix_.values.data() + column * rows;
    const std::vector<float> whole(values, values + rows);
    for (size_t i = 0; i < order.size(); ++i) values[i] = whole[static_cast<size_t>(order[i])];
    const absl::Status predicted = trees_.Predict(matrix_, rounds_, absl::MakeSpan(answers_));
    std::copy(whole.begin(), whole.end(), values);
    RETURN_IF_ERROR(predicted);
    ToOwnUnit(fold_.encoder_state.transforms, smearing_, absl::MakeSpan(answers_));
    return classes_.empty() ? traind::Score(metric_, answers_, values_)
                            : traind::Score(metric_, answers_, fold_.outputs, classes_);
  }

 private:
  const TreeFold& fold_;
  TreeModel& trees_;
  const int64_t rounds_;
  const Metric metric_;
  const Smearing smearing_;
  TreeMatrix matrix_;
  std::vector<int32_t> classes_;  // of the rows; one of the two is empty
  std::vector<float> values_;
  std::vector<float> answers_;
};

}  // namespace

std::unique_ptr<ColumnScorer> NewTreeColumnScorer(const TreeFold& fold, TreeModel& trees,
                                                  int64_t rounds, Metric metric,
                                                  Smearing smearing) {
  return std::make_unique<TreeColumnScorer>(fold, trees, rounds, metric, std::move(smearing));
}

}  // namespace traind
