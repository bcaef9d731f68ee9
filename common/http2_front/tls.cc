#include "common/http2_front/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <array>
#include <cstring>

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/status.h"

namespace medley::http2_front {
namespace {

constexpr base::seconds kLookAgain{1};
constexpr int64_t kMaxFileBytes = 1 << 20;
constexpr std::string_view kProtocol("\x02h2", 3);  // of ALPN

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

Bio Open(const std::string& text) { return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), BIO_free}; }

Certificate Next(BIO* pem) { return {PEM_read_bio_X509(pem, nullptr, nullptr, nullptr), X509_free}; }

bool UseChain(SSL_CTX* context, const std::string& text) {
  const Bio pem = Open(text);
  const Certificate own = Next(pem.get());
  if (own == nullptr || SSL_CTX_use_certificate(context, own.get()) != 1) return false;
  while (const Certificate next = Next(pem.get())) {
    if (SSL_CTX_add1_chain_cert(context, next.get()) != 1) return false;
  }
  return true;
}

bool UseKey(SSL_CTX* context, const std::string& text) {
  const Bio pem = Open(text);
  const Key key(PEM_read_bio_PrivateKey(pem.get(), nullptr, nullptr, nullptr), EVP_PKEY_free);
  return key != nullptr && SSL_CTX_use_PrivateKey(context, key.get()) == 1 && SSL_CTX_check_private_key(context) == 1;
}

bool RequireClients(SSL_CTX* context, const std::string& ca) {
  const Bio pem = Open(ca);
  int found = 0;
  while (const Certificate next = Next(pem.get())) {
    found += X509_STORE_add_cert(SSL_CTX_get_cert_store(context), next.get());
    SSL_CTX_add_client_CA(context, next.get());
  }
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return found > 0;
}

int ChooseProtocol(SSL*, const unsigned char** out, unsigned char* size, const unsigned char* offered, unsigned length,
                   void*) {
  for (const unsigned char* at = offered; at < offered + length; at += 1 + *at) {
    const auto left = static_cast<size_t>(offered + length - at);
    if (left < kProtocol.size() || std::memcmp(at, kProtocol.data(), kProtocol.size()) != 0) continue;
    *out = at + 1;
    *size = *at;
    return SSL_TLSEXT_ERR_OK;
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

std::string WhyOpenSsl() {
  std::array<char, 256> text{};
  ERR_error_string_n(ERR_get_error(), text.data(), text.size());
  ERR_clear_error();
  return text.data();
}

absl::StatusOr<std::string> ReadSource(const TlsOptions::Source& source) {
  if (source.file.empty()) return source.text;
  return base::ReadFile(source.file, kMaxFileBytes);
}

}  // namespace

absl::StatusOr<Tls::Texts> Tls::Read() const {
  Texts texts;
  MEDLEY_ASSIGN_OR_RETURN(texts.certificate, ReadSource(options_.certificate));
  MEDLEY_ASSIGN_OR_RETURN(texts.key, ReadSource(options_.key));
  MEDLEY_ASSIGN_OR_RETURN(texts.client_ca, ReadSource(options_.client_ca));
  const bool wanted = !options_.client_ca.file.empty() || !options_.client_ca.text.empty();
  if (wanted && texts.client_ca.empty()) return base::InvalidArgument("{}: is empty", options_.client_ca.file);
  return texts;
}

absl::StatusOr<Tls::Context> Tls::Make(const Texts& texts) {
  Context context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (context == nullptr) return base::Internal("making a TLS context: {}", WhyOpenSsl());
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context.get(), 0);
  // A silent connection keeps no buffers, and a write that must wait is repeated from another address.
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_alpn_select_cb(context.get(), ChooseProtocol, nullptr);
  if (!UseChain(context.get(), texts.certificate)) {
    return base::InvalidArgument("the certificate is not valid PEM: {}", WhyOpenSsl());
  }
  if (!UseKey(context.get(), texts.key)) {
    return base::InvalidArgument("the key is not valid PEM, or not that of the certificate: {}", WhyOpenSsl());
  }
  if (!texts.client_ca.empty() && !RequireClients(context.get(), texts.client_ca)) {
    return base::InvalidArgument("the CA of clients is not valid PEM: {}", WhyOpenSsl());
  }
  ERR_clear_error();  // the end of PEM is an error too
  return context;
}

Tls::Context Tls::Current(base::SteadyTime now) {
  base::MutexLock lock(mutex_);
  if (now < look_again_) return context_;
  look_again_ = now + kLookAgain;
  absl::StatusOr<Texts> read = Read();
  if (read.ok() && context_ != nullptr && *read == texts_) return context_;
  absl::StatusOr<Context> made = read.ok() ? Make(*read) : absl::StatusOr<Context>(read.status());
  if (made.ok()) {
    if (context_ != nullptr) base::log::Info("loaded a new certificate", {{"file", options_.certificate.file}});
    texts_ = *std::move(read);
    context_ = *std::move(made);
    complaint_.clear();
  } else if (const std::string why = base::ToString(made.status()); why != complaint_) {
    complaint_ = why;
    base::log::Warn("loading the certificate of a server failed; the last one stays in use",
                    {{"file", options_.certificate.file}, {"error", why}});
  }
  return context_;
}

}  // namespace medley::http2_front
