// What is served under /v1: the methods of the service, as text in and JSON out. The table is also what the OpenAPI
// document is made from.
#pragma once

#include <absl/status/status.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler-service/handlers/handlers.h"

namespace google::protobuf {
class Descriptor;
}

namespace medley::sched {

struct Route {
  std::string method;  // GET: the request's fields are query parameters; POST: JSON or YAML in the body
  std::string path;
  std::string rpc;      // the name of the method in the service's contract, or of one that only REST has
  std::string summary;  // of a method that only REST has
  const google::protobuf::Descriptor* request = nullptr;
  const google::protobuf::Descriptor* response = nullptr;
  // `text`: JSON or YAML of the request. May take long for POST. Errors: those of the handlers.
  std::function<absl::Status(std::string_view text, Call& call, std::string& json)> answer;
};

// Borrows the handlers.
std::vector<Route> MakeRoutes(Handlers& handlers);

// The query of a URI ("type=v100&since=2026-01-01T00%3A00%3A00Z") as JSON of strings. Errors: InvalidArgument for a
// parameter that is given twice or without a name.
absl::StatusOr<std::string> QueryToJson(std::string_view query);

}  // namespace medley::sched
