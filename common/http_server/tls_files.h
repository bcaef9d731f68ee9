// Certificate and key of a server, read again when the files change. Every new connection uses the newest valid pair.
// If the pair does not match, because a file is being replaced, the last pair stays in use. Internal to
// common/http_server. Thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <boost/asio/ssl/context.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace medley::http_server {

class TlsFiles {
 public:
  using Context = boost::asio::ssl::context;
  struct Paths {
    std::filesystem::path certificate;  // PEM, with its chain
    std::filesystem::path key;
    std::filesystem::path client_ca;  // empty: clients are not asked for a certificate
    bool require_client = false;      // refuse clients without a certificate of `client_ca`
    std::string certificate_pem;      // instead of the file `certificate`; never read again
    std::string key_pem;              // likewise
  };
  // Errors: NotFound, PermissionDenied, InvalidArgument (not PEM, or the key does not match the certificate).
  static absl::StatusOr<std::unique_ptr<TlsFiles>> Load(const Paths& paths, const base::Clock& clock);

  // Never null. Looks at the files at most once a second.
  std::shared_ptr<Context> Current();

 private:
  struct Pem {
    std::string certificate, key, client_ca;
    bool operator==(const Pem&) const = default;
  };
  TlsFiles(Paths paths, const base::Clock& clock) : paths_(std::move(paths)), clock_(clock) {}
  absl::StatusOr<Pem> Read() const;
  absl::StatusOr<std::shared_ptr<Context>> Make(const Pem& pem) const;

  const Paths paths_;
  const base::Clock& clock_;
  base::Mutex mutex_;
  Pem pem_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<Context> context_ ABSL_GUARDED_BY(mutex_);
  std::string complaint_ ABSL_GUARDED_BY(mutex_);  // the last one, which is not repeated
  base::SteadyTime looked_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::http_server
