#include "worker/task/engine.h"

#include <malloc.h>

#include <exception>
#include <new>

#include "worker/task/failure.h"

namespace traind {

absl::Status Engine::Predict(const rank_protocol::Predict&, InferenceControl&, EventSink&,
                             const Clock&) {
  return absl::UnimplementedError("this program predicts no files");
}

absl::Status Engine::Serve(const rank_protocol::Serve&, InferenceControl&, EventSink&,
                           const Clock&) {
  return absl::UnimplementedError("this program serves no rows");
}

absl::Status Engine::Guard(const std::function<absl::Status()>& task) {
  try {
    return task();
  } catch (const std::bad_alloc&) {
    return OutOfMemory(absl::ResourceExhaustedError("out of memory"));
  } catch (const std::exception& e) {
    return absl::InternalError(e.what());
  }
}

void Engine::ReleaseMemory() { malloc_trim(0); }

}  // namespace traind
