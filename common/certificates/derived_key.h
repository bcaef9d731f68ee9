// An EC P-256 key that follows from a secret, so that whoever has the secret can make the same key again. Pure;
// thread-safe.
#pragma once

#include <absl/status/statusor.h>
#include <openssl/evp.h>

#include <array>
#include <memory>
#include <string_view>

namespace medley::certificates {

struct DerivedKey {
  struct Free {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  };
  std::unique_ptr<EVP_PKEY, Free> key;
  std::array<unsigned char, 24> more{};  // further bytes of the derivation, independent of the key; not secret
};

// `seed`: a secret with at least 256 bits of chance, of at least 32 bytes. Errors: InvalidArgument (a shorter seed),
// Internal (OpenSSL).
absl::StatusOr<DerivedKey> DeriveKey(std::string_view seed);

}  // namespace medley::certificates
