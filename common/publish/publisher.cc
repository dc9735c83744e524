#include "common/publish/publisher.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <map>
#include <memory>
#include <numeric>
#include <set>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "common/data/table/table.h"
#include "common/metrics/metrics.h"
#include "common/publish/ended_job.h"
#include "common/publish/ensemble.h"
#include "common/publish/floor_files.h"
#include "common/publish/fold_answers.h"
#include "common/publish/greedy_selection.h"
#include "common/publish/joined_rows.h"
#include "common/publish/mask_prediction.h"
#include "common/publish/prediction_files.h"
#include "common/publish/prediction_form.h"
#include "common/publish/prediction_manifest.h"
#include "common/publish/publish_lock.h"
#include "common/publish/quantiles.h"
#include "common/publish/scoring_data.h"
#include "common/publish/second_layer.h"
#include "common/publish/standing_rules.h"
#include "common/publish/tuned.h"

namespace traind {
namespace {

const std::vector<TrialPower> kNoPowers;

struct LeftOut {
  std::vector<int> folds;  // ascending
  int complete = 0;        // complete ones among the folds that score below the floor themselves
  // The scores of these folds together, and of the floor, on the same rows.
  std::optional<double> score, floor_score;
};

// Returns the folds that score below the floor on their own rows. Only incomplete folds, and all
// folds of a forward split, may be left out for that alone.
std::vector<int> PoorFolds(const ScoringData& scoring, const std::optional<StandingFloor>& floor,
                           const Answers& answers) {
  std::vector<int> poor;
  size_t rows = 0, poor_rows = 0;
  for (const auto& [fold, answer] : answers.folds) {
    Covered by_floor, joined;
    AddFloorRows(scoring, *floor, fold, by_floor);
    rows += by_floor.rows.size();
    if (answer.complete && !scoring.forward) continue;
    AddJoinedRows(scoring, fold, {answer, floor, answers.floor, kNoPowers}, joined);
    const double floor_score = scoring.OnRows(by_floor.values, by_floor.rows);
    if (!Better(scoring.metric, floor_score, scoring.OnRows(joined.values, joined.rows))) continue;
    poor.push_back(fold);
    poor_rows += by_floor.rows.size();
  }
  // Where most folds lose, the few that win on their own rows were lucky with them: then all are
  // compared together, on the rows of all. In a forward split folds differ in what they know, so
  // they are compared one by one.
  if (!scoring.forward && 2 * poor_rows > rows) poor.clear();
  return poor;
}

// Removes the poor folds, and all folds if the others score below the floor together.
LeftOut LeaveOutPoor(const ScoringData& scoring, const std::optional<StandingFloor>& floor,
                     Answers& answers) {
  LeftOut left_out;
  AnswersByFold& members = answers.folds;
  Covered gone, floor_of_gone, together, by_floor_together;
  const auto add = [&](int fold, Covered& values, Covered& by_floor) {
    AddJoinedRows(scoring, fold, {members.at(fold), floor, answers.floor, kNoPowers}, values);
    AddFloorRows(scoring, *floor, fold, by_floor);
  };
  left_out.folds = PoorFolds(scoring, floor, answers);
  for (const int fold : left_out.folds) {
    add(fold, gone, floor_of_gone);
    left_out.complete += answers.complete.count(fold) > 0 ? 1 : 0;
    members.erase(fold);
  }
  for (const auto& [fold, answer] : members) add(fold, together, by_floor_together);
  if (Better(scoring.metric, scoring.OnRows(by_floor_together.values, by_floor_together.rows),
             scoring.OnRows(together.values, together.rows))) {
    for (const auto& [fold, answer] : members) {
      left_out.folds.push_back(fold);
      add(fold, gone, floor_of_gone);
    }
    std::sort(left_out.folds.begin(), left_out.folds.end());
    members.clear();
  }
  if (left_out.folds.empty()) return left_out;
  left_out.score = scoring.OnRows(gone.values, gone.rows);
  left_out.floor_score = scoring.OnRows(floor_of_gone.values, floor_of_gone.rows);
  return left_out;
}

// The weights of members and floor; they sum to 1. Where the models are of one trial, the folds
// together compete with the floor in greedy selection, because no row has out-of-fold predictions
// of two folds.
struct EnsembleWeights {
  std::vector<double> members;  // of each model, ordered by fold, trial and seed
  double floor = 0;
};

// Divides each fold's weight among its models.
std::vector<double> WeightsOfModels(const AnswersByFold& members,
                                    const std::vector<double>& of_folds) {
  std::vector<double> weights;
  size_t fold = 0;
  for (const auto& [index, answer] : members) {
    const double of_fold = of_folds[fold++];
    const auto models = static_cast<double>(answer.models.size());
    if (answer.shares.empty())
      weights.insert(weights.end(), answer.models.size(), of_fold / models);
    for (const double share : answer.shares) weights.push_back(of_fold * share);
  }
  return weights;
}

// The weights of the folds together and of the floor, which compete.
std::vector<double> GreedyWithFloor(const ScoringData& scoring, const StandingFloor& floor,
                                    const AnswersByFold& members) {
  Covered by_members, by_floor;
  for (const auto& [fold, answer] : members) {
    AddMemberRows(scoring, fold, answer, by_members);
    AddFloorRows(scoring, floor, fold, by_floor);
  }
  return GreedyWeights(
      {by_members.values, by_floor.values},
      [&](absl::Span<const float> values) { return scoring.OnRows(values, by_members.rows); },
      [&](double a, double b) { return Better(scoring.metric, a, b); });
}

EnsembleWeights Weigh(EnsembleKind kind, const ScoringData& scoring,
                      const std::optional<StandingFloor>& floor, const Answers& answers) {
  EnsembleWeights weights;
  const AnswersByFold& members = answers.folds;
  if (members.empty()) {
    weights.floor = 1;
    return weights;
  }
  std::vector<double> of_folds(members.size(), 1.0 / static_cast<double>(members.size()));
  if (kind == EnsembleKind::kWeighted) {
    std::vector<double> scores;
    for (const auto& [fold, answer] : members) scores.push_back(answer.score);
    of_folds = WeightsByScore(scoring.metric, scores);
  }
  double together = 1;
  if (answers.trials) {
    weights.floor = answers.floor;
    together = 1 - answers.floor;
  } else if (kind == EnsembleKind::kGreedy && floor) {
    const std::vector<double> chosen = GreedyWithFloor(scoring, *floor, members);
    weights.floor = chosen[1];
    together = chosen[0];
  }
  for (double& weight : of_folds) weight *= together;
  weights.members = WeightsOfModels(members, of_folds);
  return weights;
}

// Tunes the joined answer; does nothing where the models are of one trial.
Tuned TuneAnswer(const ScoringData& scoring, const std::optional<StandingFloor>& floor,
                 const Answers& answers) {
  if (!answers.trials || !scoring.classes()) return Tuned();
  std::vector<FoldToTune> folds;
  for (const auto& [fold, answer] : answers.folds) {
    Covered joined;
    AddJoinedRows(scoring, fold, {answer, floor, answers.floor, kNoPowers}, joined);
    folds.push_back({std::move(joined.values), scoring.LabelsOf(joined.rows)});
  }
  return Tune(scoring.metric, scoring.columns, folds);
}

// Chooses a second layer in place of weights and temperature; without powers where it does not
// gain.
Tuned LayerOf(const ScoringData& scoring, const std::optional<StandingFloor>& floor,
              const Answers& answers, const Tuned& weighed) {
  Tuned layer;
  if (!answers.trials || !scoring.classes()) return layer;
  std::list<FoldParts> parts;
  std::vector<FoldToJoin> folds;
  for (const auto& [fold, answer] : answers.folds) {
    parts.push_back(PartsOf(scoring, fold, {answer, floor, answers.floor, kNoPowers}));
    folds.push_back(parts.back().fold);
  }
  layer.powers = ChoosePowers(scoring.metric, scoring.columns, folds, weighed);
  return layer;
}

// Combines the test values of the members and the floor by `weights`.
JoinedValues Join(const ScoringData& scoring, const EnsembleWeights& weights,
                  const AnswersByFold& members, const std::optional<StandingFloor>& floor,
                  const Tuned& tuned) {
  std::vector<std::shared_ptr<const TestValues>> values;
  std::vector<AnswerPart> parts;
  for (const auto& [fold, answer] : members) {
    for (const LoadedMember& model : answer.models) {
      parts.push_back({fold, model.member.trial, weights.members[parts.size()]});
      if (model.test != nullptr) values.push_back(model.test);
    }
  }
  if (weights.floor > 0) {
    values.push_back(floor->test);
    parts.push_back({-1, -1, weights.floor});
  }
  return JoinedValues(std::move(values), AnswerJoin(std::move(parts), tuned.powers),
                      scoring.columns);
}

// The answer that Publish has made, but not written yet.
struct NextAnswer {
  Answers answers;
  std::optional<StandingFloor> floor;
  EnsembleWeights weights;
  Tuned weighed;  // without a second layer
  Tuned tuned;

