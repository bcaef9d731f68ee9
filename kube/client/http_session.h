// HTTP exchanges with one server: whole requests on pooled connections, and streams, with credentials that are replaced
// while the program runs. The operator's check of services other than the API server uses it too. Thread-safe.
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
#include "common/http_client/connection.h"
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

class HttpSession {
 public:
  HttpSession(const ClientConfig& config, base::Clock& clock);
  ~HttpSession();

  // Sends the request, and sends it again when the server refuses our credentials and there are newer ones. `what`
  // names the request in errors. `stop` ends the exchange at once. Errors are those of the transport alone:
  // Unavailable, DeadlineExceeded, Cancelled, ResourceExhausted (a body over 1 GiB), FailedPrecondition (TLS: a
  // certificate that does not verify or is not PEM).
  absl::StatusOr<HttpResponse> Exchange(const HttpRequest& request, const std::string& what, std::stop_token stop);

  // Passes the body of a 200 to `on_bytes` in pieces until it returns false, the server ends the stream, `stop` is
  // requested or `timeout` (0: none) has passed; then returns code 200 without a body. Returns any other response with
  // its body. Sends again as Exchange does. Errors: those of Exchange; StreamCut when the transport failed after the
  // 200.
  absl::StatusOr<HttpResponse> Stream(const std::string& path, const std::string& what,
                                      std::chrono::milliseconds timeout, std::stop_token stop,
                                      const std::function<bool(std::string_view)>& on_bytes);

 private:
  struct Pooled;
  template <typename Try>
  absl::StatusOr<HttpResponse> WithCredentials(const Try& once);
  absl::StatusOr<HttpResponse> ExchangeOnce(const HttpRequest& request, const std::string& what, std::stop_token stop,
                                            const Credentials::Snapshot& who);
  absl::StatusOr<HttpResponse> StreamOnce(const std::string& path, const std::string& what,
                                          std::chrono::milliseconds timeout, std::stop_token stop,
                                          const std::function<bool(std::string_view)>& on_bytes,
                                          const Credentials::Snapshot& who);
  http_client::Options OptionsFor(const Credentials::Snapshot& who) const;
  http_client::Request RequestFor(const HttpRequest& request, const Credentials::Snapshot& who) const;
  absl::Status ErrorOf(const http_client::Result& result, const std::string& what) const;
  std::unique_ptr<Pooled> Take(const Credentials::Snapshot& who);
  void Give(std::unique_ptr<Pooled> connection);

  const ClientConfig config_;
  std::string base_;         // of every URL
  std::string host_header_;  // when the URL names another host, so that its certificate is verified by that name
  base::Clock& clock_;
  Credentials credentials_;
  base::Mutex mutex_;
  std::vector<std::unique_ptr<Pooled>> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::kube
