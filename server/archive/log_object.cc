#include "server/archive/log_object.h"

#include <absl/strings/str_cat.h>
#include <sys/stat.h>

#include <utility>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "server/archive/archive.h"

namespace traind {
namespace {

constexpr double kBytesPerSecond = 1 << 20;

}  // namespace

LogObject::LogObject(const ObjectStore* objects, std::string folder, LogNames names)
    : objects_(objects), folder_(std::move(folder)), names_(std::move(names)) {}

absl::Status LogObject::Give(const std::string& name, std::string* given) {
  const std::string path = absl::StrCat(folder_, "/", name);
  struct stat about = {};
  if (stat(path.c_str(), &about) != 0) return absl::OkStatus();
  std::string looks = absl::StrCat(about.st_ino, " ", about.st_size);
  if (looks == *given) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  RETURN_IF_ERROR(objects_->Write(Archive::FileKey(name), content));
  *given = std::move(looks);
  return absl::OkStatus();
}

absl::Status LogObject::CatchUp(absl::Duration now, bool all) {
  if (!all && now < next_) return absl::OkStatus();
  const std::string before = given_;
  // The older one first: between the two writes a line may be twice there, and none is missing.
  RETURN_IF_ERROR(Give(names_.older, &given_older_));
  RETURN_IF_ERROR(Give(names_.name, &given_));
  if (given_ == before) return absl::OkStatus();
  struct stat about = {};
  if (stat(absl::StrCat(folder_, "/", names_.name).c_str(), &about) == 0) {
    next_ = now + absl::Seconds(static_cast<double>(about.st_size) / kBytesPerSecond);
  }
  return absl::OkStatus();
}

}  // namespace traind
