// Handles HTTP requests, independent of the HTTP library: routing, authentication, limits, caching.
//
// Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler-service/serve_rest/http_answer.h"
#include "scheduler-service/serve_rest/rest_server.h"
#include "scheduler-service/serve_rest/routes.h"

namespace medley::sched {

// A request without its body. The value of a missing header is empty.
struct HttpRequest {
  std::string method;
  std::string path;
  std::string query;
  std::string content_type;
  std::string authorization;
  std::string request_id;
  std::string request_timeout;
  bool has_length = false;
  bool chunked = false;
  uint64_t length = 0;  // of the body
};

class RestService {
 public:
  RestService(const RestOptions& options, RestContext context);

  // The result of reading the headers. If `answer` is set, it is the response. Otherwise the caller reads the body (if
  // `length` > 0) and passes it to Cached and Work.
  struct Begun {
    std::unique_ptr<HttpAnswer> answer;
    const Route* route = nullptr;
    Call call;
    std::string kind;  // of the request, for ResultCache
  };
  Begun Begin(const HttpRequest& request);

  // The cached response for the same body; null if there is none. Does not block.
  std::unique_ptr<HttpAnswer> Cached(Begun& begun, std::string_view body);
  // Computes the response. May take until the deadline of the call.
  HttpAnswer Work(Begun& begun, const std::string& body);
  // The response for when every thread is busy.
  HttpAnswer Busy(Begun& begun);

 private:
  std::unique_ptr<HttpAnswer> Refuse(const absl::Status& status, int code, std::string_view field, const Call& call);
  std::unique_ptr<HttpAnswer> RefuseBody(const HttpRequest& request, const Call& call);
  std::unique_ptr<HttpAnswer> Page(const HttpRequest& request, const Call& call);
  std::unique_ptr<HttpAnswer> Find(const HttpRequest& request, Begun& begun);
  bool IsOpen(const std::string& path) const;

  const RestOptions options_;
  const RestContext context_;
  const std::vector<Route> routes_;
  const std::string openapi_;
};

}  // namespace medley::sched
