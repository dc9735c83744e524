// The files of the page and openapi.json, which are part of the program.
#pragma once

#include <absl/strings/string_view.h>

#include <cstddef>

#include "server/http/message.h"

namespace traind {

// A file as it was embedded (build_defs/embed_files.py).
struct EmbeddedFile {
  const char* path;  // "/assets/index.html"
  const unsigned char* gzip;
  size_t gzip_bytes;
  const char* sha256;  // of the plain file
};

// The files, and how many they are.
extern const EmbeddedFile kEmbeddedFiles[];
extern const size_t kEmbeddedFileCount;

// Whether there is a file at this path; "/" is /assets/index.html.
bool HasAsset(absl::string_view path);
// The file at the request's path: gzipped where the client takes that, and 304 where it has it.
// REQUIRES: HasAsset(request.path).
HttpResponse AssetResponse(const HttpRequest& request);

}  // namespace traind
