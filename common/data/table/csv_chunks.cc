#include "common/data/table/csv_chunks.h"

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <string.h>

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"

namespace traind {
namespace {

// Returns where parts are assumed to begin, and the file's end.
std::vector<size_t> Boundaries(const CsvChunks& chunks) {
  const absl::string_view bytes = chunks.bytes;
  std::vector<size_t> at = {chunks.first.at};
  while (bytes.size() - at.back() > chunks.chunk_bytes) {
    const size_t from = at.back() + chunks.chunk_bytes;
    const void* const line_end = memchr(bytes.data() + from, '\n', bytes.size() - from);
    if (line_end == nullptr) break;
    at.push_back(static_cast<size_t>(static_cast<const char*>(line_end) - bytes.data()) + 1);
  }
  if (at.back() < bytes.size()) at.push_back(bytes.size());
  return at;
}

// Reads parts ahead of the one that is appended next.
class ReadAhead {
 public:
  ReadAhead(const CsvChunks& chunks, const std::vector<size_t>& boundaries)
      : chunks_(chunks), boundaries_(boundaries), parts_(boundaries.size() - 1) {
    for (int i = 0; i < chunks.threads; ++i) threads_.emplace_back([this] { Run(); });
  }
  ~ReadAhead() {
    {
      absl::MutexLock lock(&mutex_);
      next_ = parts_.size();
    }
    for (std::thread& thread : threads_) thread.join();
  }

  struct Part {
    bool read = false;
    absl::Status status;
    CsvPlace end;  // rows and line counted from the part's beginning
  };
  Part Wait(size_t index) {
    absl::MutexLock lock(&mutex_);
    const auto read = [this, index]()
                          ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return parts_[index].read; };
    mutex_.Await(absl::Condition(&read));
    return parts_[index];
  }
  void Release() {
    absl::MutexLock lock(&mutex_);
    ++released_;
  }

 private:
  void Run() {
    const auto may_take = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return next_ >= parts_.size() || next_ < released_ + static_cast<size_t>(chunks_.slots());
    };
    while (true) {
      size_t index;
      {
        absl::MutexLock lock(&mutex_);
        mutex_.Await(absl::Condition(&may_take));
        if (next_ >= parts_.size()) return;
        index = next_++;
      }
      const auto slot = static_cast<int>(index % static_cast<size_t>(chunks_.slots()));
      CsvReader reader(chunks_.bytes, chunks_.name, chunks_.delimiter, {boundaries_[index], 0, 1});
      Part part;
      part.status = chunks_.parse(slot, reader, boundaries_[index + 1]);
      part.end = reader.place();
      part.read = true;
      absl::MutexLock lock(&mutex_);
      parts_[index] = std::move(part);
    }
  }

  const CsvChunks& chunks_;
  const std::vector<size_t>& boundaries_;
  absl::Mutex mutex_;
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t released_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Part> parts_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

// Reads a part whose beginning is certain, and moves `base` to its end.
absl::Status ReadPart(const CsvChunks& chunks, int slot, size_t stop, CsvPlace& base) {
  stop = std::max(stop, base.at);
  CsvReader reader(chunks.bytes, chunks.name, chunks.delimiter, {base.at, 0, 1});
  const absl::Status status = chunks.parse(slot, reader, stop);
  // Rows before a mistake may hold an earlier one.
  RETURN_IF_ERROR(chunks.append(slot, base));
  if (!status.ok()) {
    CsvReader again(chunks.bytes, chunks.name, chunks.delimiter, base);
    return chunks.parse(slot, again, stop);  // its error names the place in the file
  }
  const CsvPlace end = reader.place();
  base = {end.at, base.rows + end.rows, base.line + end.line - 1};
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadCsvChunks(const CsvChunks& chunks) {
  const std::vector<size_t> boundaries = Boundaries(chunks);
  CsvPlace base = chunks.first;
  if (chunks.threads == 1) {
    for (size_t i = 0; i + 1 < boundaries.size(); ++i) {
      RETURN_IF_ERROR(ReadPart(chunks, 0, boundaries[i + 1], base));
    }
    return absl::OkStatus();
  }
  ReadAhead ahead(chunks, boundaries);
  for (size_t i = 0; i + 1 < boundaries.size(); ++i) {
    const auto slot = static_cast<int>(i % static_cast<size_t>(chunks.slots()));
    const ReadAhead::Part part = ahead.Wait(i);
    if (base.at == boundaries[i] && part.status.ok()) {
      RETURN_IF_ERROR(chunks.append(slot, base));
      base = {part.end.at, base.rows + part.end.rows, base.line + part.end.line - 1};
    } else {
      RETURN_IF_ERROR(ReadPart(chunks, slot, boundaries[i + 1], base));
    }
    ahead.Release();
  }
  return absl::OkStatus();
}

}  // namespace traind
