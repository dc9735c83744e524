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
  return a.fold == b.fold && a.seed == b.seed && a.oof_sha256 == b.oof_sha256 &&
         a.test_sha256 == b.test_sha256;
}

// Out-of-fold values of some training rows.
struct Covered {
  std::vector<size_t> rows;   // grouped by fold
  std::vector<float> values;  // [rows.size(), C]
};

void AddFloorRows(const ScoringData& judge, const StandingFloor& floor, int fold,
                  Covered& covered) {
  for (const size_t row : judge.fold_rows[static_cast<size_t>(fold)]) {
    covered.rows.push_back(row);
    const auto begin = floor.oof.begin() + static_cast<ptrdiff_t>(row * judge.columns);
    covered.values.insert(covered.values.end(), begin,
                          begin + static_cast<ptrdiff_t>(judge.columns));
  }
}

void AddMemberRows(const ScoringData& judge, int fold, const FoldAnswer& answer, Covered& covered) {
  const auto& rows = judge.fold_rows[static_cast<size_t>(fold)];
  covered.rows.insert(covered.rows.end(), rows.begin(), rows.end());
  covered.values.insert(covered.values.end(), answer.oof.begin(), answer.oof.end());
}

struct LeftOut {
  std::vector<int> folds;  // ascending
  int complete = 0;        // of those that the floor beats one by one
};

// Folds that score below the floor on their own rows, where such a score alone may cost a fold its
// place: incomplete folds, and all folds of a forward split.
std::vector<int> PoorFolds(const ScoringData& judge, const StandingFloor& floor,
                           const AnswersByFold& members) {
  std::vector<int> poor;
  size_t rows = 0, poor_rows = 0;
  for (const auto& [fold, answer] : members) {
    Covered by_floor;
    AddFloorRows(judge, floor, fold, by_floor);
    rows += by_floor.rows.size();
    if (answer.complete && !judge.forward) continue;
    const double floor_score = judge.OnRows(by_floor.values, by_floor.rows);
    if (!Better(judge.metric, floor_score, judge.OnRows(answer.oof, by_floor.rows))) continue;
    poor.push_back(fold);
    poor_rows += by_floor.rows.size();
  }
  // The few that win on their own rows were lucky with them where most folds lose: then all are
  // judged together, on the rows of all. The folds of a forward split differ in what they know.
  if (!judge.forward && 2 * poor_rows > rows) poor.clear();
  return poor;
}

// Takes out the poor folds, and all folds if those that are left score below the floor together.
LeftOut LeaveOutPoor(const ScoringData& judge, const StandingFloor& floor, AnswersByFold& members) {
  LeftOut left_out;
  left_out.folds = PoorFolds(judge, floor, members);
  for (const int fold : left_out.folds) {
    const auto it = members.find(fold);
    left_out.complete += it->second.complete ? 1 : 0;
    members.erase(it);
  }
  Covered by_floor_together, together;
  for (const auto& [fold, answer] : members) {
    AddFloorRows(judge, floor, fold, by_floor_together);
    AddMemberRows(judge, fold, answer, together);
  }
  if (Better(judge.metric, judge.OnRows(by_floor_together.values, by_floor_together.rows),
             judge.OnRows(together.values, together.rows))) {
    for (const auto& [fold, answer] : members) left_out.folds.push_back(fold);
    std::sort(left_out.folds.begin(), left_out.folds.end());
    members.clear();
  }
  return left_out;
}

// What the members and the floor weigh: all together 1. By greedy selection the folds
// together stand against the floor, as no row has out-of-fold predictions of two folds.
struct EnsembleWeights {
  std::vector<double> members;  // of each model, by fold and seed
  double floor = 0;
};

// A fold's weight is its models', all alike.
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

EnsembleWeights Weigh(EnsembleKind kind, const ScoringData& judge,
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
    of_folds = WeightsByScore(judge.metric, scores);
  }
  if (kind == EnsembleKind::kGreedy && floor) {
    Covered by_members, by_floor;
    for (const auto& [fold, answer] : members) {
      AddMemberRows(judge, fold, answer, by_members);
      AddFloorRows(judge, *floor, fold, by_floor);
    }
    const std::vector<double> chosen = GreedyWeights(
        {by_members.values, by_floor.values},
        [&](absl::Span<const float> values) { return judge.OnRows(values, by_members.rows); },
        [&](double a, double b) { return Better(judge.metric, a, b); });
    weights.floor = chosen[1];
    for (double& weight : of_folds) weight *= chosen[0];
  }
  weights.members = WeightsOfModels(members, of_folds);
  return weights;
}

// What the members' and the floor's values give together. weights: theirs.
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

// Folds whose first model is complete.
int CompleteFolds(const std::vector<Member>& members) {
  return static_cast<int>(std::count_if(members.begin(), members.end(), [](const Member& member) {
    return member.seed == 0 && member.complete;
  }));
}

