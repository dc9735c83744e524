// libcurl, opened when it is first needed: only who keeps artifacts in a bucket must have it.
#pragma once

#include <absl/status/statusor.h>

// Its macros that check types would name functions that are not linked.
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

namespace traind {

struct CurlLibrary {
  decltype(&::curl_easy_init) init = nullptr;
  decltype(&::curl_easy_cleanup) cleanup = nullptr;
  decltype(&::curl_easy_reset) reset = nullptr;
  decltype(&::curl_easy_setopt) set = nullptr;
  decltype(&::curl_easy_perform) perform = nullptr;
  decltype(&::curl_easy_getinfo) info = nullptr;
  decltype(&::curl_easy_strerror) error_text = nullptr;
  decltype(&::curl_slist_append) append = nullptr;
  decltype(&::curl_slist_free_all) free_list = nullptr;
};

// Threads: safe. The library stays for the life of the process. FailedPrecondition: it is missing,
// or too old to sign requests (below 7.75).
absl::StatusOr<const CurlLibrary*> OpenCurl();

}  // namespace traind
