#include "worker/train/network_columns.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"

namespace traind {
namespace {

// The inputs of one column of the table: some cells of a row's numbers, or of its codes.
struct Inputs {
  int feature = 0;
  bool categorical = false;
  size_t begin = 0, count = 0;
};

std::vector<Inputs> InputsOf(const RowEncoder::State& state) {
  std::vector<Inputs> inputs;
  size_t at = 0;
  for (const RowEncoder::Numeric& column : state.numeric) {
    const size_t count = column.indicator ? 2 : 1;
    inputs.push_back({column.feature, false, at, count});
    at += count;
  }
  at = 0;
  for (const RowEncoder::Categorical& column : state.categorical) {
    inputs.push_back({column.feature, true, at++, 1});
  }
  return inputs;
}

template <class T>
void Append(const std::vector<T>& from, std::vector<T>& to) {
  to.insert(to.end(), from.begin(), from.end());
}

// from, to: [rows, width]
template <class T>
void TakeCells(const std::vector<T>& from, size_t width, const Inputs& inputs,
               absl::Span<const int32_t> order, std::vector<T>& to) {
  for (size_t row = 0; row < order.size(); ++row) {
    for (size_t i = inputs.begin; i < inputs.begin + inputs.count; ++i) {
      to[row * width + i] = from[static_cast<size_t>(order[row]) * width + i];
    }
  }
}

class NetworkColumnScorer final : public ColumnScorer {
 public:
  NetworkColumnScorer(const FoldData& data, Learner& learner, Metric metric, Smearing smearing)
      : data_(data),
        learner_(learner),
        metric_(metric),
        smearing_(std::move(smearing)),
        inputs_(InputsOf(data.encoder->state())) {}

  std::vector<std::string> Columns() const override {
    std::vector<std::string> names;
    for (const Inputs& inputs : inputs_) {
      names.push_back(data_.table->schema().features[static_cast<size_t>(inputs.feature)].name);
    }
    return names;
  }

  int64_t rows() const override { return static_cast<int64_t>(data_.rows.validation.size()); }

  absl::Status Take(absl::Span<const int32_t> rows) override {
    rows_ = EncodedRows();
    classes_.clear();
    values_.clear();
    const Table& table = *data_.table;
    for (const int32_t row : rows) {
      const int32_t at = data_.rows.validation[static_cast<size_t>(row)];
      const EncodedRows one = data_.encoder->Encode(Split::kTrain, at, at + 1);
      Append(one.numeric, rows_.numeric);
      Append(one.codes, rows_.codes);
      if (IsClassification(metric_)) {
        classes_.push_back(table.TargetClass(Split::kTrain)[static_cast<size_t>(at)]);
        continue;
      }
      for (size_t k = 0; k < table.schema().targets(); ++k) {
        values_.push_back(table.TargetValue(Split::kTrain, k)[static_cast<size_t>(at)]);
      }
    }
    rows_.rows = static_cast<int64_t>(rows.size());
    answers_.resize(rows.size() * static_cast<size_t>(data_.outputs));
    return absl::OkStatus();
  }

  absl::StatusOr<double> Score(size_t column, absl::Span<const int32_t> order) override {
    if (order.empty()) return ScoreOf(rows_);
    EncodedRows shuffled = rows_;
    const Inputs& inputs = inputs_[column];
    if (inputs.categorical) {
      TakeCells(rows_.codes, data_.encoder->cardinalities().size(), inputs, order, shuffled.codes);
    } else {
      TakeCells(rows_.numeric, static_cast<size_t>(data_.encoder->numeric_width()), inputs, order,
                shuffled.numeric);
    }
    return ScoreOf(shuffled);
  }

 private:
  absl::StatusOr<double> ScoreOf(const EncodedRows& rows) {
    RETURN_IF_ERROR(learner_.Predict(Weights::kBest, rows, absl::MakeSpan(answers_)));
    ToOwnUnit(data_.encoder->transforms(), smearing_, absl::MakeSpan(answers_));
    return IsClassification(metric_)
               ? traind::Score(metric_, answers_, data_.outputs, classes_)
               : traind::Score(metric_, answers_, values_, static_cast<size_t>(data_.outputs));
  }

  const FoldData& data_;
  Learner& learner_;
  const Metric metric_;
  const Smearing smearing_;
  const std::vector<Inputs> inputs_;
  EncodedRows rows_;
  std::vector<int32_t> classes_;  // of the rows; one of the two is empty
  std::vector<float> values_;     // [rows, targets]
  std::vector<float> answers_;
};

}  // namespace

bool HasPlainRows(const FoldData& data) {
  return data.media == nullptr && data.sample.history() == 0;
}

std::unique_ptr<ColumnScorer> NewNetworkColumnScorer(const FoldData& data, Learner& learner,
                                                     Metric metric, Smearing smearing) {
  return std::make_unique<NetworkColumnScorer>(data, learner, metric, std::move(smearing));
}

}  // namespace traind
