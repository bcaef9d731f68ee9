// Sends HTTP/2 frames to a gRPC server that no gRPC client would send, as someone who knows only its address can.
//
//   http2_flood ADDRESS ATTACK CONNECTIONS SECONDS [tls | FOLDER UID]
//
// Repeats the frames of ATTACK on CONNECTIONS connections for SECONDS, and prints what it sent as JSON:
// {"connections": 16, "ended": 3, "frames": 1200, "bytes": 32400}. Connections are plain text; with "tls" they are
// encrypted, and with FOLDER and UID they have a certificate of the job UID besides.
#include <absl/strings/numbers.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/certificates/job_certificates.h"
#include "tests/attack/http2_attack.h"

namespace {

namespace base = medley::base;

// Null: the folder has no credentials of a job.
SSL_CTX* MakeTls(const char* folder, const char* uid) {
  SSL_CTX* const tls = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_alpn_protos(tls, reinterpret_cast<const unsigned char*>("\x02h2"), 3);
  if (uid == nullptr) return tls;
  namespace certificates = medley::certificates;
  const auto certificate = base::ReadFile(std::filesystem::path(folder) / "ca.crt");
  const auto key = base::ReadFile(std::filesystem::path(folder) / "ca.key");
  if (!certificate.ok() || !key.ok()) return nullptr;
  const auto own = certificates::IssueForJob({*certificate, *key}, uid, base::SystemClock().Now(), base::seconds(3600));
  if (!own.ok()) return nullptr;
  const std::unique_ptr<BIO, decltype(&BIO_free)> chain(BIO_new_mem_buf(own->certificate.data(), -1), BIO_free);
  const std::unique_ptr<BIO, decltype(&BIO_free)> secret(BIO_new_mem_buf(own->key.data(), -1), BIO_free);
  const std::unique_ptr<X509, decltype(&X509_free)> shown(PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr),
                                                          X509_free);
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> own_key(
      PEM_read_bio_PrivateKey(secret.get(), nullptr, nullptr, nullptr), EVP_PKEY_free);
  const bool used = SSL_CTX_use_certificate(tls, shown.get()) == 1 && SSL_CTX_use_PrivateKey(tls, own_key.get()) == 1;
  return used ? tls : nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  int connections = 0, seconds = 0;
  if (argc < 5 || argc > 7 || !absl::SimpleAtoi(argv[3], &connections) || !absl::SimpleAtoi(argv[4], &seconds)) {
    std::fprintf(stderr, "usage: http2_flood ADDRESS ATTACK CONNECTIONS SECONDS [tls | FOLDER UID]; attacks:");
    for (const std::string& name : medley::attack::AttackNames()) std::fprintf(stderr, " %s", name.c_str());
    std::fprintf(stderr, "\n");
    return 2;
  }
  SSL_CTX* const tls = argc == 5 ? nullptr : MakeTls(argv[5], argc == 7 ? argv[6] : nullptr);
  if (argc > 5 && tls == nullptr) {
    std::fprintf(stderr, "http2_flood: %s has no credentials\n", argv[5]);
    return 1;
  }
  const auto sent = medley::attack::Flood(
      {.address = argv[1], .attack = argv[2], .connections = connections, .time = base::seconds(seconds), .tls = tls});
  SSL_CTX_free(tls);
  if (!sent.ok()) {
    std::fprintf(stderr, "http2_flood: %s\n", base::ToString(sent.status()).c_str());
    return 1;
  }
  std::printf("{\"connections\": %ld, \"ended\": %ld, \"frames\": %ld, \"bytes\": %ld}\n",
              static_cast<long>(sent->connections), static_cast<long>(sent->ended), static_cast<long>(sent->frames),
              static_cast<long>(sent->bytes));
  return 0;
}
