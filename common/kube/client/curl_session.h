// HTTP exchanges with one server by libcurl: whole requests on pooled connections, and streams.
// Internal to common/kube/client. Thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/kube/client/config.h"

namespace medley::kube {

struct HttpRequest {
  std::string method = "GET";
  std::string path;  // with its query
  std::string body;
  std::string content_type;
};

struct HttpResponse {
  int code = 0;
  std::string body;
  std::optional<std::chrono::seconds> retry_after;
};

class CurlSession {
 public:
  CurlSession(const ClientConfig& config, base::Clock& clock);
  ~CurlSession();

  // One try. Errors are those of the transport alone: Unavailable, DeadlineExceeded, ResourceExhausted
  // (a body over 1 GiB), FailedPrecondition (TLS: a certificate that does not verify or is no PEM).
  absl::StatusOr<HttpResponse> Exchange(const HttpRequest& request, const std::string& what);

  // Gives the bytes of a 200 to `on_bytes` until it says false, the server ends, `stop`, or `timeout`
  // (0: none). Any other code comes back with its body; for a 200 the body is empty. Error StreamCut: the
  // transport failed after the 200.
  absl::StatusOr<HttpResponse> Stream(const std::string& path, const std::string& what,
                                      std::chrono::milliseconds timeout, std::stop_token stop,
                                      const std::function<bool(std::string_view)>& on_bytes);

  // Reads the token file again, or asks the credential plugin, now (after a 401). True when the token changed.
  bool RefreshToken();

 private:
  class Handle;
  std::unique_ptr<Handle> Take();
  void Give(std::unique_ptr<Handle> handle);
  std::string Token();
  bool AskForToken();

  const ClientConfig config_;
  base::Clock& clock_;
  base::Mutex mutex_;
  std::vector<std::unique_ptr<Handle>> idle_ ABSL_GUARDED_BY(mutex_);
  std::string token_ ABSL_GUARDED_BY(mutex_);
  std::optional<base::SteadyTime> token_read_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::kube
