// Certificates of a server, read again when their files change. Every new connection uses the newest valid ones; while
// files do not match, because one is being replaced, the last ones stay in use. Thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/base/mutex.h"

typedef struct ssl_ctx_st SSL_CTX;

namespace medley::http2_front {

// PEM. Of each pair either the file or the text is set; texts do not change.
struct TlsOptions {
  struct Source {
    std::string file;
    std::string text;
  };
  Source certificate;  // of the server, with its chain
  Source key;
  Source client_ca;  // neither: clients need no certificate
};

class Tls {
 public:
  using Context = std::shared_ptr<SSL_CTX>;
  explicit Tls(TlsOptions options) : options_(std::move(options)) {}

  // Null: there are no valid certificates yet. Looks at the files at most once a second.
  Context Current(base::SteadyTime now);

 private:
  struct Texts {
    std::string certificate, key, client_ca;
    bool operator==(const Texts&) const = default;
  };
  absl::StatusOr<Texts> Read() const;
  static absl::StatusOr<Context> Make(const Texts& texts);

  const TlsOptions options_;
  base::Mutex mutex_;
  Texts texts_ ABSL_GUARDED_BY(mutex_);
  Context context_ ABSL_GUARDED_BY(mutex_);
  std::string complaint_ ABSL_GUARDED_BY(mutex_);  // the last one, which is not repeated
  base::SteadyTime look_again_ ABSL_GUARDED_BY(mutex_) = base::SteadyTime::min();
};

}  // namespace medley::http2_front
