#include "common/base/sha256.h"

#include <absl/strings/escaping.h>
#include <openssl/evp.h>

#include "common/base/durable_file.h"

namespace traind {

Sha256::Sha256() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
  EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr);
}

void Sha256::Add(absl::string_view bytes) {
  EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
}

std::string Sha256::Hex() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_DigestFinal_ex(context_.get(), digest, &size);
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest), size));
}

std::string Sha256Hex(absl::string_view bytes) { return Sha256Hex(absl::MakeConstSpan(&bytes, 1)); }

std::string Sha256Hex(absl::Span<const absl::string_view> parts) {
  Sha256 sha256;
  for (const absl::string_view part : parts) sha256.Add(part);
  return sha256.Hex();
}

}  // namespace traind
