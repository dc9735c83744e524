#include "worker/series/exponential_smoothing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "worker/series/nelder_mead.h"
#include "worker/series/season.h"

namespace traind {
namespace {

// Longer seasons have too many values to be smoothed; they are taken out before.
constexpr size_t kLongestPeriod = 24;
constexpr size_t kLeastKnown = 4;
constexpr size_t kFirstRows = 10;  // for the first level and slope
constexpr size_t kFirstSeasons = 3;
constexpr double kLeast = 1e-4;  // the bounds of weights, of Hyndman's package forecast
constexpr double kLeastPhi = 0.8, kMostPhi = 0.98;
constexpr int kCallsPerParameter = 60;
// A perfect fit has no logarithm.
constexpr double kLeastSquares = 1e-300;

size_t KnownOf(absl::Span<const double> values) {
  return values.size() - static_cast<size_t>(std::count_if(values.begin(), values.end(),
                                                           [](double x) { return std::isnan(x); }));
}

// Returns what is smoothed of a value: itself or its logarithm.
double SeenOf(double value, const SmoothingForm& form) {
  return form.logarithms ? std::log(std::max(value, std::numeric_limits<double>::min())) : value;
}

// Level before the first row and slope of a straight line through the values.
std::pair<double, double> LineThrough(absl::Span<const double> values) {
  const double n = static_cast<double>(values.size());
  double sum = 0, weighted = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    sum += values[i];
    weighted += static_cast<double>(i + 1) * values[i];
  }
  const double center = (n + 1) / 2;
  const double slope = n < 2 ? 0 : (weighted - center * sum) / (n * (n * n - 1) / 12);
  return {sum / n - slope * center, slope};
}

// The parameters of a fit as a point for the search.
class Parameters {
 public:
  Parameters(const SmoothingForm& form, SmoothingState state, double scale)
      : form_(form), state_(std::move(state)), scale_(scale) {}

  std::vector<double> Start(double alpha) const {
    std::vector<double> point = {alpha};
    if (form_.trend) point.push_back(0.1 * alpha);
    if (form_.period > 1) point.push_back(0.1 * (1 - alpha));
    if (form_.damped) point.push_back(0.95);
    point.push_back(0);
    if (form_.trend) point.push_back(0);
    return point;
  }
  std::vector<double> Steps(const std::vector<double>& start) const {
    std::vector<double> steps = {start[0] > 0.5 ? -0.2 : 0.2};
    if (form_.trend) steps.push_back(0.5 * start[1]);
    if (form_.period > 1) steps.push_back(start[0] > 0.5 ? 0.05 : 0.2);
    if (form_.damped) steps.push_back(-0.05);
    steps.push_back(0.5);
    if (form_.trend) steps.push_back(0.1);
    return steps;
  }
  // Empty if the point is out of bounds.
  std::optional<ExponentialSmoothing> At(const std::vector<double>& point) const {
    SmoothingWeights weights;
    size_t at = 0;
    weights.alpha = point[at++];
    if (form_.trend) weights.beta = point[at++];
    if (form_.period > 1) weights.gamma = point[at++];
    if (form_.damped) weights.phi = point[at++];
    if (weights.alpha < kLeast || weights.alpha > 1 - kLeast) return std::nullopt;
    if (form_.trend && (weights.beta < kLeast || weights.beta > weights.alpha)) return std::nullopt;
    if (form_.period > 1 && (weights.gamma < kLeast || weights.gamma > 1 - weights.alpha)) {
      return std::nullopt;
    }
    if (form_.damped && (weights.phi < kLeastPhi || weights.phi > kMostPhi)) return std::nullopt;
    SmoothingState state = state_;
    state.level += scale_ * point[at++];
    if (form_.trend) state.slope += scale_ * point[at++];
    return ExponentialSmoothing(form_, weights, std::move(state));
  }

