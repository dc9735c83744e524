// Preloaded under the thread sanitizer (tools/under_tsan.sh). Abseil's library is
// not built with it, so it does not see what absl::Mutex orders. These stand before
// the library's own functions and tell it.
#include <absl/synchronization/mutex.h>
#include <dlfcn.h>

// The sanitizer's run time; absent where a process is not built with it.
extern "C" {
__attribute__((weak)) void __tsan_acquire(void* address);
__attribute__((weak)) void __tsan_release(void* address);
__attribute__((weak)) void AnnotateIgnoreReadsBegin(const char* file, int line);
__attribute__((weak)) void AnnotateIgnoreReadsEnd(const char* file, int line);
__attribute__((weak)) void AnnotateIgnoreWritesBegin(const char* file, int line);
__attribute__((weak)) void AnnotateIgnoreWritesEnd(const char* file, int line);
}

namespace {

void Acquired(void* mutex) {
  if (__tsan_acquire) __tsan_acquire(mutex);
}
void Releasing(void* mutex) {
  if (__tsan_release) __tsan_release(mutex);
}

// Within it, the library evaluates other threads' conditions under the lock.
class Inside {
 public:
  Inside() {
    if (AnnotateIgnoreReadsBegin) AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    if (AnnotateIgnoreWritesBegin) AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~Inside() {
    if (AnnotateIgnoreWritesEnd) AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    if (AnnotateIgnoreReadsEnd) AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
};

template <typename Result, typename Self, typename... Arguments>
Result Next(const char* symbol, Self* self, Arguments... arguments) {
  using Function = Result (*)(Self*, Arguments...);
  const Inside inside;
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, symbol))(self, arguments...);
}

}  // namespace

namespace absl {
ABSL_NAMESPACE_BEGIN

#define TRAIND_MUTEX(suffix) "_ZN4absl7debian35Mutex" suffix
#define TRAIND_CONDVAR(suffix) "_ZN4absl7debian37CondVar" suffix

void Mutex::Lock() {
  Next<void>(TRAIND_MUTEX("4LockEv"), this);
  Acquired(this);
}
bool Mutex::TryLock() {
  const bool locked = Next<bool>(TRAIND_MUTEX("7TryLockEv"), this);
  if (locked) Acquired(this);
  return locked;
}
void Mutex::Unlock() {
  Releasing(this);
  Next<void>(TRAIND_MUTEX("6UnlockEv"), this);
}
void Mutex::ReaderLock() {
  Next<void>(TRAIND_MUTEX("10ReaderLockEv"), this);
  Acquired(this);
}
void Mutex::ReaderUnlock() {
  Releasing(this);
  Next<void>(TRAIND_MUTEX("12ReaderUnlockEv"), this);
}
void Mutex::LockWhen(const Condition& condition) {
  Next<void, Mutex, const Condition&>(TRAIND_MUTEX("8LockWhenERKNS0_9ConditionE"), this, condition);
  Acquired(this);
}
void Mutex::Await(const Condition& condition) {
  Releasing(this);
  Next<void, Mutex, const Condition&>(TRAIND_MUTEX("5AwaitERKNS0_9ConditionE"), this, condition);
  Acquired(this);
}
bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  Releasing(this);
  const bool holds = Next<bool, Mutex, const Condition&, Duration>(
      TRAIND_MUTEX("16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE"), this, condition, timeout);
  Acquired(this);
  return holds;
}
bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  Releasing(this);
  const bool holds = Next<bool, Mutex, const Condition&, Time>(
      TRAIND_MUTEX("17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE"), this, condition, deadline);
  Acquired(this);
  return holds;
}
void CondVar::Wait(Mutex* mutex) {
  Releasing(mutex);
  Next<void, CondVar, Mutex*>(TRAIND_CONDVAR("4WaitEPNS0_5MutexE"), this, mutex);
  Acquired(mutex);
}
bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  Releasing(mutex);
  const bool timed_out = Next<bool, CondVar, Mutex*, Duration>(
      TRAIND_CONDVAR("15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE"), this, mutex, timeout);
  Acquired(mutex);
  return timed_out;
}
bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  Releasing(mutex);
  const bool timed_out = Next<bool, CondVar, Mutex*, Time>(
      TRAIND_CONDVAR("16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE"), this, mutex, deadline);
  Acquired(mutex);
  return timed_out;
}

ABSL_NAMESPACE_END
}  // namespace absl
