#include "server/http/assets.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <zlib.h>

#include <utility>

namespace traind {
namespace {

constexpr std::pair<const char*, const char*> kTypes[] = {
    {".html", "text/html; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".mjs", "text/javascript; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".json", "application/json"},
    {".svg", "image/svg+xml"},
    {".png", "image/png"},
    {".ico", "image/x-icon"},
    {".woff2", "font/woff2"},
    {".txt", "text/plain; charset=utf-8"},
};

const EmbeddedFile* FindAsset(absl::string_view path) {
  if (path == "/") path = "/assets/index.html";
  for (size_t i = 0; i < kEmbeddedFileCount; ++i) {
    if (path == kEmbeddedFiles[i].path) return &kEmbeddedFiles[i];
  }
  return nullptr;
}

const char* TypeOf(absl::string_view path) {
  for (const auto& [ending, type] : kTypes) {
    if (absl::EndsWith(path, ending)) return type;
  }
  return "application/octet-stream";
}

// Empty: the program's own data are damaged.
std::string Inflate(const EmbeddedFile& file) {
  z_stream stream{};
  // 16: the gzip format.
  if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) return "";
  stream.next_in = const_cast<unsigned char*>(file.gzip);
  stream.avail_in = static_cast<uInt>(file.gzip_bytes);
  std::string plain;
  int result = Z_OK;
  while (result == Z_OK) {
    char part[16 << 10];
    stream.next_out = reinterpret_cast<unsigned char*>(part);
    stream.avail_out = sizeof part;
    result = inflate(&stream, Z_NO_FLUSH);
    plain.append(part, sizeof part - stream.avail_out);
  }
  inflateEnd(&stream);
  return result == Z_STREAM_END ? plain : "";
}

}  // namespace

bool HasAsset(absl::string_view path) { return FindAsset(path) != nullptr; }

HttpResponse AssetResponse(const HttpRequest& request) {
  const EmbeddedFile& file = *FindAsset(request.path);
  HttpResponse response;
  const std::string etag = absl::StrCat("\"", file.sha256, "\"");
  response.headers = {{"ETag", etag}, {"Cache-Control", "no-cache"}, {"Vary", "Accept-Encoding"}};
  if (absl::StrContains(request.Header("if-none-match"), etag)) {
    response.status = 304;
    return response;
  }
  response.content_type = TypeOf(file.path);
  if (absl::StrContains(request.Header("accept-encoding"), "gzip")) {
    response.headers.emplace_back("Content-Encoding", "gzip");
    response.body = std::make_shared<const std::string>(reinterpret_cast<const char*>(file.gzip),
                                                        file.gzip_bytes);
  } else {
    response.body = std::make_shared<const std::string>(Inflate(file));
  }
  return response;
}

}  // namespace traind