 private:
  SmoothingForm form_;
  SmoothingState state_;
  double scale_;  // of a point's level and slope
};

double DeviationOf(absl::Span<const double> values) {
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  const double mean = sum / static_cast<double>(values.size());
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::max(std::sqrt(squares / static_cast<double>(values.size())), 1e-12);
}

// seasons: how many of the first ones the season is taken from.
SmoothingState FirstState(const std::vector<double>& values, const SmoothingForm& form,
                          size_t seasons) {
  SmoothingState state;
  std::vector<double> adjusted(
      values.begin(), values.begin() + static_cast<ptrdiff_t>(std::min(
                                           values.size(), std::max(kFirstRows, 2 * form.period))));
  if (form.period > 1) {
    const size_t rows = std::min(values.size(), seasons * form.period);
    state.season =
        SeasonOf(absl::MakeConstSpan(values).subspan(0, rows), form.period, SeasonKind::kAdditive);
    for (size_t i = 0; i < adjusted.size(); ++i) adjusted[i] -= state.season[i % form.period];
  }
  if (form.trend) {
    std::tie(state.level, state.slope) = LineThrough(adjusted);
  } else {
    const size_t rows = std::min(adjusted.size(), std::max<size_t>(form.period, 1));
    state.level = LineThrough(absl::MakeConstSpan(adjusted).subspan(0, rows)).first;
  }
  return state;
}

// A season that is too long to be smoothed, in front of the model of the rest.
class WithSeason final : public SeriesModel {
 public:
  WithSeason(std::vector<double> season, size_t next, std::unique_ptr<SeriesModel> rest)
      : season_(std::move(season)), next_(next), rest_(std::move(rest)) {}

  void Append(double value) override {
    rest_->Append(value - season_[next_]);
    next_ = (next_ + 1) % season_.size();
  }
  double Forecast(int64_t steps) const override {
    const size_t place = (next_ + static_cast<size_t>(steps) - 1) % season_.size();
    return rest_->Forecast(steps) + season_[place];
  }

 private:
  const std::vector<double> season_;
  size_t next_;
  const std::unique_ptr<SeriesModel> rest_;
};

}  // namespace

void ExponentialSmoothing::Append(double value) { Step(SeenOf(value, form_)); }

void ExponentialSmoothing::Step(double seen) {
  const double slope = weights_.phi * state_.slope;
  double ahead = state_.level + slope;
  if (form_.period > 1) ahead += state_.season[next_];
  double error = 0;  // of a missing value
  if (!std::isnan(seen)) {
    error = seen - ahead;
    squares_ += error * error;
    seen_sum_ += seen;
    ++known_;
  }
  state_.level += slope + weights_.alpha * error;
  state_.slope = slope + weights_.beta * error;
  if (form_.period > 1) {
    state_.season[next_] += weights_.gamma * error;
    if (++next_ == form_.period) next_ = 0;
  }
}

double ExponentialSmoothing::Ahead(int64_t steps) const {
  double value = state_.level;
  if (form_.trend) {
    const double n = static_cast<double>(steps);
    const double phi = weights_.phi;
    const double slopes = form_.damped ? phi * (1 - std::pow(phi, n)) / (1 - phi) : n;
    value += slopes * state_.slope;
  }
  if (form_.period > 1) {
    value += state_.season[(next_ + static_cast<size_t>(steps) - 1) % form_.period];
  }
  return value;
}

double ExponentialSmoothing::Forecast(int64_t steps) const {
  return form_.logarithms ? std::exp(Ahead(steps)) : Ahead(steps);
}

double ExponentialSmoothing::Aicc() const {
  const double n = static_cast<double>(known_);
  const double parameters = 1 + (form_.trend ? 1 : 0) + (form_.period > 1 ? 1 : 0) +
                            (form_.damped ? 1 : 0) + 1 + (form_.trend ? 1 : 0) +
                            static_cast<double>(form_.period - 1) + 1;
  const double left = n - parameters - 1;
  if (left <= 0) return std::numeric_limits<double>::infinity();
  double likelihood = n * std::log(std::max(squares_ / n, kLeastSquares));
  if (form_.logarithms) likelihood += 2 * seen_sum_;  // of the values themselves
  return likelihood + 2 * parameters + 2 * parameters * (parameters + 1) / left;
}

