// A key and a certificate that a server makes for itself, in memory. Thread-safe.
//
// kubectl sends a token over TLS only (client-go drops the credentials of a server with "http://"), so the server of a
// laptop needs a certificate, too. Its kubeconfig names this certificate as the only one to trust.
#pragma once

#include <absl/status/statusor.h>

#include <string>

namespace medley::localcluster::apiserver {

struct SelfSigned {
  std::string certificate;  // PEM
  std::string key;          // PEM; never written to a file
};

// For localhost, 127.0.0.1 and ::1, valid for a year, with a new key (ECDSA P-256). Errors: Internal, from OpenSSL.
absl::StatusOr<SelfSigned> MakeSelfSigned();

}  // namespace medley::localcluster::apiserver
