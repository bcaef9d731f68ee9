#include "scheduler-service/serve_rest/tls_files.h"

#include <boost/asio/ssl/context.hpp>

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/status.h"

namespace medley::sched {
namespace {

namespace ssl = boost::asio::ssl;
constexpr base::seconds kLookAgain{1};
constexpr int64_t kMaxFileBytes = 1 << 20;

boost::asio::const_buffer Buffer(const std::string& text) { return {text.data(), text.size()}; }

}  // namespace

absl::StatusOr<std::unique_ptr<TlsFiles>> TlsFiles::Load(const Paths& paths, const base::Clock& clock) {
  std::unique_ptr<TlsFiles> files(new TlsFiles(paths, clock));
  MEDLEY_ASSIGN_OR_RETURN(Pem pem, files->Read());
  if (const absl::Status status = Check(pem); !status.ok()) {
    return base::Annotate(status, paths.certificate.string() + ", " + paths.key.string());
  }
  base::MutexLock lock(files->mutex_);
  files->pem_ = std::move(pem);
  files->looked_ = clock.Steady();
  return files;
}

absl::StatusOr<TlsFiles::Pem> TlsFiles::Read() const {
  Pem pem;
  MEDLEY_ASSIGN_OR_RETURN(pem.certificate, base::ReadFile(paths_.certificate, kMaxFileBytes));
  MEDLEY_ASSIGN_OR_RETURN(pem.key, base::ReadFile(paths_.key, kMaxFileBytes));
  if (!paths_.client_ca.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(pem.client_ca, base::ReadFile(paths_.client_ca, kMaxFileBytes));
  }
  return pem;
}

void TlsFiles::ApplyPem(const Pem& pem, ssl::context& context) {
  context.set_options(ssl::context::default_workarounds | ssl::context::no_sslv2 | ssl::context::no_sslv3 |
                      ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1 | ssl::context::single_dh_use);
  context.use_certificate_chain(Buffer(pem.certificate));
  context.use_private_key(Buffer(pem.key), ssl::context::pem);
  if (pem.client_ca.empty()) return;
  context.add_certificate_authority(Buffer(pem.client_ca));
  context.set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert);
}

absl::Status TlsFiles::Check(const Pem& pem) {
  try {
    ssl::context context(ssl::context::tls_server);
    ApplyPem(pem, context);
    if (SSL_CTX_check_private_key(context.native_handle()) != 1) {
      return base::InvalidArgument("the key does not match the certificate");
    }
  } catch (const std::exception& error) {
    return base::InvalidArgument("not a certificate and its key in PEM format: {}", error.what());
  }
  return absl::OkStatus();
}

TlsFiles::Pem TlsFiles::Current() {
  base::MutexLock lock(mutex_);
  if (clock_.Steady() - looked_ < kLookAgain) return pem_;
  looked_ = clock_.Steady();
  absl::StatusOr<Pem> read = Read();
  if (read.ok() && *read == pem_) return pem_;
  const absl::Status status = read.ok() ? Check(*read) : read.status();
  if (status.ok()) {
    pem_ = *std::move(read);
    log::Info("loaded a new certificate", {{"file", paths_.certificate.string()}});
  } else {
    log::Warn("loading the certificate failed, keeping the last one", {{"error", base::ToString(status)}});
  }
  return pem_;
}

void TlsFiles::Apply(ssl::context& context) { ApplyPem(Current(), context); }

}  // namespace medley::sched
