// Sends HTTP/1.1 requests with libcurl, which no other folder includes, and keeps its connection open between them.
//
//   http_client::Connection connection({.user_agent = "medley/0.1"});
//   http_client::Result result = connection.Run({.url = "https://host/path"}, "get /path", stop);
//   MEDLEY_RETURN_IF_ERROR(result.status);
//
// TLS 1.2 or newer, only http and https, no proxy unless the options name one. Not thread-safe: one request at a time.
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
  bool gzip = false;                  // accept compressed bodies; limits apply to the decompressed bytes
  std::string proxy;                  // "http://host:port"; empty: none
  bool proxy_of_environment = false;  // use http_proxy, https_proxy and no_proxy
  // PEM texts; empty: not set. Without authorities, those of the system are used.
  std::string authorities, certificate, key;
  std::filesystem::path authorities_file;
  bool insecure_skip_verify = false;
  // Connect to this "host:port" instead of the URL's. TLS verifies the URL's name; for another Host, set that header.
  std::string connect_to;
  bool probe_silent_peers = false;  // notice within 45 s that a peer has vanished, also while it has nothing to send
};

struct Request {
  std::string method = "GET";
  std::string url;  // absolute
  Headers headers;
  std::optional<std::string> body;
  std::chrono::milliseconds timeout{0};             // for the whole exchange; 0: none
  std::chrono::milliseconds first_byte_timeout{0};  // until the header of the response; 0: none
  size_t max_body_bytes = size_t{1} << 30;
  int max_redirects = 0;  // followed, but never from https to http
};

struct Response {
  int code = 0;     // 0: no response
  Headers headers;  // of the last response, after redirects
  std::string body;

  // The value of the last header of that name, in any case of letters; "" if there is none.
  std::string Header(std::string_view name) const;
  // The wait that Retry-After asks for, as seconds or as a date, but at most `most`; nullopt if absent or malformed.
  std::optional<std::chrono::seconds> RetryAfter(const base::Clock& clock, std::chrono::seconds most) const;
};

struct Result {
  // Errors of the transport only, so OK for any HTTP code: Unavailable (refused, unknown host, connection broken),
  // DeadlineExceeded, Cancelled (`stop`), ResourceExhausted (body over the limit), FailedPrecondition (TLS),
  // PermissionDenied (a redirect that is not followed), InvalidArgument (no URL). The message names `what`, never the
  // URL, which may hold secrets.
  absl::Status status;
  Response response;           // what was received, also when the exchange failed
  bool refused = false;        // no process listens at the address
  bool ended_by_sink = false;  // `on_bytes` returned false; the status is OK
};

class Connection {
 public:
  explicit Connection(Options options);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Runs one exchange on the calling thread. `what` names it in errors. `on_bytes` gets the body of a 200 or 206 in
  // pieces, without a limit on its size, until it returns false; Response::body is then empty.
  Result Run(const Request& request, const std::string& what, std::stop_token stop,
             const std::function<bool(std::string_view)>& on_bytes = nullptr);

 private:
  class Handle;
  const std::unique_ptr<Handle> handle_;
};

}  // namespace medley::http_client
