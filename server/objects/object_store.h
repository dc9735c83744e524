// Byte strings by name that outlive this machine: files below a folder that other machines see, or
// objects of a bucket of an S3-compatible store.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>
#include <absl/types/span.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace traind {

// What a list tells of an object.
struct ObjectInfo {
  std::string key;
  int64_t bytes = 0;
  // Of the whole content, 32 hexadecimal digits; empty: not known without reading it.
  std::string md5;
};

// What is sent.
struct OutgoingObject {
  int fd = -1;       // read from its beginning to its end; the caller owns it
  absl::Time mtime;  // kept with the object where the store can
  // Whether somebody waits for it: after 3 s without a byte it is given up, and not tried again.
  bool waited_for = false;
};

// A key has words between slashes, as a relative path.
// Threads: safe; each call stands for itself. Errors: NotFound; else those of the system or of the
// connection, with what they are about. A call that fails may have been carried out.
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  // As people know the object: a path, or a URL.
  virtual std::string NameOf(const std::string& key) const = 0;
  // Whether the objects are files of a folder; then NameOf gives their paths.
  virtual bool is_folder() const = 0;
  // How often a standby looks for changes.
  virtual absl::Duration look_every() const = 0;

  virtual absl::StatusOr<std::string> Read(const std::string& key) const = 0;
  // Reads the whole object into an open file, from its beginning on. Returns its mtime, or the
  // infinite past where none was kept. Cancelled: `stop` was set meanwhile.
  virtual absl::StatusOr<absl::Time> ReadTo(const std::string& key, int fd,
                                            const std::atomic<bool>& stop) const = 0;

  // Durable, whole or absent. AlreadyExists: somebody else has written the key; it stays as it is.
  virtual absl::Status WriteOnce(const std::string& key,
                                 absl::Span<const absl::string_view> parts) const = 0;
  // Durable, whole or absent; replaces what was there.
  virtual absl::Status Write(const std::string& key, absl::string_view bytes) const = 0;
  // For a small content that is replaced often, and of which others must soon see the newest; they
  // may see a part of it.
  virtual absl::Status WriteOften(const std::string& key, absl::string_view bytes) const = 0;
  // As Write. Cancelled: `stop` was set meanwhile.
  virtual absl::Status WriteFile(const std::string& key, const OutgoingObject& file,
                                 const std::atomic<bool>& stop) const = 0;

  // Those whose keys begin so, sorted by key. Temporary files are none.
  virtual absl::StatusOr<std::vector<ObjectInfo>> List(const std::string& prefix) const = 0;
  // Removes it if it is there.
  virtual absl::Status Remove(const std::string& key) const = 0;
};

// The files below a folder, which is made where it is missing.
absl::StatusOr<std::shared_ptr<const ObjectStore>> OpenFolderObjects(const std::string& folder);

}  // namespace traind
