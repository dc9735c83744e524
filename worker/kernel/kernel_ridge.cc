#include "worker/kernel/kernel_ridge.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <eigen3/Eigen/Cholesky>
#include <eigen3/Eigen/Core>
#include <limits>
#include <utility>

namespace traind {
namespace {

using Index = Eigen::Index;
using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using RowMajorFloats = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr Index kRowsAtOnce = 256;
constexpr Index kColumnsAtOnce = 64;

RowMajor ToDouble(const KernelRows& rows) {
  return Eigen::Map<const RowMajorFloats>(rows.values.data(), rows.rows, rows.width).cast<double>();
}

// k(x, z) for all rows of both. norms: squared lengths of the rows of z.
Eigen::MatrixXd Kernel(const RowMajor& x, const RowMajor& z, const Eigen::VectorXd& norms,
                       double gamma) {
  Eigen::MatrixXd kernel = -2 * x * z.transpose();
  kernel.colwise() += x.rowwise().squaredNorm();
  kernel.rowwise() += norms.transpose();
  kernel.array() = (-gamma * kernel.array().max(0)).exp();  // in place
  return kernel;
}

// The diagonal of the inverse of L L^T: squared lengths of the columns of the inverse of L, which
// is a triangle, too.
Eigen::VectorXd InverseDiagonal(const Eigen::MatrixXd& factors) {
  const Index n = factors.rows();
  Eigen::VectorXd diagonal(n);
  for (Index begin = 0; begin < n; begin += kColumnsAtOnce) {
    const Index columns = std::min(kColumnsAtOnce, n - begin);
    Eigen::MatrixXd part = Eigen::MatrixXd::Identity(n - begin, columns);
    factors.bottomRightCorner(n - begin, n - begin)
        .triangularView<Eigen::Lower>()
        .solveInPlace(part);
    diagonal.segment(begin, columns) = part.colwise().squaredNorm().transpose();
  }
  return diagonal;
}

// Softmax of temperature x values, times the weights of the classes, in place.
void ToProbabilities(const KernelTask& task, double temperature, double* values) {
  const double most = *std::max_element(values, values + task.outputs);
  double sum = 0;
  for (int i = 0; i < task.outputs; ++i) {
    values[i] = std::exp(temperature * (values[i] - most));
    if (!task.class_weights.empty()) values[i] *= task.class_weights[static_cast<size_t>(i)];
    sum += values[i];
  }
  for (int i = 0; i < task.outputs; ++i) values[i] /= sum;
}

double CrossEntropy(double temperature, absl::Span<const double> values, const KernelTask& task) {
  const auto outputs = static_cast<size_t>(task.outputs);
  double sum = 0;
  for (size_t i = 0; i < static_cast<size_t>(task.rows.rows); ++i) {
    const double* const row = values.data() + i * outputs;
    const double* const target = task.targets.data() + i * outputs;
    const double most = *std::max_element(row, row + outputs);
    double total = 0, own = 0;
    for (size_t c = 0; c < outputs; ++c) {
      total += std::exp(temperature * (row[c] - most));
      own += target[c] * (row[c] - most);
    }
    sum += std::log(total) - temperature * own;
  }
  return sum;
}

}  // namespace

double MedianSquaredDistance(const KernelRows& rows) {
  constexpr int64_t kMostPairs = 1 << 18;
  const int64_t pairs = rows.rows * (rows.rows - 1) / 2;
  const int64_t step = std::max<int64_t>(1, (pairs + kMostPairs - 1) / kMostPairs);
  std::vector<double> found;
  int64_t next = 0, at = 0;
  for (int64_t i = 1; i < rows.rows; ++i) {
    for (; next < at + i; next += step) {
      const float* const a = rows.values.data() + i * rows.width;
      const float* const b = rows.values.data() + (next - at) * rows.width;
      double sum = 0;
      for (int64_t k = 0; k < rows.width; ++k) {
        const double difference = static_cast<double>(a[k]) - b[k];
        sum += difference * difference;
      }
      if (sum > 0) found.push_back(sum);
    }
    at += i;
  }
  if (found.empty()) return 1;
  const auto middle = found.begin() + static_cast<std::ptrdiff_t>(found.size() / 2);
  std::nth_element(found.begin(), middle, found.end());
  return *middle;
}

// The cross-entropy is convex in the temperature.
double BestTemperature(absl::Span<const double> values, const KernelTask& task) {
  constexpr double kLeast = 0.1, kMost = 200, kClose = 1e-3;
  const double golden = (std::sqrt(5.0) - 1) / 2;
  double low = std::log(kLeast), high = std::log(kMost);
  const auto loss = [&](double at) { return CrossEntropy(std::exp(at), values, task); };
  double left = high - golden * (high - low), right = low + golden * (high - low);
  double of_left = loss(left), of_right = loss(right);
  while (high - low > kClose) {
    if (of_left <= of_right) {
      high = std::exchange(right, left);
      of_right = std::exchange(of_left, loss(left = high - golden * (high - low)));
    } else {
      low = std::exchange(left, right);
      of_left = std::exchange(of_right, loss(right = low + golden * (high - low)));
    }
  }
  return std::exp((low + high) / 2);
}

absl::StatusOr<KernelFit> FitKernel(const KernelTask& task, double gamma, double alpha,
                                    std::vector<double>* leave_one_out) {
  const Index n = task.rows.rows, outputs = task.outputs;
  Eigen::MatrixXd matrix;
  {
    const RowMajor rows = ToDouble(task.rows);
    matrix = Kernel(rows, rows, rows.rowwise().squaredNorm(), gamma);
  }
  matrix.diagonal().setConstant(1 + alpha);
  const Eigen::LLT<Eigen::Ref<Eigen::MatrixXd>> factors(matrix);  // in place
  if (factors.info() != Eigen::Success) {
    return absl::InternalError(absl::StrCat("rows are too much alike for alpha ", alpha));
  }
  const Eigen::Map<const RowMajor> targets(task.targets.data(), n, outputs);
  const Eigen::Map<const Eigen::RowVectorXd> mean(task.mean.data(), outputs);
  RowMajor solution = targets.rowwise() - mean;
  solution = factors.solve(solution).eval();
  KernelFit fit;
  fit.gamma = gamma;
  fit.coefficients.assign(solution.data(), solution.data() + solution.size());
  if (!task.classes && leave_one_out == nullptr) return fit;
  const Eigen::VectorXd diagonal = InverseDiagonal(matrix);
  const RowMajor left_out = targets - (solution.array().colwise() / diagonal.array()).matrix();
  std::vector<double> values(left_out.data(), left_out.data() + left_out.size());
  if (task.classes) fit.temperature = BestTemperature(values, task);
  if (leave_one_out != nullptr) *leave_one_out = std::move(values);
  return fit;
}

void PredictKernel(const KernelTask& task, const KernelFit& fit, const KernelRows& x,
                   absl::Span<float> out) {
  const Index outputs = task.outputs;
  const RowMajor z = ToDouble(task.rows), rows = ToDouble(x);
  const Eigen::VectorXd norms = z.rowwise().squaredNorm();
  const Eigen::Map<const RowMajor> coefficients(fit.coefficients.data(), z.rows(), outputs);
  const Eigen::Map<const Eigen::RowVectorXd> mean(task.mean.data(), outputs);
  for (Index begin = 0; begin < rows.rows(); begin += kRowsAtOnce) {
    const Index count = std::min(kRowsAtOnce, rows.rows() - begin);
    RowMajor values = Kernel(rows.middleRows(begin, count), z, norms, fit.gamma) * coefficients;
    values.rowwise() += mean;
    for (Index i = 0; task.classes && i < count; ++i) {
      ToProbabilities(task, fit.temperature, values.row(i).data());
    }
    Eigen::Map<RowMajorFloats>(out.data() + begin * outputs, count, outputs) = values.cast<float>();
  }
}

}  // namespace traind
