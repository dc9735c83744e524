// Runs the iterations of a loop, which do not depend on each other, on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace traind {

// Calls work(i) for each i below count. REQUIRES: work may run on several threads at once.
inline void ForEachOnThreads(int64_t count, int threads, const std::function<void(int64_t)>& work) {
  constexpr int64_t kChunk = 16;  // iterations that a thread takes at once
  std::atomic<int64_t> next{0};
  const auto run = [&] {
    while (true) {
      const int64_t begin = next.fetch_add(kChunk);
      if (begin >= count) return;
      for (int64_t i = begin; i < std::min(count, begin + kChunk); ++i) work(i);
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(run);
  run();
  for (std::thread& other : others) other.join();
}

}  // namespace traind
