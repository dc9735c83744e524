#include "worker/inference/side_by_side.h"

#include <algorithm>
#include <thread>

namespace traind {

std::vector<int64_t> StepEnds(int64_t begin, int64_t end, int64_t step, size_t most) {
  std::vector<int64_t> ends;
  while (begin < end && ends.size() < most) {
    begin = end - begin < step + step / 2 ? end : begin + step;
    ends.push_back(begin);
  }
  return ends;
}

absl::Status PredictSideBySide(absl::Span<RowModel* const> models, const LaterRows& rows,
                               int64_t begin, absl::Span<const int64_t> ends,
                               absl::Span<float> out) {
  const size_t outputs = out.size() / static_cast<size_t>(ends.back() - begin);
  std::vector<absl::Status> results(ends.size());
  const auto predict = [&](size_t i) {
    const int64_t from = i == 0 ? begin : ends[i - 1];
    results[i] = models[i]->Predict(rows, from, ends[i],
                                    out.subspan(static_cast<size_t>(from - begin) * outputs,
                                                static_cast<size_t>(ends[i] - from) * outputs));
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < ends.size(); ++i) threads.emplace_back(predict, i);
  predict(0);
  for (std::thread& thread : threads) thread.join();
  const auto failed = std::find_if(results.begin(), results.end(),
                                   [](const absl::Status& result) { return !result.ok(); });
  return failed == results.end() ? absl::OkStatus() : *failed;
}

}  // namespace traind
