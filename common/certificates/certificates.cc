#include "common/certificates/certificates.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <memory>

#include "common/base/status.h"
#include "common/certificates/derived_key.h"
#include "common/certificates/free_with.h"

namespace medley::certificates {
namespace {

constexpr int kSerialBytes = 16;
constexpr size_t kLongestName = 64;  // ub-common-name of RFC 5280

using Key = std::unique_ptr<EVP_PKEY, FreeWith<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, FreeWith<X509_free>>;
using Bio = std::unique_ptr<BIO, FreeWith<BIO_free>>;
using Number = std::unique_ptr<BIGNUM, FreeWith<BN_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, FreeWith<X509_EXTENSION_free>>;
using Store = std::unique_ptr<X509_STORE, FreeWith<X509_STORE_free>>;
using StoreContext = std::unique_ptr<X509_STORE_CTX, FreeWith<X509_STORE_CTX_free>>;

// Takes the errors of this thread from OpenSSL's queue, so that later calls do not report them.
absl::Status Failed(const char* what) {
  const unsigned long error = ERR_peek_last_error();  // NOLINT(google-runtime-int): the type of OpenSSL
  ERR_clear_error();
  const char* reason = error == 0 ? nullptr : ERR_reason_error_string(error);
  return base::Internal("{}: {}", what, reason == nullptr ? "OpenSSL gives no reason" : reason);
}

Bio Reader(std::string_view text) { return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

std::string TextOf(BIO* bio) {
  char* data = nullptr;
  const auto size = BIO_get_mem_data(bio, &data);
  return size <= 0 ? "" : std::string(data, static_cast<size_t>(size));
}

absl::StatusOr<Certificate> ReadCertificate(std::string_view pem) {
  const Bio bio = Reader(pem);
  Certificate certificate(bio == nullptr ? nullptr : PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (certificate != nullptr) return certificate;
  return base::InvalidArgument("{}", base::Message(Failed("reading a certificate in PEM format")));
}

absl::StatusOr<Key> ReadKey(std::string_view pem) {
  const Bio bio = Reader(pem);
  Key key(bio == nullptr ? nullptr : PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
  if (key != nullptr) return key;
  return base::InvalidArgument("{}", base::Message(Failed("reading a private key in PEM format")));
}

absl::StatusOr<KeyPair> Write(X509* certificate, EVP_PKEY* key) {
  const Bio certificates(BIO_new(BIO_s_mem())), keys(BIO_new(BIO_s_mem()));
  if (certificates == nullptr || keys == nullptr || PEM_write_bio_X509(certificates.get(), certificate) != 1 ||
      PEM_write_bio_PrivateKey(keys.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return Failed("writing a certificate in PEM format");
  }
  return KeyPair{TextOf(certificates.get()), TextOf(keys.get())};
}

absl::Status Extend(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  if (extension == nullptr || X509_add_ext(certificate, extension.get(), -1) != 1) {
    return Failed("adding an extension to a certificate");
  }
  return absl::OkStatus();
}

using Serial = std::array<unsigned char, kSerialBytes>;

absl::StatusOr<Serial> RandomSerial() {
  Serial serial{};
  if (RAND_bytes(serial.data(), kSerialBytes) != 1) return Failed("making a serial number");
  return serial;
}

absl::Status SetSerial(X509* certificate, Serial bytes) {
  bytes[0] &= 0x7f;  // positive
  bytes[0] |= 0x40;  // not zero
  const Number number(BN_bin2bn(bytes.data(), kSerialBytes, nullptr));
  if (number == nullptr || BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) == nullptr) {
    return Failed("making a serial number");
  }
  return absl::OkStatus();
}

// Without extensions and signature.
absl::StatusOr<Certificate> Begin(const std::string& name, EVP_PKEY* key, const Validity& validity,
                                  const Serial& serial) {
  Certificate certificate(X509_new());
  if (certificate == nullptr || X509_set_version(certificate.get(), X509_VERSION_3) != 1) {
    return Failed("making a certificate");
  }
  MEDLEY_RETURN_IF_ERROR(SetSerial(certificate.get(), serial));
  const auto set = [](ASN1_TIME* time, base::WallTime at) {
    return ASN1_TIME_set(time, std::chrono::system_clock::to_time_t(at)) != nullptr;
  };
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  const auto* text = reinterpret_cast<const unsigned char*>(name.c_str());
  if (!set(X509_getm_notBefore(certificate.get()), validity.from) ||
      !set(X509_getm_notAfter(certificate.get()), validity.to) || X509_set_pubkey(certificate.get(), key) != 1 ||
      X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, text, -1, -1, 0) != 1) {
    return Failed("making a certificate");
  }
  return certificate;
}

absl::Status Sign(X509* certificate, EVP_PKEY* key) {
  return X509_sign(certificate, key, EVP_sha256()) > 0 ? absl::OkStatus() : Failed("signing a certificate");
}

// It becomes part of a text in which commas and colons mean something.
absl::Status CheckName(const std::string& dns_name) {
  const bool valid = !dns_name.empty() && dns_name.size() <= 253 &&
                     dns_name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") ==
                         std::string::npos;
  return valid ? absl::OkStatus() : base::InvalidArgument("'{}' is no DNS name", dns_name);
}

bool IsAddress(const std::string& name) {
  const std::unique_ptr<ASN1_OCTET_STRING, FreeWith<ASN1_OCTET_STRING_free>> address(a2i_IPADDRESS(name.c_str()));
  return address != nullptr;
}

absl::StatusOr<std::string> AlternativeNames(const std::vector<std::string>& names) {
  if (names.empty()) return base::InvalidArgument("a certificate needs a name");
  std::string text;
  for (const std::string& name : names) {
    const bool address = IsAddress(name);
    if (!address) MEDLEY_RETURN_IF_ERROR(CheckName(name));
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", address ? "IP" : "DNS", name);
  }
  return text;
}

absl::StatusOr<base::WallTime> TimeOf(const ASN1_TIME* time) {
  const std::unique_ptr<ASN1_TIME, FreeWith<ASN1_TIME_free>> epoch(ASN1_TIME_set(nullptr, 0));
  int days = 0, seconds = 0;
  if (epoch == nullptr || ASN1_TIME_diff(&days, &seconds, epoch.get(), time) != 1) return Failed("reading a time");
  return base::WallTime() + std::chrono::hours(24) * days + base::seconds(seconds);
}

absl::StatusOr<KeyPair> AuthorityOf(const std::string& name, const std::string& dns_name, const Validity& validity,
                                    EVP_PKEY* key, const Serial& serial) {
  MEDLEY_RETURN_IF_ERROR(CheckName(dns_name));
  if (name.empty() || name.size() > kLongestName) {
    return base::InvalidArgument("the name of a CA, '{}', must have 1 to {} characters", name, kLongestName);
  }
  MEDLEY_ASSIGN_OR_RETURN(const Certificate certificate, Begin(name, key, validity, serial));
  X509* ca = certificate.get();
  if (X509_set_issuer_name(ca, X509_get_subject_name(ca)) != 1) return Failed("making a certificate");
  MEDLEY_RETURN_IF_ERROR(Extend(ca, ca, NID_basic_constraints, "critical,CA:TRUE,pathlen:0"));
  MEDLEY_RETURN_IF_ERROR(Extend(ca, ca, NID_key_usage, "critical,keyCertSign,cRLSign"));
  MEDLEY_RETURN_IF_ERROR(Extend(ca, ca, NID_subject_key_identifier, "hash"));
  MEDLEY_RETURN_IF_ERROR(Extend(ca, ca, NID_name_constraints, "critical,permitted;DNS:" + dns_name));
  MEDLEY_RETURN_IF_ERROR(Sign(ca, key));
  return Write(ca, key);
}

}  // namespace

absl::StatusOr<KeyPair> MakeAuthority(const std::string& name, const std::string& dns_name, const Validity& validity) {
  const Key key(EVP_EC_gen("P-256"));
  if (key == nullptr) return Failed("making a key");
  MEDLEY_ASSIGN_OR_RETURN(const Serial serial, RandomSerial());
  return AuthorityOf(name, dns_name, validity, key.get(), serial);
}

absl::StatusOr<KeyPair> DeriveAuthority(const std::string& name, const std::string& dns_name, const Validity& validity,
                                        std::string_view seed) {
  MEDLEY_ASSIGN_OR_RETURN(const DerivedKey derived, DeriveKey(seed));
  Serial serial{};
  std::copy_n(derived.more.begin(), serial.size(), serial.begin());
  return AuthorityOf(name, dns_name, validity, derived.key.get(), serial);
}

absl::StatusOr<KeyPair> Issue(const KeyPair& authority, const std::vector<std::string>& names,
                              const Validity& validity) {
  MEDLEY_ASSIGN_OR_RETURN(const std::string alternatives, AlternativeNames(names));
  MEDLEY_ASSIGN_OR_RETURN(const Certificate issuer, ReadCertificate(authority.certificate));
  MEDLEY_ASSIGN_OR_RETURN(const Key issuer_key, ReadKey(authority.key));
  if (X509_check_private_key(issuer.get(), issuer_key.get()) != 1) {
    return base::InvalidArgument("{}", base::Message(Failed("the key of the CA is not that of its certificate")));
  }
  if (X509_check_ca(issuer.get()) == 0) return base::InvalidArgument("the certificate to sign with is not one of a CA");
  const Key key(EVP_EC_gen("P-256"));
  if (key == nullptr) return Failed("making a key");
  MEDLEY_ASSIGN_OR_RETURN(const Serial serial, RandomSerial());
  MEDLEY_ASSIGN_OR_RETURN(const Certificate certificate, Begin("medley", key.get(), validity, serial));
  X509* leaf = certificate.get();
  if (X509_set_issuer_name(leaf, X509_get_subject_name(issuer.get())) != 1) return Failed("making a certificate");
  MEDLEY_RETURN_IF_ERROR(Extend(leaf, issuer.get(), NID_basic_constraints, "critical,CA:FALSE"));
  MEDLEY_RETURN_IF_ERROR(Extend(leaf, issuer.get(), NID_key_usage, "critical,digitalSignature"));
  MEDLEY_RETURN_IF_ERROR(Extend(leaf, issuer.get(), NID_ext_key_usage, "serverAuth,clientAuth"));
  MEDLEY_RETURN_IF_ERROR(Extend(leaf, issuer.get(), NID_authority_key_identifier, "keyid"));
  MEDLEY_RETURN_IF_ERROR(Extend(leaf, issuer.get(), NID_subject_alt_name, alternatives));
  MEDLEY_RETURN_IF_ERROR(Sign(leaf, issuer_key.get()));
  return Write(leaf, key.get());
}

absl::StatusOr<Validity> ValidityOf(std::string_view certificate) {
  MEDLEY_ASSIGN_OR_RETURN(const Certificate read, ReadCertificate(certificate));
  Validity validity;
  MEDLEY_ASSIGN_OR_RETURN(validity.from, TimeOf(X509_get0_notBefore(read.get())));
  MEDLEY_ASSIGN_OR_RETURN(validity.to, TimeOf(X509_get0_notAfter(read.get())));
  return validity;
}

absl::Status Verify(std::string_view certificate, std::string_view authority, const std::string& dns_name,
                    base::WallTime now) {
  MEDLEY_ASSIGN_OR_RETURN(const Certificate leaf, ReadCertificate(certificate));
  MEDLEY_ASSIGN_OR_RETURN(const Certificate root, ReadCertificate(authority));
  const Store store(X509_STORE_new());
  const StoreContext context(X509_STORE_CTX_new());
  if (store == nullptr || context == nullptr || X509_STORE_add_cert(store.get(), root.get()) != 1 ||
      X509_STORE_CTX_init(context.get(), store.get(), leaf.get(), nullptr) != 1) {
    return Failed("verifying a certificate");
  }
  X509_VERIFY_PARAM* parameters = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_time(parameters, std::chrono::system_clock::to_time_t(now));
  if (X509_VERIFY_PARAM_set1_host(parameters, dns_name.c_str(), dns_name.size()) != 1) {
    return Failed("verifying a certificate");
  }
  const int verified = X509_verify_cert(context.get());
  ERR_clear_error();
  if (verified == 1) return absl::OkStatus();
  return base::FailedPrecondition("the certificate is not valid for {}: {}", dns_name,
                                  X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get())));
}

}  // namespace medley::certificates
