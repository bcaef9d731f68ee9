// HTTP/1.1 exchanges by libcurl, which no other folder includes: one easy handle with the connection that it keeps.
//
//   http_client::Connection connection({.user_agent = "medley/0.1"});
//   http_client::Result result = connection.Run({.url = "https://host/path"}, "get /path", stop);
//   MEDLEY_RETURN_IF_ERROR(result.status);
//
// TLS 1.2 or newer, http and https only, no proxy unless one is named. Not thread-safe: one request at a time.
#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/clock.h"

namespace medley::http_client {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Options {
  std::string user_agent;
  std::chrono::milliseconds connect_timeout{10'000};
  bool gzip = false;                  // accept compressed bodies; limits count what they expand to
  std::string proxy;                  // "http://host:port"; empty: none
  bool proxy_of_environment = false;  // http_proxy, https_proxy, no_proxy
  // PEM; what is empty is not set. Without authorities the system's count.
  std::string authorities, certificate, key;
  std::filesystem::path authorities_file;
  bool insecure_skip_verify = false;
  // The connection goes here ("host:port") whatever the URL says, and requests bear it as their Host.
  std::string connect_to;
  bool probe_silent_peers = false;  // notice within 45 s that a peer has vanished, also while it has nothing to send
};

struct Request {
  std::string method = "GET";
  std::string url;  // absolute
  Headers headers;
  std::optional<std::string> body;
  std::chrono::milliseconds timeout{0};             // of all of it; 0: none
  std::chrono::milliseconds first_byte_timeout{0};  // until the header of the response; 0: none
  size_t max_body_bytes = size_t{1} << 30;
  int max_redirects = 0;  // followed, but never from https to http
};

struct Response {
  int code = 0;     // 0: none came
  Headers headers;  // of the last response, after redirects
  std::string body;

  // The value of the last header of that name, whatever its case; "" without one.
  std::string Header(std::string_view name) const;
  // Retry-After, from seconds or from a date, cut to `most`.
  std::optional<std::chrono::seconds> RetryAfter(const base::Clock& clock, std::chrono::seconds most) const;
};

struct Result {
  // Of the transport: Unavailable (refused, no such host, cut off in the middle), DeadlineExceeded, Cancelled (`stop`),
  // ResourceExhausted (body over the limit), FailedPrecondition (TLS), PermissionDenied (a redirect that is not
  // followed), InvalidArgument (no URL). Names `what`, never the URL, which may hold secrets.
  absl::Status status;
  Response response;           // what had come, also of an exchange that failed
  bool refused = false;        // nobody listens there
  bool ended_by_sink = false;  // `on_bytes` wanted no more; the status is OK
};

class Connection {
 public:
  explicit Connection(Options options);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // `on_bytes`: takes the body of a 200 in place of the response's, until it says false.
  Result Run(const Request& request, const std::string& what, std::stop_token stop,
             const std::function<bool(std::string_view)>& on_bytes = nullptr);

 private:
  class Handle;
  const std::unique_ptr<Handle> handle_;
};

}  // namespace medley::http_client