  void AddRows(const ScoringData& scoring, int fold, const Tuned& by, Covered& covered) const {
    AddJoinedRows(scoring, fold, {answers.folds.at(fold), floor, weights.floor, by.powers},
                  covered);
  }
  // Counts the folds that answer and whose first model of trial 0 is complete.
  int Complete() const {
    return static_cast<int>(std::count_if(
        answers.folds.begin(), answers.folds.end(),
        [this](const auto& answer) { return answers.complete.count(answer.first) > 0; }));
  }
};

// Chooses the components that the masks keep, where that is left to the scores.
Tuned TuneMasks(const ScoringData& scoring, const NextAnswer& next) {
  Covered covered;
  for (const auto& [fold, answer] : next.answers.folds) {
    next.AddRows(scoring, fold, Tuned(), covered);
  }
  const auto folds = static_cast<int>(scoring.fold_rows.size());
  for (int fold = 0; next.answers.folds.empty() && next.floor && fold < folds; ++fold) {
    AddFloorRows(scoring, *next.floor, fold, covered);
  }
  Tuned tuned;
  tuned.largest = ChooseComponents(scoring.columns, covered.values);
  return tuned;
}

// Empty where the test file lacks the target.
QuantileScores OnTestQuantiles(const ScoringData& scoring, const Quantiles& quantiles,
                               const JoinedValues& test_values) {
  if (!scoring.table->schema().test_has_target || scoring.test_rows() == 0) return {};
  return ScoreQuantiles(quantiles, test_values.Read(), TestTargets(*scoring.table, scoring.columns),
                        scoring.test_steps);
}

// Describes the Prediction that the members would make, without its files. Quality says how much of
// the plan was done, so complete folds count for it even if they were left out.
PublishedPrediction Describe(const PublishRequest& request, const PredictionForm& form,
                             const ScoringData& scoring, const NextAnswer& next,
                             const LeftOut& left_out, const JoinedValues& test_values) {
  PublishedPrediction p;
  Covered covered, weighed;
  const AnswersByFold& members = next.answers.folds;
  for (const auto& [fold, answer] : members) {
    for (const LoadedMember& model : answer.models) {
      p.members.push_back(model.member);
      p.members.back().weight = next.weights.members[p.members.size() - 1];
    }
    next.AddRows(scoring, fold, next.tuned, covered);
    if (!next.tuned.powers.empty()) next.AddRows(scoring, fold, next.weighed, weighed);
  }
  if (!weighed.rows.empty()) {
    p.weighed_score = scoring.OnRows(weighed.values, weighed.rows, next.weighed);
  }
  p.floor_weight = next.weights.floor;
  p.tuned = next.tuned;
  p.worse = next.answers.worse;
  p.left_out = left_out.folds;
  p.left_out_score = left_out.score;
  p.left_out_floor = left_out.floor_score;
  if (next.floor) {
    Covered by_floor;
    for (int fold = 0; fold < request.spec_folds; ++fold) {
      AddFloorRows(scoring, *next.floor, fold, by_floor);
    }
    const double score = scoring.OnRows(by_floor.values, by_floor.rows);
    if (!std::isnan(score)) p.floor_score = score;
    if (members.empty()) covered = std::move(by_floor);
  }
  const double oof = scoring.OnRows(covered.values, covered.rows, next.tuned);
  if (!std::isnan(oof)) p.oof_score = oof;
  if (!form.quantiles.empty() && scoring.table->schema().target_kind != TargetKind::kClasses) {
    p.quantiles = QuantilesOf(form.quantiles, scoring.columns, covered.values,
                              scoring.TargetsOf(covered.rows), scoring.StepsOf(covered.rows));
    p.quantile_scores = ScoreQuantiles(p.quantiles, covered.values, scoring.TargetsOf(covered.rows),
                                       scoring.StepsOf(covered.rows));
    p.test_quantile_scores = OnTestQuantiles(scoring, p.quantiles, test_values);
  }
  const bool all = static_cast<int>(members.size()) == request.spec_folds;
  p.comparable = all || members.empty();
  p.test_score = scoring.OnTest(test_values, next.tuned);
  p.quality = QualityOf(request, members.size(), next.Complete() + left_out.complete);
  return p;
}

// Whether the members score at least as well as the standing Prediction on the rows that both
// cover.
bool NotWorse(const PublishRequest& request, const ScoringData& scoring, const NextAnswer& next,
              const PublishedPrediction& standing) {
  Covered mine, theirs;
  const AnswersByFold& members = next.answers.folds;
  std::map<int, std::vector<Member>> by_fold;
  for (const Member& member : standing.members) by_fold[member.fold].push_back(member);
  const auto add_mine = [&](int fold) {
    if (members.count(fold) > 0) return next.AddRows(scoring, fold, next.tuned, mine);
    AddFloorRows(scoring, *next.floor, fold, mine);
  };
  if (standing.members.empty()) {
    // The standing Prediction is the floor, so scores are compared on the members' rows. The floor
    // of that time is not kept, but the present one is no worse.
    if (!next.floor) return true;
    for (const auto& [fold, answer] : members) {
      add_mine(fold);
      AddFloorRows(scoring, *next.floor, fold, theirs);
    }
  } else {
    for (const auto& [fold, models] : by_fold) {
      if (members.count(fold) == 0 && !(members.empty() && next.floor)) continue;
      const std::optional<FoldAnswer> answer = AnswerOf(request, scoring, models);
      if (!answer) continue;
      add_mine(fold);
      AddJoinedRows(scoring, fold,
                    {*answer, next.floor, standing.floor_weight, standing.tuned.powers}, theirs);
    }
  }
  if (mine.rows.empty()) return members.size() > by_fold.size();
  return !Better(scoring.metric, scoring.OnRows(theirs.values, theirs.rows, standing.tuned),
                 scoring.OnRows(mine.values, mine.rows, next.tuned));
}

// Whether `next` replaces the standing Prediction.
bool Replaces(const PublishRequest& request, const ScoringData& scoring, const NextAnswer& answer,
              const PublishedPrediction& next, const PredictionManifest& standing_manifest) {
  const PublishedPrediction& standing = standing_manifest.prediction;
  NextStanding made{&next, {}, answer.Complete(), answer.answers.trials};
  for (const auto& [fold, models] : answer.answers.folds) made.folds.insert(fold);
  return traind::Replaces(
      made, standing, standing_manifest.idle,
      [&] {
        constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
        return answer.floor->test_sha256 != standing_manifest.floor_test_sha256 &&
               !Better(scoring.metric, standing.oof_score.value_or(kNone),
                       next.oof_score.value_or(kNone));
      },
      [&] { return NotWorse(request, scoring, answer, standing); });
}

// Returns the standing Prediction, with what the answer that does not replace it tells of models
// that do not answer.
PublishedPrediction Stays(PublishedPrediction standing, const PublishedPrediction& next) {
  const auto answers = [&standing](int fold) {
    return std::any_of(standing.members.begin(), standing.members.end(),
                       [fold](const Member& member) { return member.fold == fold; });
  };
  standing.left_out.clear();
  for (const int fold : next.left_out) {
    if (!answers(fold)) standing.left_out.push_back(fold);
  }
  // The scores are those of all folds left out.
  if (standing.left_out == next.left_out) {
    standing.left_out_score = next.left_out_score;
    standing.left_out_floor = next.left_out_floor;
  }
  for (const WorseModel& worse : next.worse) {
    const bool in = std::any_of(standing.members.begin(), standing.members.end(),
                                [&worse](const Member& member) {
                                  return member.fold == worse.fold && member.trial == worse.trial &&
                                         member.seed == worse.seed;
                                });
    if (!in) standing.worse.push_back(worse);
  }
  return standing;
}

// The standing Prediction; `whole` is false if its files are missing or damaged. Its members count
// in either case.
struct Standing {
  std::optional<PredictionManifest> manifest;
  bool whole = false;
};

Standing ReadStanding(const PublishRequest& request) {
  Standing standing;
  absl::StatusOr<PredictionManifest> manifest =
      ReadStandingManifest(request.state_dir, request.job);
  if (!manifest.ok()) return standing;
  const PublishedPrediction& p = manifest->prediction;
  const auto digest = DigestFile(absl::StrCat(request.state_dir, "/", p.path));
  standing.whole = digest.ok() && digest->sha256 == p.sha256;
  standing.manifest = *std::move(manifest);
  return standing;
}

absl::StatusOr<std::optional<StandingFloor>> ReadUsableFloor(const PublishRequest& request,
                                                             const ScoringData& scoring) {
  absl::StatusOr<StandingFloor> floor = ReadFloor(request.state_dir, request.job);
  const size_t oof = static_cast<size_t>(scoring.table->schema().train_rows) * scoring.columns;
  if (floor.ok() && floor->oof.size() == oof &&
      floor->test->values().size() == scoring.test_values()) {
    return std::optional<StandingFloor>(*std::move(floor));
  }
  // Members, or the standing Prediction, can answer without the floor.
  if (floor.ok() || absl::IsNotFound(floor.status()) || absl::IsDataLoss(floor.status())) {
    return std::optional<StandingFloor>();
  }
  return floor.status();
}

// Writes the rows in the test file's order.
absl::Status WriteFiles(const PublishRequest& request, const ScoringData& scoring,
                        const JoinedValues& joined, const PredictionForm& form,
                        PredictionManifest& manifest) {
  if (scoring.volumes != nullptr) {
    ASSIGN_OR_RETURN(
        const std::unique_ptr<PredictionWriter> writer,
        WriteMaskPrediction(request.state_dir, request.job,
                            AnswerColumnsOf(scoring.table->schema()), form, *scoring.volumes,
                            scoring.table->TestIds(), joined, manifest.prediction.tuned.largest));
    return writer->Commit(manifest);
  }
  std::vector<float> all = joined.Read();
  const Table& table = *scoring.table;
  AnswerColumns columns = AnswerColumnsOf(table.schema());
  const Tuned& tuned = manifest.prediction.tuned;
  ApplyTemperature(tuned.temperature, columns.outputs(), absl::MakeSpan(all));
  columns.threshold = tuned.threshold;
  columns.quantiles = manifest.prediction.quantiles;
  columns.steps = scoring.test_steps;
  const absl::Span<const float> values = all;
  const auto rows = static_cast<size_t>(table.schema().test_rows);
  ASSIGN_OR_RETURN(const std::unique_ptr<PredictionWriter> writer,
                   PredictionWriter::Begin(request.state_dir, request.job, columns, form,
                                           table.schema().test_rows));
  const std::vector<std::string> ids = table.TestIds();
  std::vector<size_t> place(rows);  // [row of the file]: its index in the table
  std::iota(place.begin(), place.end(), size_t{0});
  const auto order = table.TestOrder();
  for (size_t i = 0; i < order.size(); ++i) place[static_cast<size_t>(order[i])] = i;
  const size_t outputs = columns.outputs();
  for (size_t row = 0; row < rows; ++row) {
    RETURN_IF_ERROR(writer->Add(columns.id.empty() ? absl::string_view() : ids[row],
                                values.subspan(place[row] * outputs, outputs),
                                columns.StepOf(place[row])));
  }
  return writer->Commit(manifest);
}

}  // namespace

absl::StatusOr<PublishedPrediction> Publish(const PublishRequest& request, absl::Time now) {
  ASSIGN_OR_RETURN(const ScoringData scoring, LoadScoringData(request));
  ASSIGN_OR_RETURN(const JobPublishLock lock,
                   JobPublishLock::Acquire(request.state_dir, request.job, PublishLockTimeout()));
  RETURN_IF_ERROR(CheckNotEnded(request.state_dir, request.job));
  NextAnswer answer;
  ASSIGN_OR_RETURN(answer.floor, ReadUsableFloor(request, scoring));
  const Standing standing = ReadStanding(request);
  std::vector<Member> earlier;
  if (standing.manifest) {
    earlier = standing.manifest->prediction.members;
    const std::vector<Member>& idle = standing.manifest->idle;
    earlier.insert(earlier.end(), idle.begin(), idle.end());
  }
  ASSIGN_OR_RETURN(const PredictionForm form, ReadPredictionForm(request.state_dir, request.job));
  answer.answers = ChooseAnswers(request, scoring, form.ensemble, answer.floor, earlier);
  LeftOut left_out;
  if (answer.floor) left_out = LeaveOutPoor(scoring, answer.floor, answer.answers);
  if (answer.answers.folds.empty() && !answer.floor) {
    if (standing.whole) return standing.manifest->prediction;
    return absl::NotFoundError(
        absl::StrCat("job ", request.job, " has neither a floor nor a whole fold prediction"));
  }
  answer.weights = Weigh(form.ensemble, scoring, answer.floor, answer.answers);
  answer.weighed = scoring.volumes != nullptr ? TuneMasks(scoring, answer)
                                              : TuneAnswer(scoring, answer.floor, answer.answers);
  answer.tuned = LayerOf(scoring, answer.floor, answer.answers, answer.weighed);
  if (answer.tuned.powers.empty()) answer.tuned = answer.weighed;
  const JoinedValues values =
      Join(scoring, answer.weights, answer.answers.folds, answer.floor, answer.tuned);
  PredictionManifest next;
  next.job = request.job;
  next.metric = request.metric;
  next.prediction = Describe(request, form, scoring, answer, left_out, values);
  next.prediction.ensemble = EnsembleName(form.ensemble);
  next.prediction.at = now;
  next.prediction.changed = true;
  if (answer.answers.trials) next.idle = answer.answers.idle;
  if (scoring.test_rows() == 0) return next.prediction;
  if (standing.whole && !Replaces(request, scoring, answer, next.prediction, *standing.manifest)) {
    return Stays(standing.manifest->prediction, next.prediction);
  }
  if (answer.floor) {
    next.floor_model = answer.floor->model;
    next.floor_test_sha256 = answer.floor->test_sha256;
  }
  RETURN_IF_ERROR(WriteFiles(request, scoring, values, form, next));
  return next.prediction;
}

}  // namespace traind
