// Handles HTTP requests, independent of sockets: routing, authentication, limits, caching.
//
// Thread-safe.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/http_server/message.h"
#include "scheduler-service/serve_rest/rest_server.h"
#include "scheduler-service/serve_rest/routes.h"

namespace medley::sched {

class RestService {
 public:
  // `before_metrics` is called before the page of metrics is made.
  RestService(const RestOptions& options, RestContext context, std::function<void()> before_metrics);

  // Decides by the header alone, before the body is read: the response that refuses the request, or nullopt.
  std::optional<http_server::HttpResponse> Refuse(const http_server::HttpRequest& header);
  // The response to a request that Refuse accepted. May take until the deadline of the call.
  http_server::HttpResponse Answer(const http_server::HttpRequest& request);

 private:
  struct Refusal {
    absl::Status status;
    int code = 0;       // 0: that of the status
    std::string field;  // of the error
    std::string allow;  // the header Allow, or empty
  };
  std::optional<Refusal> WhyRefused(const http_server::HttpRequest& header, Call& call) const;
  std::optional<Refusal> CheckCaller(const http_server::HttpRequest& header) const;
  static std::optional<Refusal> CheckBody(const http_server::HttpRequest& header, int64_t max_bytes);
  http_server::HttpResponse Page(const std::string& path) const;
  http_server::HttpResponse Work(const Route& route, const http_server::HttpRequest& request, Call& call);
  const Route* FindRoute(const std::string& path) const;
  const StaticFile* FindFile(const std::string& path) const;
  bool IsOpen(const std::string& path) const;
  bool IsOwnName(const std::string& host) const;

  const RestOptions options_;
  const RestContext context_;
  const std::function<void()> before_metrics_;
  const std::vector<Route> routes_;
  const std::string openapi_;
};

}  // namespace medley::sched
