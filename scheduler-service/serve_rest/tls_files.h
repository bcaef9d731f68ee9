// Certificate and key for HTTPS, reloaded when the files change. Every new connection uses the newest valid pair. If
// the pair does not match, because a file is being replaced, the last pair stays in use. Thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace boost::asio::ssl {
class context;
}

namespace medley::sched {

class TlsFiles {
 public:
  struct Paths {
    std::filesystem::path certificate;  // PEM, with its chain
    std::filesystem::path key;
    std::filesystem::path client_ca;  // empty if clients need no certificate
  };
  // Errors: NotFound, PermissionDenied, InvalidArgument (not PEM, or the key does not match the certificate).
  static absl::StatusOr<std::unique_ptr<TlsFiles>> Load(const Paths& paths, const base::Clock& clock);

  // Configures `context` with the current files. Throws boost::system::system_error, which the library's callback
  // allows.
  void Apply(boost::asio::ssl::context& context);

 private:
  struct Pem {
    std::string certificate, key, client_ca;
    bool operator==(const Pem&) const = default;
  };
  TlsFiles(Paths paths, const base::Clock& clock) : paths_(std::move(paths)), clock_(clock) {}
  absl::StatusOr<Pem> Read() const;
  static void ApplyPem(const Pem& pem, boost::asio::ssl::context& context);
  static absl::Status Check(const Pem& pem);
  Pem Current();

  const Paths paths_;
  const base::Clock& clock_;
  base::Mutex mutex_;
  Pem pem_ ABSL_GUARDED_BY(mutex_);
  base::SteadyTime looked_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::sched
