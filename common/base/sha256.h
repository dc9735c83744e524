// SHA-256 (FIPS 180-4) of bytes that come in parts.
#pragma once

#include <absl/strings/string_view.h>

#include <memory>
#include <string>

struct evp_md_ctx_st;

namespace traind {

// Threads: confined to one.
class Sha256 {
 public:
  Sha256();
  void Add(absl::string_view bytes);
  // 64 lower-case hexadecimal digits. REQUIRES: called once, and last.
  std::string Hex();

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> context_;
};

}  // namespace traind
