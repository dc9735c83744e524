// A fold's answers for its validation rows, and the precision in which it answers.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <utility>

#include "common/base/status_macros.h"
#include "worker/train/precision_choice.h"
#include "worker/train/trainer.h"

namespace traind {

// Each rank answers for a part of the rows; the sum over the ranks has all.
absl::Status Trainer::EvaluateNow(Weights which, std::vector<float>& outputs, Smearing& smearing) {
  const std::vector<int32_t>& rows = data_.rows.validation;
  const size_t width = static_cast<size_t>(data_.outputs);
  outputs.assign(rows.size() * width, 0.0f);
  const size_t world = static_cast<size_t>(gang_->world_size());
  const size_t rank = static_cast<size_t>(gang_->rank());
  const size_t begin = rows.size() * rank / world, end = rows.size() * (rank + 1) / world;
  const auto own = absl::MakeConstSpan(rows).subspan(begin, end - begin);
  const auto answers = absl::MakeSpan(outputs).subspan(begin * width, own.size() * width);
  RETURN_IF_ERROR(learner_->Predict(which, own, answers));
  ReportRowsAtOnce();
  data_.encoder->RowsToTargets(own, answers);
  if (gang_->group() != nullptr) RETURN_IF_ERROR(gang_->group()->Sum(absl::MakeSpan(outputs)));
  const auto& transforms = data_.encoder->transforms();
  smearing = evaluator_->SmearingOf(transforms, outputs);
  ToOwnUnit(transforms, smearing, absl::MakeSpan(outputs));
  return absl::OkStatus();
}

void Trainer::AnswerIn(Precision precision) {
  learner_->AnswerIn(precision);
  answers_in_chosen_ = true;
}

absl::Status Trainer::ChooseAnswersIn(std::vector<float>& outputs, Smearing& smearing) {
  const Precision half = learner_->precision();
  if (answers_in_chosen_ || !spec_.half_answers || !UsesAmp(half)) return absl::OkStatus();
  const absl::Duration in_full = evaluate_time_, began = clock_.MonotonicNow();
  int64_t look = IsWorthHalf(in_full, orders_.stop_at - began);
  RETURN_IF_ERROR(gang_->ShareNumber(look));
  if (look == 0) return absl::OkStatus();

  learner_->AnswerIn(half);
  std::vector<float> in_half_outputs;
  Smearing in_half_smearing;
  RETURN_IF_ERROR(EvaluateNow(Weights::kLast, in_half_outputs, in_half_smearing));
  const Evaluation found = evaluator_->Evaluate(in_half_outputs);
  const absl::Duration in_half = clock_.MonotonicNow() - began;
  pause_ += in_half;
  const auto rows = static_cast<int64_t>(data_.rows.validation.size());
  int64_t chosen = found.finite &&
                   HalfWillDo(spec_.metric, {last_.metric, in_full}, {found.metric, in_half}, rows);
  RETURN_IF_ERROR(gang_->ShareNumber(chosen));
  AnswerIn(chosen != 0 ? half : Precision::kFp32);
  if (chosen == 0) return absl::OkStatus();
  if (gang_->leads()) {
    const auto text = [this](absl::string_view precision, double metric, absl::Duration time) {
      return absl::StrFormat("%s %.6g in %.3g s by %s", MetricName(spec_.metric), metric,
                             absl::ToDoubleSeconds(time), precision);
    };
    SendDecision(DecisionRule::kPrecision,
                 absl::StrCat("validation: ", text(PrecisionName(half), found.metric, in_half),
                              ", ", text("fp32", last_.metric, in_full)),
                 "predictions in fp32", absl::StrCat("predictions in ", PrecisionName(half)));
  }
  evaluate_time_ = in_half;
  last_ = found;
  outputs = std::move(in_half_outputs);
  smearing = std::move(in_half_smearing);
  return absl::OkStatus();
}

}  // namespace traind
