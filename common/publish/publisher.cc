#include "common/publish/publisher.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "common/data/table/table.h"
#include "common/metrics/metrics.h"
#include "common/publish/ensemble.h"
#include "common/publish/floor_files.h"
#include "common/publish/fold_answers.h"
#include "common/publish/greedy_selection.h"
#include "common/publish/mask_files.h"
#include "common/publish/prediction_files.h"
#include "common/publish/prediction_form.h"
#include "common/publish/prediction_manifest.h"
#include "common/publish/publish_lock.h"
#include "common/publish/scoring_data.h"

namespace traind {
namespace {

bool SameFiles(const Member& a, const Member& b) {
  return a.fold == b.fold && a.trial == b.trial && a.seed == b.seed &&
         a.oof_sha256 == b.oof_sha256 && a.test_sha256 == b.test_sha256;
}

// Out-of-fold values of some training rows.
struct Covered {
  std::vector<size_t> rows;   // grouped by fold
  std::vector<float> values;  // [rows.size(), C]
};

void AddFloorRows(const ScoringData& scoring, const StandingFloor& floor, int fold,
                  Covered& covered) {
  for (const size_t row : scoring.fold_rows[static_cast<size_t>(fold)]) {
    covered.rows.push_back(row);
    const auto begin = floor.oof.begin() + static_cast<ptrdiff_t>(row * scoring.columns);
    covered.values.insert(covered.values.end(), begin,
                          begin + static_cast<ptrdiff_t>(scoring.columns));
  }
}

void AddMemberRows(const ScoringData& scoring, int fold, const FoldAnswer& answer,
                   Covered& covered) {
  const auto& rows = scoring.fold_rows[static_cast<size_t>(fold)];
  covered.rows.insert(covered.rows.end(), rows.begin(), rows.end());
  covered.values.insert(covered.values.end(), answer.oof.begin(), answer.oof.end());
}

struct LeftOut {
  std::vector<int> folds;  // ascending
  int complete = 0;        // complete ones among the folds that score below the floor themselves
};

// Returns the folds that score below the floor on their own rows. Only incomplete folds, and all
// folds of a forward split, may be left out for that alone.
std::vector<int> PoorFolds(const ScoringData& scoring, const StandingFloor& floor,
                           const AnswersByFold& members) {
  std::vector<int> poor;
  size_t rows = 0, poor_rows = 0;
  for (const auto& [fold, answer] : members) {
    Covered by_floor;
    AddFloorRows(scoring, floor, fold, by_floor);
    rows += by_floor.rows.size();
    if (answer.complete && !scoring.forward) continue;
    const double floor_score = scoring.OnRows(by_floor.values, by_floor.rows);
    if (!Better(scoring.metric, floor_score, scoring.OnRows(answer.oof, by_floor.rows))) continue;
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
LeftOut LeaveOutPoor(const ScoringData& scoring, const StandingFloor& floor,
                     AnswersByFold& members) {
  LeftOut left_out;
  left_out.folds = PoorFolds(scoring, floor, members);
  for (const int fold : left_out.folds) {
    const auto it = members.find(fold);
    left_out.complete += it->second.complete ? 1 : 0;
    members.erase(it);
  }
  Covered by_floor_together, together;
  for (const auto& [fold, answer] : members) {
    AddFloorRows(scoring, floor, fold, by_floor_together);
    AddMemberRows(scoring, fold, answer, together);
  }
  if (Better(scoring.metric, scoring.OnRows(by_floor_together.values, by_floor_together.rows),
             scoring.OnRows(together.values, together.rows))) {
    for (const auto& [fold, answer] : members) left_out.folds.push_back(fold);
    std::sort(left_out.folds.begin(), left_out.folds.end());
    members.clear();
  }
  return left_out;
}

// The weights of members and floor; they sum to 1. In greedy selection the folds together compete
// with the floor, because no row has out-of-fold predictions of two folds.
struct EnsembleWeights {
  std::vector<double> members;  // of each model, ordered by fold and seed
  double floor = 0;
};

// Divides each fold's weight equally among its models.
std::vector<double> WeightsOfModels(const AnswersByFold& members,
                                    const std::vector<double>& of_folds) {
  std::vector<double> weights;
  size_t fold = 0;
  for (const auto& [index, answer] : members) {
    const auto models = static_cast<double>(answer.models.size());
    weights.insert(weights.end(), answer.models.size(), of_folds[fold++] / models);
  }
  return weights;
}

EnsembleWeights Weigh(EnsembleKind kind, const ScoringData& scoring,
                      const std::optional<StandingFloor>& floor, const AnswersByFold& members) {
  EnsembleWeights weights;
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
  if (kind == EnsembleKind::kGreedy && floor) {
    Covered by_members, by_floor;
    for (const auto& [fold, answer] : members) {
      AddMemberRows(scoring, fold, answer, by_members);
      AddFloorRows(scoring, *floor, fold, by_floor);
    }
    const std::vector<double> chosen = GreedyWeights(
        {by_members.values, by_floor.values},
        [&](absl::Span<const float> values) { return scoring.OnRows(values, by_members.rows); },
        [&](double a, double b) { return Better(scoring.metric, a, b); });
    weights.floor = chosen[1];
    for (double& weight : of_folds) weight *= chosen[0];
  }
  weights.members = WeightsOfModels(members, of_folds);
  return weights;
}

// Combines the test values of the members and the floor by `weights`.
JoinedValues Join(const EnsembleWeights& weights, const AnswersByFold& members,
                  const std::optional<StandingFloor>& floor) {
  std::vector<std::shared_ptr<const TestValues>> parts;
  std::vector<double> of_parts = weights.members;
  for (const auto& [fold, answer] : members) {
    for (const LoadedMember& model : answer.models) {
      if (model.test != nullptr) parts.push_back(model.test);
    }
  }
  if (weights.floor > 0) {
    parts.push_back(floor->test);
    of_parts.push_back(weights.floor);
  }
  return JoinedValues(std::move(parts), std::move(of_parts));
}

// Counts the folds whose first model is complete.
int CompleteFolds(const std::vector<Member>& members) {
  return static_cast<int>(std::count_if(members.begin(), members.end(), [](const Member& member) {
    return !IsExtra(member) && member.complete;
  }));
}

// Describes the Prediction that the members would make, without its files. Quality says how much of
// the plan was done, so complete folds count for it even if they were left out.
PublishedPrediction Describe(const PublishRequest& request, const ScoringData& scoring,
                             const AnswersByFold& members, int complete_left_out,
                             const std::optional<StandingFloor>& floor,
                             const EnsembleWeights& weights, const JoinedValues& test_values) {
  PublishedPrediction p;
  Covered covered;
  for (const auto& [fold, answer] : members) {
    for (const LoadedMember& model : answer.models) {
      p.members.push_back(model.member);
      p.members.back().weight = weights.members[p.members.size() - 1];
    }
    AddMemberRows(scoring, fold, answer, covered);
  }
  p.floor_weight = weights.floor;
  if (!members.empty() && weights.floor > 0) {
    Covered of_floor;
    for (const auto& [fold, answer] : members) AddFloorRows(scoring, *floor, fold, of_floor);
    std::vector<float> joined(covered.values.size());
    Blend({covered.values, of_floor.values}, {1 - weights.floor, weights.floor},
          absl::MakeSpan(joined));
    covered.values = std::move(joined);
  }
  if (floor) {
    Covered by_floor;
    for (int fold = 0; fold < request.spec_folds; ++fold) {
      AddFloorRows(scoring, *floor, fold, by_floor);
    }
    const double score = scoring.OnRows(by_floor.values, by_floor.rows);
    if (!std::isnan(score)) p.floor_score = score;
    if (members.empty()) covered = std::move(by_floor);
  }
  const double oof = scoring.OnRows(covered.values, covered.rows);
  if (!std::isnan(oof)) p.oof_score = oof;
  const bool all = static_cast<int>(members.size()) == request.spec_folds;
  p.comparable = all || members.empty();
  p.test_score = scoring.OnTest(test_values);
  const int complete = CompleteFolds(p.members) + complete_left_out;
  p.quality =
      complete == request.spec_folds && !request.plan_cut ? Quality::kFull : Quality::kDegraded;
  if (members.empty()) p.quality = Quality::kFloor;
  return p;
}

// Whether the members score at least as well as the standing Prediction on the rows that both
// cover.
bool NotWorse(const PublishRequest& request, const ScoringData& scoring,
              const AnswersByFold& members, const std::optional<StandingFloor>& floor,
              const PublishedPrediction& standing) {
  Covered mine, theirs;
  std::map<int, std::vector<Member>> by_fold;
  for (const Member& member : standing.members) by_fold[member.fold].push_back(member);
  const auto add_mine = [&](int fold) {
    const auto it = members.find(fold);
    if (it != members.end()) return AddMemberRows(scoring, fold, it->second, mine);
    AddFloorRows(scoring, *floor, fold, mine);
  };
  if (standing.members.empty()) {
    // The standing Prediction is the floor, so scores are compared on the members' rows. The floor
    // of that time is not kept, but the present one is no worse.
    if (!floor) return true;
    for (const auto& [fold, answer] : members) {
      add_mine(fold);
      AddFloorRows(scoring, *floor, fold, theirs);
    }
  } else {
    for (const auto& [fold, models] : by_fold) {
      if (members.count(fold) == 0 && !(members.empty() && floor)) continue;
      const std::optional<FoldAnswer> answer = AnswerOf(request, scoring, models);
      if (!answer) continue;
      add_mine(fold);
      AddMemberRows(scoring, fold, *answer, theirs);
    }
  }
  if (mine.rows.empty()) return members.size() > by_fold.size();
  return !Better(scoring.metric, scoring.OnRows(theirs.values, theirs.rows),
                 scoring.OnRows(mine.values, mine.rows));
}

// Whether every fold of the standing Prediction was considered for the next one, too.
bool AllConsidered(const PublishedPrediction& standing, const AnswersByFold& members,
                   const std::vector<int>& left_out) {
  return std::all_of(standing.members.begin(), standing.members.end(), [&](const Member& member) {
    return members.count(member.fold) > 0 ||
           std::count(left_out.begin(), left_out.end(), member.fold) > 0;
  });
}

// Whether `next` replaces the standing Prediction.
bool Replaces(const PublishRequest& request, const ScoringData& scoring,
              const AnswersByFold& members, const std::optional<StandingFloor>& floor,
              const PublishedPrediction& next, const PredictionManifest& standing_manifest) {
  const PublishedPrediction& standing = standing_manifest.prediction;
  if (next.members.empty() && standing.members.empty()) {
    if (floor->test_sha256 == standing_manifest.floor_test_sha256) return false;
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    return !Better(scoring.metric, standing.oof_score.value_or(kNone),
                   next.oof_score.value_or(kNone));
  }
  const bool same = std::equal(
      next.members.begin(), next.members.end(), standing.members.begin(), standing.members.end(),
      [](const Member& a, const Member& b) { return SameFiles(a, b) && a.complete == b.complete; });
  if (same) return next.quality > standing.quality;
  if (CompleteFolds(next.members) > CompleteFolds(standing.members)) return true;
  // No fold is in both. `next` was chosen on the rows of all folds, including the standing ones, so
  // that choice knows more than a comparison on the standing ones' rows alone.
  const bool disjoint =
      std::none_of(standing.members.begin(), standing.members.end(),
                   [&members](const Member& member) { return members.count(member.fold) > 0; });
  if (!standing.members.empty() && disjoint && AllConsidered(standing, members, next.left_out)) {
    return true;
  }
  return NotWorse(request, scoring, members, floor, standing);
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

// Writes a mask for each volume, and a row with the share of foreground (and of each of several
// classes) in it.
absl::Status WriteMaskFiles(const PublishRequest& request, const ScoringData& scoring,
                            const JoinedValues& values, PredictionForm form,
                            PredictionManifest& manifest) {
  form.format = FileFormat::kCsv;  // the masks are the arrays
  AnswerColumns columns = AnswerColumnsOf(scoring.table->schema());
  const std::vector<std::string>& classes = scoring.volumes->classes();
  if (classes.size() > 1) {
    columns.targets.insert(columns.targets.end(), classes.begin(), classes.end());
  }
  ASSIGN_OR_RETURN(
      const std::unique_ptr<PredictionWriter> writer,
      PredictionWriter::Begin(request.state_dir, request.job, columns, form, scoring.test_rows()));
  const std::vector<std::string> ids = scoring.table->TestIds();
  ASSIGN_OR_RETURN(const MaskFiles masks,
                   WriteMasks(writer->folder(), form.tiff_masks ? MaskForm::kTiff : MaskForm::kNpy,
                              *scoring.volumes, ids, values));
  for (size_t row = 0; row < masks.shares.size(); ++row) {
    RETURN_IF_ERROR(
        writer->Add(columns.id.empty() ? absl::string_view() : ids[row], masks.shares[row]));
  }
  writer->PackWith(masks.names);
  return writer->Commit(manifest);
}

// Writes the rows in the test file's order.
absl::Status WriteFiles(const PublishRequest& request, const ScoringData& scoring,
                        const JoinedValues& joined, const PredictionForm& form,
                        PredictionManifest& manifest) {
  if (scoring.volumes != nullptr) return WriteMaskFiles(request, scoring, joined, form, manifest);
  const std::vector<float> all = joined.Read();
  const absl::Span<const float> values = all;
  const Table& table = *scoring.table;
  const AnswerColumns columns = AnswerColumnsOf(table.schema());
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
                                values.subspan(place[row] * outputs, outputs)));
  }
  return writer->Commit(manifest);
}

}  // namespace

absl::StatusOr<PublishedPrediction> Publish(const PublishRequest& request, absl::Time now) {
  ASSIGN_OR_RETURN(const ScoringData scoring, LoadScoringData(request));
  ASSIGN_OR_RETURN(const JobPublishLock lock,
                   JobPublishLock::Acquire(request.state_dir, request.job, PublishLockTimeout()));
  ASSIGN_OR_RETURN(const std::optional<StandingFloor> floor, ReadUsableFloor(request, scoring));
  const Standing standing = ReadStanding(request);
  const std::vector<Member> earlier =
      standing.manifest ? standing.manifest->prediction.members : std::vector<Member>();

  AnswersByFold members = ChooseAnswers(request, scoring, earlier);
  LeftOut left_out;
  if (floor) left_out = LeaveOutPoor(scoring, *floor, members);
  if (members.empty() && !floor) {
    if (standing.whole) return standing.manifest->prediction;
    return absl::NotFoundError(
        absl::StrCat("job ", request.job, " has neither a floor nor a whole fold prediction"));
  }
  ASSIGN_OR_RETURN(const PredictionForm form, ReadPredictionForm(request.state_dir, request.job));
  const EnsembleWeights weights = Weigh(form.ensemble, scoring, floor, members);
  const JoinedValues values = Join(weights, members, floor);
  PredictionManifest next;
  next.job = request.job;
  next.metric = request.metric;
  next.prediction = Describe(request, scoring, members, left_out.complete, floor, weights, values);
  next.prediction.ensemble = EnsembleName(form.ensemble);
  next.prediction.left_out = left_out.folds;
  next.prediction.at = now;
  next.prediction.changed = true;
  if (scoring.test_rows() == 0) return next.prediction;
  if (standing.whole &&
      !Replaces(request, scoring, members, floor, next.prediction, *standing.manifest)) {
    PublishedPrediction stays = standing.manifest->prediction;
    stays.left_out.clear();
    for (const int fold : left_out.folds) {
      const bool answers =
          std::any_of(stays.members.begin(), stays.members.end(),
                      [fold](const Member& member) { return member.fold == fold; });
      if (!answers) stays.left_out.push_back(fold);
    }
    return stays;
  }
  if (floor) {
    next.floor_model = floor->model;
    next.floor_test_sha256 = floor->test_sha256;
  }
  RETURN_IF_ERROR(WriteFiles(request, scoring, values, form, next));
  return next.prediction;
}

}  // namespace traind
