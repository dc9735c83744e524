// Rules of the paths that traind and a Worker name to each other when files travel between their
// state folders (proto/file_service.proto).
//
// Threads: all functions are safe.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <string>

namespace traind {

// Checkpoints of an Attempt begin so; a Worker that removes one has it removed by traind, too.
inline constexpr char kCheckpointPrefix[] = "checkpoint-";

enum class Direction { kToWorker, kToTraind };

// Whether a file with this path, relative to the state folder, travels for the Job: its folds, its
// floor, the files of its Attempts, what its program resumes from, and files of the cache; to a Worker also what the Job has
// taken over from others, and the manifests of its Predictions. Names have letters, digits, '.',
// '_' and '-' and do not begin with '.', so no path leads out of the folder. Temporary files do not
// travel.
bool Travels(absl::string_view path, const std::string& job, Direction direction);

// OK: the path travels, and none of its parts that exist is a link. InvalidArgument: it does not
// travel; PermissionDenied: it leads over a link.
absl::Status CheckStatePath(const std::string& state_dir, const std::string& path,
                            const std::string& job, Direction direction);

}  // namespace traind
