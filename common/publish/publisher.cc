#include "common/publish/publisher.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <tuple>

#include "common/durable_file.h"
#include "common/job_layout.h"
#include "common/publish/ensemble.h"
#include "common/publish/floor_files.h"
#include "common/publish/greedy_selection.h"
#include "common/publish/manifest.h"
#include "common/publish/metrics.h"
#include "common/publish/prediction_files.h"
#include "common/publish/prediction_form.h"
#include "common/publish/publish_lock.h"
#include "common/status_macros.h"
#include "common/table/npy.h"
#include "common/table/sample_plan.h"
#include "common/table/table.h"

namespace traind {
namespace {

// What a Job's predictions are judged against.
struct Judge {
  std::shared_ptr<const Table> table;
  Metric metric;
  size_t columns = 1;                          // C of common/job_layout.h
  std::vector<std::vector<size_t>> fold_rows;  // [fold]: its rows, ascending
  // Folds are trained on more and more rows, so that an early one may be of no use.
  bool forward = false;

  bool classes() const { return table->schema().target_kind == TargetKind::kClasses; }
  int64_t test_rows() const { return table->schema().test_rows; }
  double OnRows(absl::Span<const float> values, absl::Span<const size_t> rows) const;
  std::optional<double> OnTest(absl::Span<const float> values) const;
};

// values: [rows.size(), C], those of the training rows named by `rows`.
double Judge::OnRows(absl::Span<const float> values, absl::Span<const size_t> rows) const {
  if (classes()) {
    const auto labels = table->TargetClass(Split::kTrain);
    std::vector<int32_t> wanted;
    wanted.reserve(rows.size());
    for (const size_t row : rows) wanted.push_back(labels[row]);
    return Score(metric, values, static_cast<int>(columns), wanted);
  }
  std::vector<float> wanted(rows.size() * columns);
  for (size_t k = 0; k < columns; ++k) {
    const auto targets = table->TargetValue(Split::kTrain, k);
    for (size_t i = 0; i < rows.size(); ++i) wanted[i * columns + k] = targets[rows[i]];
  }
  return Score(metric, values, wanted, columns);
}

// [test_rows, C], row-major.
std::vector<float> TestTargets(const Table& table, size_t columns) {
  std::vector<float> wanted(static_cast<size_t>(table.schema().test_rows) * columns);
  for (size_t k = 0; k < columns; ++k) {
    const auto targets = table.TargetValue(Split::kTest, k);
    for (size_t i = 0; i < targets.size(); ++i) wanted[i * columns + k] = targets[i];
  }
  return wanted;
}

std::optional<double> Judge::OnTest(absl::Span<const float> values) const {
  if (!table->schema().test_has_target || test_rows() == 0) return std::nullopt;
  const double score =
      classes() ? Score(metric, values, static_cast<int>(columns), table->TargetClass(Split::kTest))
                : Score(metric, values, TestTargets(*table, columns), columns);
  if (std::isnan(score)) return std::nullopt;
  return score;
}

absl::StatusOr<Judge> MakeJudge(const PublishRequest& request) {
  Judge judge;
  ASSIGN_OR_RETURN(judge.metric, MetricByName(request.metric));
  ASSIGN_OR_RETURN(judge.table, Table::Open(absl::StrCat(request.state_dir, "/", request.table)));
  if (IsClassification(judge.metric) != judge.classes()) {
    return absl::InvalidArgumentError(
        absl::StrCat("metric ", request.metric, " does not suit the target of ", request.table));
  }
  judge.columns =
      judge.classes() ? judge.table->schema().classes.size() : judge.table->schema().targets();
  const std::string path = absl::StrCat(request.state_dir, "/", FoldsPath(request.job));
  ASSIGN_OR_RETURN(const Array<int16_t> folds, ReadNpyInt16(path));
  const auto rows = static_cast<size_t>(judge.table->schema().train_rows);
  if (folds.values.size() != rows || request.spec_folds < 1) {
    return absl::DataLossError(absl::StrCat(path, " is not of table ", request.table));
  }
  judge.fold_rows.resize(static_cast<size_t>(request.spec_folds));
  for (size_t row = 0; row < rows; ++row) {
    const int16_t fold = folds.values[row];
    if (fold == -1) continue;  // validates no fold
    if (fold < 0 || fold >= request.spec_folds) {
      return absl::DataLossError(
          absl::StrCat(path, ": row ", row, " is of fold ", fold, " of ", request.spec_folds));
    }
    judge.fold_rows[static_cast<size_t>(fold)].push_back(row);
  }
  // No answer is held up by a file that only tells how to judge it.
  const auto split = ReadSamplePlan(absl::StrCat(request.state_dir, "/", SamplesPath(request.job)));
  judge.forward = split.ok() && split->kind == SplitKind::kForward;
  return judge;
}

bool AllFinite(absl::Span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); });
}

