// HTTP exchanges with one server by libcurl: whole requests on pooled connections, and streams.
// Of kube/client, and for the operator's check of services that are no API server. Thread-safe.
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
#include "kube/client/config.h"
#include "kube/client/credentials.h"

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

  // One try, and a second one when the server refuses our credentials and their files hold others by now.
  // `stop` ends it at once. Errors are those of the transport alone: Unavailable, DeadlineExceeded,
  // ResourceExhausted (a body over 1 GiB), FailedPrecondition (TLS: a certificate that does not verify or is
  // no PEM), Cancelled.
  absl::StatusOr<HttpResponse> Exchange(const HttpRequest& request, const std::string& what, std::stop_token stop);

  // Gives the bytes of a 200 to `on_bytes` until it says false, the server ends, `stop`, or `timeout`
  // (0: none). Any other code comes back with its body; for a 200 the body is empty. Tries as Exchange.
  // Error StreamCut: the transport failed after the 200.
  absl::StatusOr<HttpResponse> Stream(const std::string& path, const std::string& what,
                                      std::chrono::milliseconds timeout, std::stop_token stop,
                                      const std::function<bool(std::string_view)>& on_bytes);

 private:
  class Handle;
  template <typename Try>
  absl::StatusOr<HttpResponse> WithCredentials(const Try& once);
  absl::StatusOr<HttpResponse> ExchangeOnce(const HttpRequest& request, const std::string& what, std::stop_token stop,
                                            const Credentials::Snapshot& who);
  absl::StatusOr<HttpResponse> StreamOnce(const std::string& path, const std::string& what,
                                          std::chrono::milliseconds timeout, std::stop_token stop,
                                          const std::function<bool(std::string_view)>& on_bytes,
                                          const Credentials::Snapshot& who);
  std::unique_ptr<Handle> Take(const Credentials::Snapshot& who);
  void Give(std::unique_ptr<Handle> handle);

  const ClientConfig config_;
  base::Clock& clock_;
  Credentials credentials_;
  base::Mutex mutex_;
  std::vector<std::unique_ptr<Handle>> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::kube