// The Prediction that the members would make, without its files. Quality tells how much
// of the plan was done, so complete folds that were left out count for it.
PublishedPrediction Describe(const PublishRequest& request, const ScoringData& judge,
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
    AddMemberRows(judge, fold, answer, covered);
  }
  p.floor_weight = weights.floor;
  if (!members.empty() && weights.floor > 0) {
    Covered of_floor;
    for (const auto& [fold, answer] : members) AddFloorRows(judge, *floor, fold, of_floor);
    std::vector<float> joined(covered.values.size());
    Blend({covered.values, of_floor.values}, {1 - weights.floor, weights.floor},
          absl::MakeSpan(joined));
    covered.values = std::move(joined);
  }
  if (floor) {
    Covered by_floor;
    for (int fold = 0; fold < request.spec_folds; ++fold) {
      AddFloorRows(judge, *floor, fold, by_floor);
    }
    const double score = judge.OnRows(by_floor.values, by_floor.rows);
    if (!std::isnan(score)) p.floor_score = score;
    if (members.empty()) covered = std::move(by_floor);
  }
  const double oof = judge.OnRows(covered.values, covered.rows);
  if (!std::isnan(oof)) p.oof_score = oof;
  const bool all = static_cast<int>(members.size()) == request.spec_folds;
  p.comparable = all || members.empty();
  p.test_score = judge.OnTest(test_values);
  const int complete = CompleteFolds(p.members) + complete_left_out;
  p.quality =
      complete == request.spec_folds && !request.plan_cut ? Quality::kFull : Quality::kDegraded;
  if (members.empty()) p.quality = Quality::kFloor;
  return p;
}

// Whether the members score at least as well as the standing Prediction on the
// rows that both cover.
bool NotWorse(const PublishRequest& request, const ScoringData& judge, const AnswersByFold& members,
              const std::optional<StandingFloor>& floor, const PublishedPrediction& standing) {
  Covered mine, theirs;
  std::map<int, std::vector<Member>> by_fold;
  for (const Member& member : standing.members) by_fold[member.fold].push_back(member);
  const auto add_mine = [&](int fold) {
    const auto it = members.find(fold);
    if (it != members.end()) return AddMemberRows(judge, fold, it->second, mine);
    AddFloorRows(judge, *floor, fold, mine);
  };
  if (standing.members.empty()) {
    // Against the floor: on the members' rows. The floor of then is not kept,
    // and the one of now is no worse.
    if (!floor) return true;
    for (const auto& [fold, answer] : members) {
      add_mine(fold);
      AddFloorRows(judge, *floor, fold, theirs);
    }
  } else {
    for (const auto& [fold, models] : by_fold) {
      if (members.count(fold) == 0 && !(members.empty() && floor)) continue;
      const std::optional<FoldAnswer> answer = AnswerOf(request, judge, models);
      if (!answer) continue;
      add_mine(fold);
      AddMemberRows(judge, fold, *answer, theirs);
    }
  }
  if (mine.rows.empty()) return members.size() > by_fold.size();
  return !Better(judge.metric, judge.OnRows(theirs.values, theirs.rows),
                 judge.OnRows(mine.values, mine.rows));
}

// Whether every fold that answers in the standing Prediction was judged for the next one, too.
bool AllJudged(const PublishedPrediction& standing, const AnswersByFold& members,
               const std::vector<int>& left_out) {
  return std::all_of(standing.members.begin(), standing.members.end(), [&](const Member& member) {
    return members.count(member.fold) > 0 ||
           std::count(left_out.begin(), left_out.end(), member.fold) > 0;
  });
}

// Whether `next` replaces the standing Prediction.
bool Replaces(const PublishRequest& request, const ScoringData& judge, const AnswersByFold& members,
              const std::optional<StandingFloor>& floor, const PublishedPrediction& next,
              const PredictionManifest& standing_manifest) {
  const PublishedPrediction& standing = standing_manifest.prediction;
  if (next.members.empty() && standing.members.empty()) {
    if (floor->test_sha256 == standing_manifest.floor_test_sha256) return false;
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    return !Better(judge.metric, standing.oof_score.value_or(kNone),
                   next.oof_score.value_or(kNone));
  }
  const bool same = std::equal(
      next.members.begin(), next.members.end(), standing.members.begin(), standing.members.end(),
      [](const Member& a, const Member& b) { return SameFiles(a, b) && a.complete == b.complete; });
  if (same) return next.quality > standing.quality;
  if (CompleteFolds(next.members) > CompleteFolds(standing.members)) return true;
  // No fold answers in both. `next` was chosen on the rows of all folds, the standing ones among
  // them, so it knows more than a comparison on the standing ones' rows alone.
  const bool disjoint =
      std::none_of(standing.members.begin(), standing.members.end(),
                   [&members](const Member& member) { return members.count(member.fold) > 0; });
  if (!standing.members.empty() && disjoint && AllJudged(standing, members, next.left_out)) {
    return true;
  }
  return NotWorse(request, judge, members, floor, standing);
}