bool LeavesFolder(const std::string& path) {
  if (path.empty() || path[0] == '/') return true;
  const std::vector<absl::string_view> parts = absl::StrSplit(path, '/');
  return std::find(parts.begin(), parts.end(), "..") != parts.end();
}

// A member whose files are what its digests say, with what they hold.
struct LoadedMember {
  Member member;
  std::vector<float> oof;   // [rows of the fold, C]
  std::vector<float> test;  // [test_rows, C]
};

absl::StatusOr<std::vector<float>> LoadArray(const PublishRequest& request, const std::string& path,
                                             const std::string& sha256, size_t values) {
  if (LeavesFolder(path)) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is no path in the job's folder"));
  }
  const std::string full = absl::StrCat(request.state_dir, "/", JobDir(request.job), "/", path);
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(full));
  if (Sha256Hex(bytes) != sha256) return absl::DataLossError(absl::StrCat(full, " is damaged"));
  ASSIGN_OR_RETURN(Array<float> array, ParseNpyFloat(bytes, full));
  if (array.values.size() != values || !AllFinite(array.values)) {
    return absl::DataLossError(absl::StrCat(full, " has another shape, or non-finite values"));
  }
  return std::move(array.values);
}

absl::StatusOr<LoadedMember> Load(const PublishRequest& request, const Judge& judge,
                                  const Member& member) {
  if (member.fold < 0 || member.fold >= request.spec_folds) {
    return absl::InvalidArgumentError(absl::StrCat("there is no fold ", member.fold));
  }
  LoadedMember loaded;
  loaded.member = member;
  const size_t rows = judge.fold_rows[static_cast<size_t>(member.fold)].size();
  ASSIGN_OR_RETURN(loaded.oof,
                   LoadArray(request, member.oof, member.oof_sha256, rows * judge.columns));
  if (judge.test_rows() > 0) {
    const size_t values = static_cast<size_t>(judge.test_rows()) * judge.columns;
    ASSIGN_OR_RETURN(loaded.test, LoadArray(request, member.test, member.test_sha256, values));
  }
  return loaded;
}

using MembersByFold = std::map<int, LoadedMember>;

bool SameFiles(const Member& a, const Member& b) {
  return a.fold == b.fold && a.oof_sha256 == b.oof_sha256 && a.test_sha256 == b.test_sha256;
}

// For each fold the first whole one: complete before incomplete, then the newest
// Attempt, then the one that trained longest.
MembersByFold ChooseMembers(const PublishRequest& request, const Judge& judge,
                            const std::vector<Member>& standing) {
  std::vector<Member> candidates = request.members;
  candidates.insert(candidates.end(), standing.begin(), standing.end());
  std::stable_sort(candidates.begin(), candidates.end(), [](const Member& a, const Member& b) {
    return std::make_tuple(a.complete, a.attempt, a.epochs_done) >
           std::make_tuple(b.complete, b.attempt, b.epochs_done);
  });
  MembersByFold chosen;
  for (const Member& candidate : candidates) {
    if (chosen.count(candidate.fold) > 0) continue;
    absl::StatusOr<LoadedMember> loaded = Load(request, judge, candidate);
    if (loaded.ok()) chosen.emplace(candidate.fold, *std::move(loaded));
  }
  return chosen;
}

// Out-of-fold values of some training rows.
struct Covered {
  std::vector<size_t> rows;   // grouped by fold
  std::vector<float> values;  // [rows.size(), C]
};

void AddFloorRows(const Judge& judge, const Floor& floor, int fold, Covered& covered) {
  for (const size_t row : judge.fold_rows[static_cast<size_t>(fold)]) {
    covered.rows.push_back(row);
    const auto begin = floor.oof.values.begin() + static_cast<ptrdiff_t>(row * judge.columns);
    covered.values.insert(covered.values.end(), begin,
                          begin + static_cast<ptrdiff_t>(judge.columns));
  }
}

void AddMemberRows(const Judge& judge, const LoadedMember& loaded, Covered& covered) {
  const auto& rows = judge.fold_rows[static_cast<size_t>(loaded.member.fold)];
  covered.rows.insert(covered.rows.end(), rows.begin(), rows.end());
  covered.values.insert(covered.values.end(), loaded.oof.begin(), loaded.oof.end());
}

struct LeftOut {
  std::vector<int> folds;  // ascending
  int complete = 0;        // of those that the floor beats one by one
};

