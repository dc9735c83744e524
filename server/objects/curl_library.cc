#include "server/objects/curl_library.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <dlfcn.h>

namespace traind {
namespace {

constexpr char kFile[] = "libcurl.so.4";
constexpr unsigned kLeastVersion = 0x074b00;  // 7.75.0

template <typename Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

absl::StatusOr<const CurlLibrary*> Open() {
  void* const library = dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "a bucket needs libcurl (package libcurl4), which cannot be opened: ", dlerror()));
  }
  static CurlLibrary curl;
  decltype(&::curl_global_init) start = nullptr;
  decltype(&::curl_version_info) version = nullptr;
  const bool found = Find(library, "curl_global_init", &start) &&
                     Find(library, "curl_version_info", &version) &&
                     Find(library, "curl_easy_init", &curl.init) &&
                     Find(library, "curl_easy_cleanup", &curl.cleanup) &&
                     Find(library, "curl_easy_reset", &curl.reset) &&
                     Find(library, "curl_easy_setopt", &curl.set) &&
                     Find(library, "curl_easy_perform", &curl.perform) &&
                     Find(library, "curl_easy_getinfo", &curl.info) &&
                     Find(library, "curl_easy_strerror", &curl.error_text) &&
                     Find(library, "curl_slist_append", &curl.append) &&
                     Find(library, "curl_slist_free_all", &curl.free_list);
  if (!found || version(CURLVERSION_NOW)->version_num < kLeastVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat(kFile, " is too old to sign requests to a bucket; 7.75 or later does"));
  }
  if (start(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    return absl::FailedPreconditionError(absl::StrCat(kFile, " cannot be used"));
  }
  return &curl;
}

}  // namespace

absl::StatusOr<const CurlLibrary*> OpenCurl() {
  static const auto* const opened = new absl::StatusOr<const CurlLibrary*>(Open());
  return *opened;
}

}  // namespace traind
