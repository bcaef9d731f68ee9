// HTTP requests and responses, independent of sockets. Plain values.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/url.h"

namespace medley::http_server {

struct HttpRequest {
  std::string method;
  std::string host;         // as sent, with the port; "" when none was sent
  std::string path;         // decoded
  base::QueryFields query;  // decoded
  std::string accept;
  std::string content_type;
  std::string authorization;
  std::string user_agent;
  std::string origin;           // of the web page that sends it, as sent; "" when none was sent
  std::string request_id;       // X-Request-Id
  std::string request_timeout;  // Request-Timeout
  std::string client_name;      // common name of a verified client certificate
  std::optional<int64_t> content_length;
  bool chunked = false;
  std::string body;
  std::stop_token stop;  // requested when the client has closed the connection, or the server stops

  // The first value of `name`, or "".
  std::string Query(std::string_view name) const;
  bool Is(std::string_view name) const;  // ?name=true or 1
};

// Receives the body of a streamed response. Used by one thread.
class BodySink {
 public:
  virtual ~BodySink() = default;
  virtual bool Write(std::string_view bytes) = 0;  // false: the client has closed the connection
  virtual bool Alive() = 0;                        // false: as Write, but without writing
  virtual void Abort() = 0;                        // the response ends here, without a proper end
};

struct HttpResponse {
  int code = 200;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  // When set, called once after the header was sent, to write the body in chunks. The body ends when it returns.
  std::function<void(BodySink&, std::stop_token)> stream;
  bool drop = false;  // close the connection without a response (a fault for tests of clients)
};

// Splits "/a%20b?x=1&y=" into path and query and decodes both. Returns false when an escape is invalid.
bool ParseTarget(std::string_view target, HttpRequest* request);

}  // namespace medley::http_server
