#include "common/http_server/tls_files.h"

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/status.h"

namespace medley::http_server {
namespace {

namespace ssl = boost::asio::ssl;

constexpr base::seconds kLookAgain{1};
constexpr int64_t kMaxFileBytes = 1 << 20;

boost::asio::const_buffer Buffer(const std::string& text) { return {text.data(), text.size()}; }

}  // namespace

absl::StatusOr<std::unique_ptr<TlsFiles>> TlsFiles::Load(const Paths& paths, const base::Clock& clock) {
  std::unique_ptr<TlsFiles> files(new TlsFiles(paths, clock));
  MEDLEY_ASSIGN_OR_RETURN(Pem pem, files->Read());
  MEDLEY_ASSIGN_OR_RETURN(std::shared_ptr<Context> context, files->Make(pem));
  base::MutexLock lock(files->mutex_);
  files->pem_ = std::move(pem);
  files->context_ = std::move(context);
  files->looked_ = clock.Steady();
  return files;
}

absl::StatusOr<TlsFiles::Pem> TlsFiles::Read() const {
  Pem pem{.certificate = paths_.certificate_pem, .key = paths_.key_pem, .client_ca = {}};
  if (pem.certificate.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(pem.certificate, base::ReadFile(paths_.certificate, kMaxFileBytes));
    MEDLEY_ASSIGN_OR_RETURN(pem.key, base::ReadFile(paths_.key, kMaxFileBytes));
  }
  if (!paths_.client_ca.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(pem.client_ca, base::ReadFile(paths_.client_ca, kMaxFileBytes));
  }
  return pem;
}

absl::StatusOr<std::shared_ptr<TlsFiles::Context>> TlsFiles::Make(const Pem& pem) const {
  const std::string names = "certificate " + paths_.certificate.string() + ", key " + paths_.key.string();
  try {
    auto context = std::make_shared<Context>(Context::tls_server);
    context->set_options(Context::default_workarounds | Context::no_sslv2 | Context::no_sslv3 | Context::no_tlsv1 |
                         Context::no_tlsv1_1 | Context::single_dh_use);
    context->use_certificate_chain(Buffer(pem.certificate));
    context->use_private_key(Buffer(pem.key), Context::pem);
    if (SSL_CTX_check_private_key(context->native_handle()) != 1) {
      return base::InvalidArgument("{}: the key does not match the certificate", names);
    }
    if (!pem.client_ca.empty()) {
      context->add_certificate_authority(Buffer(pem.client_ca));
      // Without `require_client` a client may show a token instead.
      context->set_verify_mode(ssl::verify_peer | (paths_.require_client ? ssl::verify_fail_if_no_peer_cert : 0));
    }
    return context;
  } catch (const std::exception& error) {
    return base::InvalidArgument("{}: not a certificate and its key in PEM format: {}", names, error.what());
  }
}

std::shared_ptr<TlsFiles::Context> TlsFiles::Current() {
  base::MutexLock lock(mutex_);
  if (clock_.Steady() - looked_ < kLookAgain) return context_;
  looked_ = clock_.Steady();
  absl::StatusOr<Pem> read = Read();
  if (read.ok() && *read == pem_) return context_;
  absl::StatusOr<std::shared_ptr<Context>> made = read.ok() ? Make(*read) : read.status();
  if (made.ok()) {
    pem_ = *std::move(read);
    context_ = *std::move(made);
    complaint_.clear();
    base::log::Info("loaded a new certificate", {{"file", paths_.certificate.string()}});
  } else if (const std::string why = base::ToString(made.status()); why != complaint_) {
    complaint_ = why;
    base::log::Warn("loading the certificate failed, keeping the last one", {{"error", why}});
  }
  return context_;
}

}  // namespace medley::http_server