// Takes out incomplete members that score below the floor on their own rows (of a
// forward split: complete ones, too), and all members if they score below it together.
LeftOut LeaveOutPoor(const Judge& judge, const Floor& floor, MembersByFold& members) {
  LeftOut left_out;
  Covered by_floor_together, together;
  for (auto it = members.begin(); it != members.end();) {
    Covered by_floor;
    AddFloorRows(judge, floor, it->first, by_floor);
    const double floor_score = judge.OnRows(by_floor.values, by_floor.rows);
    const double score = judge.OnRows(it->second.oof, by_floor.rows);
    const bool may_go = !it->second.member.complete || judge.forward;
    if (may_go && Better(judge.metric, floor_score, score)) {
      left_out.folds.push_back(it->first);
      left_out.complete += it->second.member.complete ? 1 : 0;
      it = members.erase(it);
    } else {
      AddFloorRows(judge, floor, it->first, by_floor_together);
      AddMemberRows(judge, it->second, together);
      ++it;
    }
  }
  if (Better(judge.metric, judge.OnRows(by_floor_together.values, by_floor_together.rows),
             judge.OnRows(together.values, together.rows))) {
    for (const auto& [fold, loaded] : members) left_out.folds.push_back(fold);
    std::sort(left_out.folds.begin(), left_out.folds.end());
    members.clear();
  }
  return left_out;
}

// What the members and the floor weigh: all together 1. By greedy selection the folds
// together stand against the floor, as no row has out-of-fold predictions of two folds.
struct EnsembleWeights {
  std::vector<double> members;  // in the order of the folds
  double floor = 0;
};

EnsembleWeights Weigh(EnsembleKind kind, const Judge& judge, const std::optional<Floor>& floor,
                      const MembersByFold& members) {
  EnsembleWeights weights;
  if (members.empty()) {
    weights.floor = 1;
    return weights;
  }
  weights.members.assign(members.size(), 1.0 / static_cast<double>(members.size()));
  if (kind == EnsembleKind::kWeighted) {
    std::vector<double> scores;
    for (const auto& [fold, loaded] : members) scores.push_back(loaded.member.score);
    weights.members = WeightsByScore(judge.metric, scores);
  }
  if (kind != EnsembleKind::kGreedy || !floor) return weights;
  Covered by_members, by_floor;
  for (const auto& [fold, loaded] : members) {
    AddMemberRows(judge, loaded, by_members);
    AddFloorRows(judge, *floor, fold, by_floor);
  }
  const std::vector<double> chosen = GreedyWeights(
      {by_members.values, by_floor.values},
      [&](absl::Span<const float> values) { return judge.OnRows(values, by_members.rows); },
      [&](double a, double b) { return Better(judge.metric, a, b); });
  weights.floor = chosen[1];
  for (double& weight : weights.members) weight *= chosen[0];
  return weights;
}

// What the members' and the floor's values give together. of: their values.
std::vector<float> Join(const EnsembleWeights& weights, const MembersByFold& members,
                        const std::optional<Floor>& floor) {
  std::vector<absl::Span<const float>> parts;
  std::vector<double> of_parts = weights.members;
  for (const auto& [fold, loaded] : members) parts.push_back(loaded.test);
  if (weights.floor > 0) {
    parts.push_back(floor->test.values);
    of_parts.push_back(weights.floor);
  }
  std::vector<float> joined(parts[0].size());
  Blend(parts, of_parts, absl::MakeSpan(joined));
  return joined;
}

int CompleteMembers(const std::vector<Member>& members) {
  return static_cast<int>(std::count_if(members.begin(), members.end(),
                                        [](const Member& member) { return member.complete; }));
}

