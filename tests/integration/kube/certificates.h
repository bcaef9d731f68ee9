// A certificate authority for one test, in memory only.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace medley::kube {

struct PemPair {
  std::string certificate;
  std::string key;
};

class TestAuthority {
 public:
  explicit TestAuthority(const std::string& name = "test-ca")
      : key_(NewKey()), certificate_(Sign(name, key_.get(), nullptr, nullptr, "CA:TRUE", "")) {}

  std::string certificate() const { return Pem(certificate_.get()); }
  // `names`: subjectAltName ("IP:127.0.0.1,DNS:api.test"), empty for a client's certificate.
  PemPair Issue(const std::string& common_name, const std::string& names) const {
    const Key key = NewKey();
    const Certificate certificate = Sign(common_name, key.get(), certificate_.get(), key_.get(), "CA:FALSE", names);
    return {Pem(certificate.get()), Pem(key.get())};
  }

 private:
  template <auto Function>
  struct Free {
    template <typename T>
    void operator()(T* pointer) const {
      Function(pointer);
    }
  };
  using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
  using Certificate = std::unique_ptr<X509, Free<X509_free>>;
  using Bio = std::unique_ptr<BIO, Free<BIO_free>>;

  static Key NewKey() {
    Key key(EVP_EC_gen("P-256"));
    MEDLEY_CHECK(key != nullptr, "make a key");
    return key;
  }
  static std::string Text(BIO* bio) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio, &data);
    return std::string(data, static_cast<size_t>(size));
  }
  static std::string Pem(X509* certificate) {
    const Bio bio(BIO_new(BIO_s_mem()));
    PEM_write_bio_X509(bio.get(), certificate);
    return Text(bio.get());
  }
  static std::string Pem(EVP_PKEY* key) {
    const Bio bio(BIO_new(BIO_s_mem()));
    PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
    return Text(bio.get());
  }
  static void Extend(X509* certificate, X509* issuer, int nid, const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
    const std::unique_ptr<X509_EXTENSION, Free<X509_EXTENSION_free>> extension(
        X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
    MEDLEY_CHECK(extension != nullptr, value);
    X509_add_ext(certificate, extension.get(), -1);
  }
  static Certificate Sign(const std::string& common_name, EVP_PKEY* key, X509* issuer, EVP_PKEY* issuer_key,
                          const std::string& constraints, const std::string& names) {
    Certificate certificate(X509_new());
    X509_set_version(certificate.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), issuer == nullptr ? 1 : 2);
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
    X509_set_pubkey(certificate.get(), key);
    X509_NAME* name = X509_get_subject_name(certificate.get());
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(common_name.c_str()),
                               -1, -1, 0);
    X509_set_issuer_name(certificate.get(), issuer == nullptr ? name : X509_get_subject_name(issuer));
    X509* parent = issuer == nullptr ? certificate.get() : issuer;
    Extend(certificate.get(), parent, NID_basic_constraints, constraints);
    if (!names.empty()) Extend(certificate.get(), parent, NID_subject_alt_name, names);
    X509_sign(certificate.get(), issuer_key == nullptr ? key : issuer_key, EVP_sha256());
    return certificate;
  }

  const Key key_;
  const Certificate certificate_;
};

}  // namespace medley::kube
