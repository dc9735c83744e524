// A user's file, or a folder of them, in the state folder of a Worker that fetched it.
#pragma once

#include <absl/status/status.h>

#include <string>

#include "common/base/durable_file.h"
#include "common/job_rules/travelling_files.h"
#include "worker/daemon/remote_files.h"

namespace traind::worker {

// The last part of a path.
inline std::string FileName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Whether the file has this content; if so, it counts as used now (TrimOwnFolder).
bool HasDigest(const std::string& path, const FileDigest& digest);

struct FetchedInput {
  std::string path;          // what the task reads
  std::string comes_to;      // where the bytes are received
  std::string folder;        // a folder's
  std::string named_folder;  // as its user knows it
  FileDigest digest;

  // The name says what a reader makes of the file; the digest makes it the same for all Jobs.
  static FetchedInput Of(const std::string& state_dir, const NamedFile& file,
                         const RemoteContent& content);

  bool IsFolder() const { return !folder.empty(); }
  // What is there counts as used now.
  bool IsThere() const;
  // Makes the folder of what was received.
  absl::Status Unpack() const;
};

}  // namespace traind::worker