// The Prediction that the members would make, without its files. Quality tells how much
// of the plan was done, so complete folds that were left out count for it.
PublishedPrediction Describe(const PublishRequest& request, const Judge& judge,
                             const MembersByFold& members, int complete_left_out,
                             const std::optional<Floor>& floor, const EnsembleWeights& weights,
                             absl::Span<const float> test_values) {
  PublishedPrediction p;
  Covered covered;
  for (const auto& [fold, loaded] : members) {
    p.members.push_back(loaded.member);
    p.members.back().weight = weights.members[p.members.size() - 1];
    AddMemberRows(judge, loaded, covered);
  }
  p.floor_weight = weights.floor;
  if (!members.empty() && weights.floor > 0) {
    Covered of_floor;
    for (const auto& [fold, loaded] : members) AddFloorRows(judge, *floor, fold, of_floor);
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
  const int complete = CompleteMembers(p.members) + complete_left_out;
  p.quality =
      complete == request.spec_folds && !request.plan_cut ? Quality::kFull : Quality::kDegraded;
  if (members.empty()) p.quality = Quality::kFloor;
  return p;
}

// Whether the members score at least as well as the standing Prediction on the
// rows that both cover.
bool NotWorse(const PublishRequest& request, const Judge& judge, const MembersByFold& members,
              const std::optional<Floor>& floor, const PublishedPrediction& standing) {
  Covered mine, theirs;
  const auto add_mine = [&](int fold) {
    const auto it = members.find(fold);
    if (it != members.end()) return AddMemberRows(judge, it->second, mine);
    AddFloorRows(judge, *floor, fold, mine);
  };
  if (standing.members.empty()) {
    // Against the floor: on the members' rows. The floor of then is not kept,
    // and the one of now is no worse.
    if (!floor) return true;
    for (const auto& [fold, loaded] : members) {
      add_mine(fold);
      AddFloorRows(judge, *floor, fold, theirs);
    }
  } else {
    for (const Member& member : standing.members) {
      if (members.count(member.fold) == 0 && !(members.empty() && floor)) continue;
      const absl::StatusOr<LoadedMember> loaded = Load(request, judge, member);
      if (!loaded.ok()) continue;
      add_mine(member.fold);
      AddMemberRows(judge, *loaded, theirs);
    }
  }
  if (mine.rows.empty()) return members.size() > standing.members.size();
  return !Better(judge.metric, judge.OnRows(theirs.values, theirs.rows),
                 judge.OnRows(mine.values, mine.rows));
}

// Whether `next` replaces the standing Prediction.
bool Replaces(const PublishRequest& request, const Judge& judge, const MembersByFold& members,
              const std::optional<Floor>& floor, const PublishedPrediction& next,
              const Manifest& standing_manifest) {
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
  if (CompleteMembers(next.members) > CompleteMembers(standing.members)) return true;
  return NotWorse(request, judge, members, floor, standing);
}

// The standing Prediction; none where its files are not what they should be.
// Its members count in either case.
struct Standing {
  std::optional<Manifest> manifest;
  bool whole = false;
};

Standing ReadStanding(const PublishRequest& request) {
  Standing standing;
  absl::StatusOr<Manifest> manifest = ReadStandingManifest(request.state_dir, request.job);
  if (!manifest.ok()) return standing;
  const PublishedPrediction& p = manifest->prediction;
  const auto digest = DigestFile(absl::StrCat(request.state_dir, "/", p.path));
  standing.whole = digest.ok() && digest->sha256 == p.sha256;
  standing.manifest = *std::move(manifest);
  return standing;
}

absl::StatusOr<std::optional<Floor>> ReadUsableFloor(const PublishRequest& request,
                                                     const Judge& judge) {
  absl::StatusOr<Floor> floor = ReadFloor(request.state_dir, request.job);
  const size_t oof = static_cast<size_t>(judge.table->schema().train_rows) * judge.columns;
  const size_t test = static_cast<size_t>(judge.test_rows()) * judge.columns;
  if (floor.ok() && floor->oof.values.size() == oof && floor->test.values.size() == test &&
      AllFinite(floor->oof.values) && AllFinite(floor->test.values)) {
    return std::optional<Floor>(*std::move(floor));
  }
  // Members, or what stands, answer without it.
  if (floor.ok() || absl::IsNotFound(floor.status()) || absl::IsDataLoss(floor.status())) {
    return std::optional<Floor>();
  }
  return floor.status();
}

// Rows in the test file's order.
absl::Status WriteFiles(const PublishRequest& request, const Table& table,
                        absl::Span<const float> values, const PredictionForm& form,
                        Manifest& manifest) {
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
  ASSIGN_OR_RETURN(const Judge judge, MakeJudge(request));
  ASSIGN_OR_RETURN(const JobPublishLock lock,
                   JobPublishLock::Take(request.state_dir, request.job, PublishLockTimeout()));
  ASSIGN_OR_RETURN(const std::optional<Floor> floor, ReadUsableFloor(request, judge));
  const Standing standing = ReadStanding(request);
  const std::vector<Member> earlier =
      standing.manifest ? standing.manifest->prediction.members : std::vector<Member>();

  MembersByFold members = ChooseMembers(request, judge, earlier);
  LeftOut left_out;
  if (floor) left_out = LeaveOutPoor(judge, *floor, members);
  if (members.empty() && !floor) {
    if (standing.whole) return standing.manifest->prediction;
    return absl::NotFoundError(
        absl::StrCat("job ", request.job, " has neither a floor nor a whole fold prediction"));
  }
  ASSIGN_OR_RETURN(const PredictionForm form, ReadPredictionForm(request.state_dir, request.job));
  const EnsembleWeights weights = Weigh(form.ensemble, judge, floor, members);
  const std::vector<float> values = Join(weights, members, floor);
  Manifest next;
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
    stays.left_out = left_out.folds;
    return stays;
  }
  if (floor) {
    next.floor_model = floor->model;
    next.floor_test_sha256 = floor->test_sha256;
  }
  RETURN_IF_ERROR(WriteFiles(request, *judge.table, values, form, next));
  return next.prediction;
}

}  // namespace traind
