// A request and its answer, apart from the sockets they come through. Values.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace medley::kube::apiserver {

struct HttpRequest {
  std::string method;
  std::string path;                                        // decoded
  std::vector<std::pair<std::string, std::string>> query;  // decoded
  std::string accept;
  std::string content_type;
  std::string authorization;
  std::string user_agent;
  std::string client_name;  // common name of a verified client certificate
  std::string body;

  // The first value of `name`, or "".
  std::string Query(std::string_view name) const;
  bool Is(std::string_view name) const;  // ?name=true or 1
};

// Where a streamed answer goes. Used by one thread.
class BodySink {
 public:
  virtual ~BodySink() = default;
  virtual bool Write(std::string_view bytes) = 0;  // false: the peer has disconnected
  virtual bool Alive() = 0;                        // without writing
  virtual void Abort() = 0;                        // the answer ends here, without a proper end
};

struct HttpResponse {
  int code = 200;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  // When set, the answer is chunked: called after the header has been sent, until it returns.
  std::function<void(BodySink&, std::stop_token)> stream;
  bool drop = false;  // close the connection without a word (a fault)
};

// "/a%20b?x=1&y=" into path and query. False when an escape is broken.
bool ParseTarget(std::string_view target, HttpRequest* request);

}  // namespace medley::kube::apiserver
