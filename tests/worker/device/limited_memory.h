// An allocator of torch's CPU tensors that runs out, as a GPU's does.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

namespace traind {

// While it lives, tensors that its thread makes take `bytes` at most, those of before not counted.
// A tensor for which there is no room throws OutOfMemoryError.
// Threads: made and ended on one thread; others may allocate meanwhile.
class LimitedMemory {
 public:
  explicit LimitedMemory(size_t bytes) {
    Limiter& limiter = Limiter::Get();
    limiter.thread = std::this_thread::get_id();
    limiter.left = static_cast<std::ptrdiff_t>(bytes);
    limiter.on = true;
  }
  ~LimitedMemory() { Limiter::Get().on = false; }
  LimitedMemory(const LimitedMemory&) = delete;
  LimitedMemory& operator=(const LimitedMemory&) = delete;

 private:
  // Stays torch's allocator once it has been used, because its blocks may outlive the limit.
  class Limiter final : public c10::Allocator {
   public:
    static Limiter& Get() {
      static Limiter* const limiter = new Limiter;
      return *limiter;
    }

    c10::DataPtr allocate(size_t size) override {
      const auto bytes = static_cast<std::ptrdiff_t>(size);
      if (on && std::this_thread::get_id() == thread) {
        TORCH_CHECK_WITH(OutOfMemoryError, bytes <= left, "the stand-in is out of memory");
      }
      c10::DataPtr data = inner_->allocate(size);
      void* const pointer = data.get();
      if (pointer == nullptr) return data;
      left -= bytes;
      const std::lock_guard<std::mutex> lock(mutex_);
      blocks_[pointer] = {std::move(data), bytes};
      return {pointer, pointer, &Free, c10::kCPU};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &Free; }
    void copy_data(void* dest, const void* src, size_t count) const override {
      default_copy_data(dest, src, count);
    }

    std::atomic<bool> on{false};
    std::atomic<std::ptrdiff_t> left{0};
    std::thread::id thread;

   private:
    struct Block {
      c10::DataPtr data;
      std::ptrdiff_t bytes;
    };

    Limiter() : inner_(c10::GetCPUAllocator()) { c10::SetCPUAllocator(this); }
    static void Free(void* pointer) {
      Limiter& limiter = Get();
      const std::lock_guard<std::mutex> lock(limiter.mutex_);
      const auto block = limiter.blocks_.find(pointer);
      if (block == limiter.blocks_.end()) return;
      limiter.left += block->second.bytes;
      limiter.blocks_.erase(block);
    }

    std::mutex mutex_;
    std::unordered_map<void*, Block> blocks_;
    c10::Allocator* const inner_;
  };
};

}  // namespace traind
