#include "server/plan/planner.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>

#include "server/plan/extra_seeds.h"
#include "server/plan/fold_costs.h"
#include "server/plan/plan_text.h"

namespace traind {
namespace {

// Past this share of the Plan's epochs a running fold gets more at once, if there is time.
constexpr double kNearTheEnd = 0.5;
// Share of the window in which a running fold that was slow may turn out to be fast.
constexpr double kMoment = 0.05;

// Less than this is not told apart from the rest of a fold's cost.
constexpr double kToldTransfer_s = 0.1;

// One planning: the input and the folds and epochs as they are cut.
class Planning {
 public:
  explicit Planning(const PlanInput& in) : in_(in) {
    folds_ = in.last ? in.last->folds : in.spec->folds;
    epochs_ = in.last ? in.last->epochs : in.spec->epochs;
    row_share_ = in.last ? in.last->row_share : 1;
    extra_seeds_ = ExtraSeeds(in, epochs_, row_share_).planned();
    any_time_ = AnswersAtAnyTime(*in.spec);
    for (const FoldView& fold : in.folds) {
      if (!IsExtra(fold) && fold.started) started_ = std::max(started_, fold.fold + 1);
    }
  }

  PlanOutput Run();

 private:
  absl::Time Finish(int folds, int epochs) const {
    return in_.now + absl::Seconds(EstimateSeconds(Left(folds, epochs)));
  }
  // The end of training: the last fold's prediction has the reserve for itself.
  absl::Time TrainFinish(int folds, int epochs) const {
    return Finish(folds, epochs) - absl::Seconds(in_.cost.predict_s);
  }
  WorkLeft Left(int folds, int epochs) const;
  int FoldsThatFit(int folds, int least, int epochs) const;
  int EpochsThatFit(int folds, int least) const;
  int EpochsDone() const;
  void Cut();
  void CutFoldsToShares(int least);
  int MostEpochs(int folds) const;
  void CutLate();
  void CutRows();
  double MostRows(int folds);
  void GrowRows();
  void GrowEpochs();
  void GrowFolds();
  void GrowExtraSeeds();
  void GiveBackExtraSeeds(absl::Time train_limit);
  void FillPlan(absl::Duration reserve);
  bool GrewLately() const;
  void StopSoftly();
  bool Fits(int folds, int epochs) const {
    const double seconds = EstimateSeconds(Left(folds, epochs)) * (in_.confident ? 1 : 0.5);
    return in_.now + absl::Seconds(seconds) <= limit_;
  }
  // Cut from the Plan before it had an Attempt.
  bool CanComeBack(const FoldView& fold) const {
    return fold.state == TaskState::kDropped && !fold.started && in_.last &&
           fold.fold >= in_.last->folds;
  }
  void SetLimit();
  void SetLimitOfTheRest(absl::Time train_limit);
  void KeepToTurn();
  std::string Estimate(int folds, int epochs) const;
  std::string DoneEarly(absl::string_view measured, const std::string& with) const;
  double EpochSeconds() const { return CostOfShare(in_.cost, row_share_).epoch_s; }
  DecisionRule Rule() const {
    return in_.trigger == Trigger::kFirstFold ? DecisionRule::kB3 : DecisionRule::kB2;
  }
  void Decide(DecisionRule rule, std::string cause, std::string from, std::string to) {
    out_.decisions.push_back({in_.now, rule, std::move(cause), std::move(from), std::move(to)});
  }
  // Whether that holds for one of the folds; extra seeds do not count.
  template <typename Condition>
  bool AnyFold(Condition holds) const {
    return std::any_of(in_.folds.begin(), in_.folds.end(),
                       [&](const FoldView& f) { return !IsExtra(f) && holds(f); });
  }

