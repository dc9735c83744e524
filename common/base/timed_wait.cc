#include "common/base/timed_wait.h"

#include <time.h>

namespace traind {

TimedCondVar::TimedCondVar() {
  pthread_mutex_init(&guard_, nullptr);
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&changed_, &attributes);
  pthread_condattr_destroy(&attributes);
}

TimedCondVar::~TimedCondVar() {
  pthread_cond_destroy(&changed_);
  pthread_mutex_destroy(&guard_);
}

void TimedCondVar::NotifyAll() {
  pthread_mutex_lock(&guard_);
  pthread_cond_broadcast(&changed_);
  pthread_mutex_unlock(&guard_);
}

absl::Duration TimedCondVar::Elapsed() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return absl::DurationFromTimespec(now);
}

void TimedCondVar::WaitUntil(absl::Mutex& mutex,
                             absl::Duration deadline) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  const timespec until = absl::ToTimespec(deadline);
  // Nobody can change the state and notify between the release of the mutex and the wait, because
  // NotifyAll needs the guard.
  pthread_mutex_lock(&guard_);
  mutex.Unlock();
  if (deadline == absl::InfiniteDuration()) {
    pthread_cond_wait(&changed_, &guard_);
  } else {
    pthread_cond_timedwait(&changed_, &guard_, &until);
  }
  pthread_mutex_unlock(&guard_);
  mutex.Lock();
}

}  // namespace traind