// The standing Prediction; none where its files are not what they should be.
// Its members count in either case.
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
                                                             const ScoringData& judge) {
  absl::StatusOr<StandingFloor> floor = ReadFloor(request.state_dir, request.job);
  const size_t oof = static_cast<size_t>(judge.table->schema().train_rows) * judge.columns;
  if (floor.ok() && floor->oof.size() == oof &&
      floor->test->values().size() == judge.test_values()) {
    return std::optional<StandingFloor>(*std::move(floor));
  }
  // Members, or what stands, answer without it.
  if (floor.ok() || absl::IsNotFound(floor.status()) || absl::IsDataLoss(floor.status())) {
    return std::optional<StandingFloor>();
  }
  return floor.status();
}

// A mask for each volume, and the share of foreground (and of each of several classes) in it as
// the row's values.
absl::Status WriteMaskFiles(const PublishRequest& request, const ScoringData& judge,
                            const JoinedValues& values, PredictionForm form,
                            PredictionManifest& manifest) {
  form.format = FileFormat::kCsv;  // the masks are the arrays
  AnswerColumns columns = AnswerColumnsOf(judge.table->schema());
  const std::vector<std::string>& classes = judge.volumes->classes();
  if (classes.size() > 1) {
    columns.targets.insert(columns.targets.end(), classes.begin(), classes.end());
  }
  ASSIGN_OR_RETURN(
      const std::unique_ptr<PredictionWriter> writer,
      PredictionWriter::Begin(request.state_dir, request.job, columns, form, judge.test_rows()));
  const std::vector<std::string> ids = judge.table->TestIds();
  ASSIGN_OR_RETURN(const MaskFiles masks,
                   WriteMasks(writer->folder(), form.tiff_masks ? MaskForm::kTiff : MaskForm::kNpy,
                              *judge.volumes, ids, values));
  for (size_t row = 0; row < masks.shares.size(); ++row) {
    RETURN_IF_ERROR(
        writer->Add(columns.id.empty() ? absl::string_view() : ids[row], masks.shares[row]));
  }
  writer->PackWith(masks.names);
  return writer->Commit(manifest);
}

// Rows in the test file's order.
absl::Status WriteFiles(const PublishRequest& request, const ScoringData& judge,
                        const JoinedValues& joined, const PredictionForm& form,
                        PredictionManifest& manifest) {
  if (judge.volumes != nullptr) return WriteMaskFiles(request, judge, joined, form, manifest);
  const std::vector<float> all = joined.Read();
  const absl::Span<const float> values = all;
  const Table& table = *judge.table;
  const AnswerColumns columns = AnswerColumnsOf(table.schema());
  const auto rows = static_cast<size_t>(table.schema().test_rows);
  ASSIGN_OR_RETURN(const std::unique_ptr<PredictionWriter> writer,
                   PredictionWriter::Begin(request.state_dir, request.job, columns, form,
                                           table.schema().test_rows));
  const std::vector<std::string> ids = table.TestIds();
  std::vector<size_t> place(rows);  // [row of the file]: its place in the table
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
  ASSIGN_OR_RETURN(const ScoringData judge, LoadScoringData(request));
  ASSIGN_OR_RETURN(const JobPublishLock lock,
                   JobPublishLock::Take(request.state_dir, request.job, PublishLockTimeout()));
  ASSIGN_OR_RETURN(const std::optional<StandingFloor> floor, ReadUsableFloor(request, judge));
  const Standing standing = ReadStanding(request);
  const std::vector<Member> earlier =
      standing.manifest ? standing.manifest->prediction.members : std::vector<Member>();

  AnswersByFold members = ChooseAnswers(request, judge, earlier);
  LeftOut left_out;
  if (floor) left_out = LeaveOutPoor(judge, *floor, members);
  if (members.empty() && !floor) {
    if (standing.whole) return standing.manifest->prediction;
    return absl::NotFoundError(
        absl::StrCat("job ", request.job, " has neither a floor nor a whole fold prediction"));
  }
  ASSIGN_OR_RETURN(const PredictionForm form, ReadPredictionForm(request.state_dir, request.job));
  const EnsembleWeights weights = Weigh(form.ensemble, judge, floor, members);
  const JoinedValues values = Join(weights, members, floor);
  PredictionManifest next;
  next.job = request.job;
  next.metric = request.metric;
  next.prediction = Describe(request, judge, members, left_out.complete, floor, weights, values);
  next.prediction.ensemble = EnsembleName(form.ensemble);
  next.prediction.left_out = left_out.folds;
  next.prediction.at = now;
  next.prediction.changed = true;
  if (judge.test_rows() == 0) return next.prediction;
  if (standing.whole &&
      !Replaces(request, judge, members, floor, next.prediction, *standing.manifest)) {
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
  RETURN_IF_ERROR(WriteFiles(request, judge, values, form, next));
  return next.prediction;
}

}  // namespace traind