  const PlanInput& in_;
  PlanOutput out_;
  int folds_ = 0, epochs_ = 0;
  double row_share_ = 1;  // share of the rows that an epoch sees
  int started_ = 0;       // folds below it have had an Attempt
  bool any_time_ = false;
  int extra_seeds_ = 0;  // models besides the folds' first ones
  absl::Time limit_;
  std::string limit_text_;
};

// The work of the folds alone: extra seeds give way to them.
WorkLeft Planning::Left(int folds, int epochs) const {
  WorkLeft work;
  work.gangs = in_.gangs;
  work.sharing = in_.sharing;
  if (any_time_) epochs = ExpectedEpochs(in_, epochs);
  for (const FoldView& fold : in_.folds) {
    if (IsExtra(fold) || (IsTerminal(fold.state) && !CanComeBack(fold))) continue;
    if (fold.state == TaskState::kRunning) {
      work.running.push_back(SecondsLeft(in_, fold, epochs, row_share_));
    } else if (fold.fold < folds) {
      work.pending.push_back(SecondsLeft(in_, fold, epochs, row_share_));
    }
  }
  return work;
}

void Planning::SetLimit() {
  const double share = in_.spec->shares.plan;
  const absl::Time train_limit = out_.train_end + absl::Seconds(in_.cost.predict_s);
  if (in_.trigger == Trigger::kFacts) {
    limit_ = train_limit;
    limit_text_ = absl::StrCat(Text(limit_ - in_.window.start), " until prediction has to begin");
    return KeepToTurn();
  }
  limit_ = in_.window.At(share);
  limit_text_ = absl::StrFormat("%s (%g %% of %s)", Text(limit_ - in_.window.start), 100 * share,
                                Text(in_.window.length()));
  // Begun late, the share is of what is left.
  if (in_.now + share * (train_limit - in_.now) > limit_) SetLimitOfTheRest(train_limit);
  if (train_limit < limit_) {
    limit_ = train_limit;
    limit_text_ = absl::StrCat(Text(limit_ - in_.window.start), " until prediction has to begin");
  }
  KeepToTurn();
}

void Planning::KeepToTurn() {
  const absl::Time end = in_.turn_end + absl::Seconds(in_.cost.predict_s);
  if (end >= limit_) return;
  limit_ = end;
  limit_text_ = absl::StrCat(Text(limit_ - in_.window.start), " until others have their turn");
}

void Planning::SetLimitOfTheRest(absl::Time train_limit) {
  const double share = in_.spec->shares.plan;
  limit_ = in_.now + share * (train_limit - in_.now);
  limit_text_ = absl::StrFormat("%s (%g %% of the %s left)", Text(limit_ - in_.window.start),
                                100 * share, Text(train_limit - in_.now));
  KeepToTurn();
}

std::string Planning::Estimate(int folds, int epochs) const {
  const FoldCost& cost = in_.cost;
  std::string text =
      in_.trigger == Trigger::kFirstFold
          ? absl::StrFormat("the first fold has used more than %g %% of %s; ",
                            100 * in_.spec->shares.first_fold, Text(in_.window.length()))
          : "";
  if (cost.step_s > 0) {
    absl::StrAppendFormat(&text, "%s/step x %d steps", Text(absl::Seconds(cost.step_s)),
                          cost.steps_per_epoch);
  } else {
    absl::StrAppendFormat(&text, "%s/epoch", Text(absl::Seconds(cost.epoch_s)));
  }
  absl::StrAppendFormat(&text, " x %s x %s / %d in parallel", Count(epochs, "epoch"),
                        Count(folds, "fold"), in_.gangs);
  if (row_share_ < 1) absl::StrAppend(&text, ", with ", RowsText(row_share_));
  if (in_.sharing > 1) absl::StrAppendFormat(&text, ", sharing slots %.1f to 1", in_.sharing);
  absl::StrAppend(&text, " with evaluation, prediction");
  if (in_.transfer_s >= kToldTransfer_s) {
    absl::StrAppend(&text, ", ", Text(absl::Seconds(in_.transfer_s)),
                    " a fold for its files to travel");
  }
  absl::StrAppend(&text, " and the ", Text(in_.now - in_.window.start),
                  " used = ", Text(Finish(folds, epochs) - in_.window.start), " > ", limit_text_);
  return text;
}

// Why something can come back: with what there is of it all would be done early.
std::string Planning::DoneEarly(absl::string_view measured, const std::string& with) const {
  return absl::StrFormat(
      "%s/%s now; with %s all would be done at %s of %s", Text(absl::Seconds(in_.cost.epoch_s)),
      measured, with, Text(Finish(folds_, epochs_) - in_.window.start), Text(in_.window.length()));
}

// The most folds, at least `least`, that fit with so many epochs. Where none fits,
// what is cheapest: the most that take no longer than the least would.
int Planning::FoldsThatFit(int folds, int least, int epochs) const {
  const absl::Time cheapest = Finish(std::min(folds, least), epochs);
  while (folds > least && !Fits(folds, epochs) && Finish(folds, epochs) > cheapest) --folds;
  return folds;
}

// Cut step by step until they fit, to `least` at the fewest.
int Planning::EpochsThatFit(int folds, int least) const {
  int epochs = epochs_;
  while (!Fits(folds, epochs) && epochs > least) {
    const int fewer = std::max(least, CutEpochs(epochs, [&](int e) { return Fits(folds, e); }));
    // Epochs that have been done already cannot be saved.
    if (Finish(folds, fewer) >= Finish(folds, epochs)) break;
    epochs = fewer;
  }
  return epochs;
}

// At least one; the most that a running fold has begun, and what it does of short ones in
// a moment, so that it does not end in a slow one before B9 looks again.
int Planning::EpochsDone() const {
  double most = 1;
  const double moment_s = kMoment * absl::ToDoubleSeconds(in_.window.length());
  const double more = in_.confident ? std::floor(moment_s / EpochSeconds()) : 0;
  for (const FoldView& fold : in_.folds) {
    if (!IsExtra(fold) && fold.state == TaskState::kRunning)
      most = std::max(most, std::ceil(fold.epochs_done + 0.01) + more);
  }
  return std::min(epochs_, static_cast<int>(most));
}

void Planning::Cut() {
  SetLimit();
  if (Fits(folds_, epochs_)) return;
  if (in_.trigger == Trigger::kFacts && Fits(folds_, ExpectedEpochs(in_, epochs_))) return;
  const int least = std::min(folds_, std::max(1, started_));
  if (any_time_) return CutFoldsToShares(least);
  // A Plan with fewer epochs than a running fold has done saves nothing; the fold would end.
  const int done = EpochsDone();
  const int useful = std::max(done, std::min(epochs_, UsefulEpochs(in_.spec->epochs)));
  int folds = folds_;
  // Midway the folds that have not run yet are worth more than all epochs of the rest.
  if (in_.trigger != Trigger::kFacts) {
    folds = CutFolds(folds_, started_);
    // More folds stay where they fit.
    while (folds_ > 5 && folds + 1 < folds_ && Fits(folds + 1, epochs_)) ++folds;
  }
  // A few models that have learnt something are worth more than many that have not.
  int epochs = EpochsThatFit(folds, useful);
  if (!Fits(folds, epochs)) {
    folds = FoldsThatFit(folds, least, epochs);
    epochs = EpochsThatFit(folds, in_.confident ? done : useful);
    if (!Fits(folds, epochs)) folds = FoldsThatFit(folds, least, epochs);
    // A model that cannot have one epoch does not need more than one either.
    if (in_.spec->subsample && !Fits(folds, done)) epochs = done;
  }
  // Each told as one: nothing happened between the steps.
  if (folds < folds_) {
    Decide(Rule(), Estimate(folds_, epochs_), Count(folds_, "fold"), Count(folds, "fold"));
    folds_ = folds;
  }
  if (epochs < epochs_) {
    Decide(Rule(), Estimate(folds_, epochs_), Count(epochs_, "epoch"), Count(epochs, "epoch"));
    epochs_ = epochs;
  }
  if (in_.spec->subsample && epochs_ == 1 && !Fits(folds_, epochs_)) CutRows();
}

// A model that answers at any time loses no epochs: the folds share the time that there is. Where
// the shares are too short for useful models, there are fewer folds.
void Planning::CutFoldsToShares(int least) {
  const int useful = UsefulEpochs(in_.spec->epochs);
  const int folds = FoldsThatFit(folds_, least, useful);
  if (folds == folds_) return;
  Decide(Rule(), Estimate(folds_, useful), Count(folds_, "fold"), Count(folds, "fold"));
  folds_ = folds;
}

// Past the share at which training that cannot finish stops (B5): a shorter epoch may.
void Planning::CutLate() {
  SetLimit();
  if (in_.spec->subsample && epochs_ == 1 && !Fits(folds_, epochs_)) CutRows();
}

// The last thing to go: a model that has seen a part of the rows is still one.
void Planning::CutRows() {
  const std::string cause = Estimate(folds_, epochs_);
  const absl::Time finish = Finish(folds_, epochs_);
  const double before = row_share_;
  row_share_ =
      traind::CutRows(before, LeastRows(in_.cost.steps_per_epoch), [this](double row_share) {
        row_share_ = row_share;
        return Fits(folds_, epochs_);
      });
  if (Finish(folds_, epochs_) >= finish) row_share_ = before;  // they have been seen already
  if (row_share_ < before) Decide(Rule(), cause, RowsText(before), RowsText(row_share_));
}

// Not again at once: a Plan that follows every wave of the machine's load helps
// nobody. But what was cut by timed steps comes back once whole epochs were measured, and
// a fold that is about to reach the epochs of a cut Plan would end there.
bool Planning::GrewLately() const {
  const bool ending = AnyFold([this](const FoldView& f) {
    return f.state == TaskState::kRunning && f.epochs_done >= kNearTheEnd * epochs_;
  });
  if (ending || in_.trigger == Trigger::kMeasured) return false;
  const absl::Duration rest =
      std::max(0.05 * in_.window.length(), absl::Seconds(2 * EpochSeconds()));
  return in_.last && in_.now - in_.last->at < rest;
}

// The most epochs of the spec's that fit with so many folds; at least epochs_.
int Planning::MostEpochs(int folds) const {
  int low = epochs_, high = in_.spec->epochs;  // low fits, if anything does
  while (low < high) {
    const int middle = low + (high - low + 1) / 2;
    if (Fits(folds, middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

// B9: the steps that were timed were slower than those that followed, so the cut was
// deeper than it had to be. Epochs come back, as far as folds that still train can
// use them; only a gain worth a new schedule counts, or one that gives all that the spec asks for.
void Planning::GrowEpochs() {
  if (epochs_ >= in_.spec->epochs || GrewLately()) return;
  const int epochs = MostEpochs(folds_);
  const bool all = epochs == in_.spec->epochs;
  if (!all && epochs < epochs_ + std::max(1, epochs_ / 4)) return;
  Decide(DecisionRule::kB9, DoneEarly("epoch", Count(epochs_, "epoch")), Count(epochs_, "epoch"),
         Count(epochs, "epoch"));
  epochs_ = epochs;
}

double Planning::MostRows(int folds) {
  const double before = row_share_;
  const double most = traind::MostRows(before, [this, folds](double row_share) {
    row_share_ = row_share;
    return Fits(folds, epochs_);
  });
  row_share_ = before;
  return most;
}

// B9: before epochs, for all folds that are still to see rows.
void Planning::GrowRows() {
  if (row_share_ >= 1 || GrewLately()) return;
  const double row_share = MostRows(folds_);
  if (row_share < std::min(1.0, 1.25 * row_share_)) return;
  Decide(DecisionRule::kB9, DoneEarly("epoch of all rows", RowsText(row_share_)),
         RowsText(row_share_), RowsText(row_share));
  row_share_ = row_share;
}

// B9: all folds of the Plan have slots or are done, and there is time for more. Where
// those had fewer epochs than a model needs, a few that get more are worth more than
// many like them.
void Planning::GrowFolds() {
  const int most = in_.spec->folds;
  int busy = 0;
  for (const FoldView& fold : in_.folds) {
    if (IsExtra(fold)) continue;
    if (fold.state == TaskState::kPending && fold.fold < folds_) return;
    if (fold.state == TaskState::kRunning) ++busy;
  }
  const bool running = busy > 0;
  // A fold for a gang that has nothing to do takes nothing from those that train.
  if (folds_ >= most || (running && busy >= in_.gangs && GrewLately())) return;
  int folds = folds_, epochs = epochs_;
  const double before = row_share_;
  double row_share = row_share_;
  if (row_share_ < 1 || epochs_ < UsefulEpochs(in_.spec->epochs)) {
    if (running) return;  // they may get more
    folds = std::min(most, folds_ + std::max(in_.gangs, 1));
    row_share_ = row_share = MostRows(folds);
    if (row_share >= 1) epochs = MostEpochs(folds);
    row_share_ = before;
  }
  if (epochs == epochs_ && row_share == row_share_) {
    folds = folds_;
    const int expected = ExpectedEpochs(in_, epochs_);
    while (folds < most && Fits(folds + 1, expected)) ++folds;
    // A model that is good enough with fewer epochs than the others is better than none.
    if (folds == folds_ && !running) {
      const int side_by_side = std::min(most, folds_ + std::max(in_.gangs, 1));
      const int least = std::min(expected, UsefulEpochs(in_.spec->epochs));
      int fewer = expected;
      while (fewer > least && !Fits(side_by_side, fewer)) --fewer;
      if (!Fits(side_by_side, fewer)) return;
      folds = side_by_side;
      if (!any_time_) epochs = fewer;
    }
  }
  if (folds == folds_) return;
  const std::string cause = DoneEarly("epoch", Count(folds_, "fold"));
  Decide(DecisionRule::kB9, cause, Count(folds_, "fold"), Count(folds, "fold"));
  if (row_share > row_share_)
    Decide(DecisionRule::kB9, cause, RowsText(row_share_), RowsText(row_share));
  if (epochs != epochs_) {
    Decide(DecisionRule::kB9,
           epochs > epochs_ ? cause
                            : absl::StrCat("further folds fit only with ", Count(epochs, "epoch"),
                                           ": ", Estimate(folds, epochs_)),
           Count(epochs_, "epoch"), Count(epochs, "epoch"));
  }
  folds_ = folds;
  row_share_ = row_share;
  epochs_ = epochs;
}

// B9: a gang has nothing to do, and nothing that was cut can still come back.
void Planning::GrowExtraSeeds() {
  const ExtraSeeds extra(in_, epochs_, row_share_);
  if (!extra.MayGrow(folds_)) return;
  const int more = extra.MoreThatFit(limit_);
  if (more == 0) return;
  const int models = folds_ + extra_seeds_;
  const std::string cost =
      in_.cost.known()
          ? absl::StrFormat("%s/epoch and %.3g epochs a model now",
                            Text(absl::Seconds(EpochSeconds())), EpochsOfTheLongest(in_, epochs_))
          : "no epoch was measured here yet";
  Decide(DecisionRule::kB9,
         absl::StrCat(cost, "; ", Text(in_.now - in_.window.start), " of ",
                      Text(in_.window.length()), " used, and no fold can use more"),
         Count(models, "model"), Count(models + more, "model"));
  extra_seeds_ += more;
}

// Those that wait go where they would be too late, or where folds cannot have all that they
// were to have.
void Planning::GiveBackExtraSeeds(absl::Time train_limit) {
  const ExtraSeeds extra(in_, epochs_, row_share_);
  const int waiting = extra.fresh() - (extra.planned() - extra_seeds_);
  const bool all = !out_.decisions.empty() || in_.stopping || out_.stopping;
  const int fewer = all ? waiting : extra.TooLate(train_limit);
  if (fewer <= 0) return;
  const int models = folds_ + extra_seeds_;
  Decide(DecisionRule::kB9,
         absl::StrCat("with ", Count(models, "model"), " all would be done at ",
                      Text(extra.DoneAt(0) - in_.window.start), ", prediction has to begin at ",
                      Text(train_limit - in_.window.start)),
         Count(models, "model"), Count(models - fewer, "model"));
  extra_seeds_ -= fewer;
}

void Planning::StopSoftly() {
  out_.stopping = true;
  int running = 0;
  std::vector<int> pending;
  for (const FoldView& fold : in_.folds) {
    if (fold.state == TaskState::kRunning) ++running;
    if (!IsExtra(fold) && fold.state == TaskState::kPending && fold.fold < folds_)
      pending.push_back(fold.fold);
  }
  const double left_s = absl::ToDoubleSeconds(out_.train_end - in_.now);
  const double turn_s = in_.cost.known() ? in_.cost.overhead_s + EpochSeconds() : 0;
  size_t kept = pending.size();
  const int gangs = std::max(in_.gangs, 1);
  const auto turns = [&] { return (running + static_cast<int>(kept) + gangs - 1) / gangs; };
  while (kept > 0 && (left_s <= 0 || left_s / turns() < turn_s)) --kept;
  out_.dropped.assign(pending.begin() + static_cast<ptrdiff_t>(kept), pending.end());
  if (in_.stopping && out_.dropped.empty()) return;
  const absl::Duration used = in_.now - in_.window.start;
  std::string cause = absl::StrFormat("%s of %s used, more than %g %%", Text(used),
                                      Text(in_.window.length()), 100 * in_.spec->shares.stop);
  if (in_.cost.known()) {
    absl::StrAppend(&cause, "; the rest of ", Count(folds_, "fold"), " x ", Count(epochs_, "epoch"),
                    " takes until ", Text(Finish(folds_, epochs_) - in_.window.start));
  }
  std::string to =
      absl::StrCat("training stops at ", Text(std::max(out_.train_end, in_.now) - in_.window.start),
                   " and predicts with what there is");
  if (!out_.dropped.empty()) {
    absl::StrAppend(&to, "; ", out_.dropped.size() == 1 ? "fold " : "folds ",
                    absl::StrJoin(out_.dropped, ", "), " dropped");
  }
  Decide(DecisionRule::kB5, std::move(cause),
         absl::StrCat(Count(folds_, "fold"), " x ", Count(epochs_, "epoch")), std::move(to));
}

void Planning::FillPlan(absl::Duration reserve) {
  Plan& plan = out_.plan;
  plan.revision = in_.last ? in_.last->revision + 1 : 1;
  plan.folds = folds_;
  plan.epochs = epochs_;
  plan.row_share = row_share_;
  plan.ranks = in_.spec->slots;
  plan.parallel_folds = std::clamp(in_.gangs, 1, folds_);
  plan.reserve = reserve;
  plan.at = in_.now;
  const ExtraSeeds extra(in_, epochs_, row_share_);
  // Without a deadline they will all come.
  const bool all = !in_.window.bounded() && in_.may_grow && !in_.stopping;
  const int models = all ? std::max(extra_seeds_, extra.most()) : extra_seeds_;
  plan.models = folds_ + models;
  if (in_.cost.known()) {
    WorkLeft work = Left(folds_, epochs_);
    extra.AddTo(work, models);
    const absl::Time finish = in_.now + absl::Seconds(EstimateSeconds(work));
    out_.estimated_finish = std::min(finish, in_.window.deadline);
    if (in_.cost.step_s > 0) plan.step_s = in_.cost.step_s;
    plan.estimate = finish - std::min(in_.train_start, in_.now);
  }
  if (in_.cost.known() && in_.window.bounded()) {
    for (Decision& d : out_.decisions) {
      d.effect = absl::StrCat("done after ", Text(out_.estimated_finish - in_.window.start), " of ",
                              Text(in_.window.length()));
    }
  }
}

PlanOutput Planning::Run() {
  const Spec& spec = *in_.spec;
  const bool bounded = in_.window.bounded();
  const double stop_s = std::max(StopSeconds(in_.cost), in_.finishing_s);
  const absl::Duration reserve = Reserve(in_.window, spec, stop_s, in_.finalize);
  out_.train_end = std::min(TrainEnd(in_.window, spec, reserve), in_.train_limit);
  const absl::Time train_limit = out_.train_end + absl::Seconds(in_.cost.predict_s);
  const bool late = bounded && in_.now >= in_.window.At(spec.shares.stop);
  const bool cuts = bounded && in_.cost.known() && !in_.stopping;
  if (cuts && !(late && in_.trigger == Trigger::kFacts)) {
    Cut();
  } else if (cuts) {
    CutLate();
  }
  if (bounded && in_.cost.known()) GiveBackExtraSeeds(train_limit);
  const bool trains = AnyFold(
      [](const FoldView& f) { return f.state == TaskState::kRunning && f.epochs_done >= 1; });
  const bool waits =
      AnyFold([this](const FoldView& f) { return f.fold < folds_ && !IsTerminal(f.state); });
  const bool grows = in_.confident && in_.may_grow && !in_.stopping && out_.decisions.empty() &&
                     (in_.trigger == Trigger::kFacts || in_.trigger == Trigger::kMeasured);
  if (grows && bounded) {
    SetLimitOfTheRest(train_limit);
    if (in_.cost.known()) {
      if (waits && !late) GrowRows();
      // One that comes back may do so late, and more time may be left by then.
      const bool back =
          AnyFold([](const FoldView& f) { return f.state == TaskState::kRunning && f.back; });
      if (trains && (!late || back) && row_share_ >= 1) GrowEpochs();
      if (out_.decisions.empty()) GrowFolds();
    }
    if (out_.decisions.empty()) GrowExtraSeeds();
  } else if (grows && ExtraSeeds(in_, epochs_, row_share_).MayGrow(folds_)) {
    extra_seeds_ = ExtraSeeds(in_, epochs_, row_share_).most();  // as the spec asks for
  }
  const bool busy = AnyFold([this](const FoldView& f) {
    return f.state == TaskState::kRunning || (f.state == TaskState::kPending && f.fold < folds_);
  });
  const absl::Time finish = in_.cost.known() ? TrainFinish(folds_, epochs_) : absl::InfinitePast();
  if (busy && (in_.stopping || MustStop(in_.window, spec, in_.now, finish, out_.train_end))) {
    StopSoftly();
    GiveBackExtraSeeds(train_limit);
  }
  FillPlan(reserve);
  out_.extra_seeds = extra_seeds_;
  out_.changed = !in_.last || Differs(out_.plan, *in_.last, in_.window.length());
  return std::move(out_);
}

}  // namespace

PlanOutput MakePlan(const PlanInput& input) { return Planning(input).Run(); }

}  // namespace traind