// The search for the parameters with the least sum of squared errors.
class ExponentialSmoothing::Search {
 public:
  // seen: what the model sees of the values.
  Search(absl::Span<const double> seen, const SmoothingForm& form, SmoothingState state,
         double scale)
      : seen_(seen), parameters_(form, std::move(state), scale) {
    for (const double alpha : {0.1, 0.5, 0.9}) {
      std::vector<double> point = parameters_.Start(alpha);
      const double squares = SquaresAt(point);
      if (!start_.empty() && !(squares < least_)) continue;
      start_ = std::move(point);
      least_ = squares;
    }
  }

  double least() const { return least_; }
  ExponentialSmoothing Run() const {
    const Minimum best =
        Minimise([this](const std::vector<double>& point) { return SquaresAt(point); }, start_,
                 parameters_.Steps(start_), kCallsPerParameter * static_cast<int>(start_.size()));
    return *Passed(best.at);
  }

 private:
  std::optional<ExponentialSmoothing> Passed(const std::vector<double>& point) const {
    std::optional<ExponentialSmoothing> model = parameters_.At(point);
    if (!model) return model;
    for (const double value : seen_) model->Step(value);
    return model;
  }
  double SquaresAt(const std::vector<double>& point) const {
    const auto model = Passed(point);
    return model ? model->squares() : std::numeric_limits<double>::infinity();
  }

  absl::Span<const double> seen_;
  Parameters parameters_;
  std::vector<double> start_;
  double least_ = std::numeric_limits<double>::infinity();
};

ExponentialSmoothing ExponentialSmoothing::Fit(absl::Span<const double> values,
                                               const SmoothingForm& form) {
  std::vector<double> seen;
  for (const double value : values) seen.push_back(SeenOf(value, form));
  const std::vector<double> whole = WithoutGaps(seen);
  const double scale = DeviationOf(whole);
  Search best(seen, form, FirstState(whole, form, kFirstSeasons), scale);
  if (form.period > 1) {
    // The season of all rows is the better first one if seasons hardly change.
    Search other(seen, form, FirstState(whole, form, whole.size()), scale);
    if (other.least() < best.least()) best = std::move(other);
  }
  return best.Run();
}

std::unique_ptr<SeriesModel> ExponentialSmoothing::FitBest(absl::Span<const double> values,
                                                           size_t period, size_t most_rows) {
  if (values.size() > most_rows) values = values.subspan(values.size() - most_rows);
  if (KnownOf(values) < kLeastKnown) return nullptr;
  std::vector<double> whole = WithoutGaps(values);
  const bool seasonal = period > 1 && whole.size() >= 2 * period;
  if (seasonal && period > kLongestPeriod) {
    if (!IsSeasonal(whole, period)) return FitBest(values, 1, most_rows);
    std::vector<double> season = SeasonOf(whole, period, SeasonKind::kAdditive);
    std::vector<double> rest(values.begin(), values.end());
    for (size_t i = 0; i < rest.size(); ++i) rest[i] -= season[i % period];
    auto model = FitBest(rest, 1, most_rows);
    return std::make_unique<WithSeason>(std::move(season), values.size() % period,
                                        std::move(model));
  }
  const bool positive = *std::min_element(whole.begin(), whole.end()) > 0;
  std::unique_ptr<ExponentialSmoothing> best;
  const auto consider = [&](const SmoothingForm& form) {
    auto model = std::make_unique<ExponentialSmoothing>(Fit(values, form));
    if (best == nullptr || model->Aicc() < best->Aicc()) best = std::move(model);
  };
  for (const bool logarithms : {false, true}) {
    if (logarithms && !positive) continue;
    for (const size_t length : {size_t{1}, period}) {
      if (length > 1 && !seasonal) continue;
      consider({false, false, length, logarithms});
      consider({true, true, length, logarithms});
      // A line of logarithms soon runs away.
      if (!logarithms) consider({true, false, length, false});
      if (period == 1) break;
    }
  }
  return best;
}

}  // namespace traind
