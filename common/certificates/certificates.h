// X.509 certificates for processes that authenticate each other: a certificate authority (CA) and the certificates that
// it signs. Keys are EC P-256.
//
// The functions are thread-safe and do no I/O. The caller passes the time; keys and serial numbers are from OpenSSL's
// random number generator, unless derived from a seed. Errors: Internal (OpenSSL), InvalidArgument (options, PEM text).
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"

namespace medley::certificates {

// PEM texts.
struct KeyPair {
  std::string certificate;
  std::string key;  // PKCS #8, not encrypted
};

struct Validity {
  base::WallTime from;
  base::WallTime to;
};

// A CA that can sign certificates for `dns_name` and names below it, but no further CA. `name` is its common name, of
// at most 64 characters.
absl::StatusOr<KeyPair> MakeAuthority(const std::string& name, const std::string& dns_name, const Validity& validity);

// Likewise with a key and a serial number that follow from `seed`, a secret of at least 32 bytes: each call with the
// same arguments makes the same key and a certificate that differs in its signature only, so that what was issued for
// one is valid for all.
absl::StatusOr<KeyPair> DeriveAuthority(const std::string& name, const std::string& dns_name, const Validity& validity,
                                        std::string_view seed);

// A certificate for servers and clients with these names: DNS names and IP addresses, at least one.
absl::StatusOr<KeyPair> Issue(const KeyPair& authority, const std::vector<std::string>& names,
                              const Validity& validity);

// For the first certificate of a PEM text.
absl::StatusOr<Validity> ValidityOf(std::string_view certificate);

// OK if `authority` has signed the first certificate of `certificate`, which is valid at `now` and names `dns_name`.
// Otherwise FailedPrecondition with OpenSSL's reason.
absl::Status Verify(std::string_view certificate, std::string_view authority, const std::string& dns_name,
                    base::WallTime now);

}  // namespace medley::certificates
