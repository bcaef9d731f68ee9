#include "localcluster/apiserver/self_signed.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>

#include "common/base/rng.h"
#include "common/base/status.h"

namespace medley::localcluster::apiserver {
namespace {

constexpr long kHour = 3600;
constexpr long kYear = 365 * 24 * kHour;

template <auto Function>
struct Free {
  template <typename T>
  void operator()(T* pointer) const {
    Function(pointer);
  }
};
using Bio = std::unique_ptr<BIO, Free<BIO_free>>;

std::string BioText(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<size_t>(size));
}

bool Extend(X509* certificate, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, Free<X509_EXTENSION_free>> extension(
      X509V3_EXT_conf_nid(nullptr, &context, nid, value));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool Fill(X509* certificate, EVP_PKEY* key) {
  X509_NAME* const name = X509_get_subject_name(certificate);
  const auto* const text = reinterpret_cast<const unsigned char*>("medley run");
  return X509_set_version(certificate, 2) == 1 &&
         // Clients may refuse two certificates of one issuer with the same number.
         ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), base::SystemSeed() >> 1) == 1 &&
         X509_gmtime_adj(X509_getm_notBefore(certificate), -kHour) != nullptr &&
         X509_gmtime_adj(X509_getm_notAfter(certificate), kYear) != nullptr && X509_set_pubkey(certificate, key) == 1 &&
         X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, text, -1, -1, 0) == 1 &&
         X509_set_issuer_name(certificate, name) == 1 &&
         Extend(certificate, NID_basic_constraints, "critical,CA:TRUE") &&
         Extend(certificate, NID_key_usage, "critical,digitalSignature,keyCertSign") &&
         Extend(certificate, NID_ext_key_usage, "serverAuth") &&
         Extend(certificate, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1,IP:::1") &&
         X509_sign(certificate, key, EVP_sha256()) > 0;
}

}  // namespace

absl::StatusOr<SelfSigned> MakeSelfSigned() {
  const std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>> key(EVP_EC_gen("P-256"));
  const std::unique_ptr<X509, Free<X509_free>> certificate(X509_new());
  const Bio public_part(BIO_new(BIO_s_mem()));
  const Bio secret_part(BIO_new(BIO_s_mem()));
  if (key == nullptr || certificate == nullptr || public_part == nullptr || secret_part == nullptr ||
      !Fill(certificate.get(), key.get()) || PEM_write_bio_X509(public_part.get(), certificate.get()) != 1 ||
      PEM_write_bio_PrivateKey(secret_part.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return base::Internal("OpenSSL could not make the API server's certificate");
  }
  return SelfSigned{BioText(public_part.get()), BioText(secret_part.get())};
}

}  // namespace medley::localcluster::apiserver
