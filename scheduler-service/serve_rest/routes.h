// The table of routes under /v1: the methods of the service, with text in and JSON out. The OpenAPI document is
// generated from it.
#pragma once

#include <absl/status/status.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/url.h"
#include "scheduler-service/handlers/handlers.h"

namespace google::protobuf {
class Descriptor;
}

namespace medley::sched {

struct Route {
  std::string method;  // GET: the request's fields are query parameters; POST: JSON or YAML in the body
  std::string path;
  std::string rpc;      // method name in the proto service, or the name of a method that only REST has
  std::string summary;  // only for a method that only REST has
  const google::protobuf::Descriptor* request = nullptr;
  const google::protobuf::Descriptor* response = nullptr;
  // Handles a request given as JSON or YAML `text`. May take long for POST. Errors: those of the handlers.
  std::function<absl::Status(std::string_view text, Call& call, std::string& json)> answer;
};

// Borrows the handlers.
std::vector<Route> MakeRoutes(Handlers& handlers);

// Converts the decoded query of a URI to a JSON object of strings. Errors: InvalidArgument for a duplicate parameter or
// one without a name.
absl::StatusOr<std::string> QueryToJson(const base::QueryFields& query);

}  // namespace medley::sched
