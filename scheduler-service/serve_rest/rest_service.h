// From an HTTP request to its answer, without the library that carries them: which path, who may, what it says.
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

// A request without its body. Header values are empty where absent.
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

  // What the headers alone decide. Either `answer` is set and nothing else happens, or the body is to be read (when
  // `length` > 0) and handed to Cached and Work.
  struct Begun {
    std::unique_ptr<HttpAnswer> answer;
    const Route* route = nullptr;
    Call call;
    std::string kind;  // of the question, for the cache
  };
  Begun Begin(const HttpRequest& request);

  // The answer to the same bytes as before; null when there is none. Quick.
  std::unique_ptr<HttpAnswer> Cached(Begun& begun, std::string_view body);
  // May take as long as the call allows.
  HttpAnswer Work(Begun& begun, const std::string& body);
  // Every thread is busy.
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
