#include "scheduler-service/serve_rest/examples.h"

#include <map>
#include <nlohmann/json.hpp>

#include "common/base/embedded_file.h"
#include "common/base/status.h"

MEDLEY_EMBEDDED(rest_examples);

namespace medley::sched {

nlohmann::json ExamplesOf(const std::string& rpc) {
  const nlohmann::json all = nlohmann::json::parse(medley_embedded_rest_examples()[0].bytes, nullptr, false);
  MEDLEY_CHECK(all.is_object(), "examples.json");
  const auto found = all.find(rpc);
  return found == all.end() ? nlohmann::json::object() : *found;
}

nlohmann::json ErrorExample(int code) {
  struct Error {
    const char* code;
    const char* message;
    const char* field;
  };
  static const std::map<int, Error> kErrors = {
      {400, {"INVALID_ARGUMENT", "model.layerz: unknown field; did you mean `layers`?", "model.layerz"}},
      {401, {"UNAUTHENTICATED", "the request has no valid bearer token", ""}},
      {403,
       {"PERMISSION_DENIED", "Origin: pages of 'evil.example' may not use this service, which requires no token", ""}},
      {411, {"INVALID_ARGUMENT", "Content-Length: is required, chunked bodies are not supported", "Content-Length"}},
      {413, {"RESOURCE_EXHAUSTED", "the body has 99000000 bytes, at most 8388608 are allowed", ""}},
      {415,
       {"INVALID_ARGUMENT", "Content-Type: must be application/json or application/yaml, is 'text/plain'",
        "Content-Type"}},
      {421,
       {"PERMISSION_DENIED",
        "this service requires no token, so it answers only to its own names, not to 'other.example': allow the name "
        "with --rest-host, or set --token-file",
        ""}},
      {429, {"RESOURCE_EXHAUSTED", "too many requests are being processed", ""}},
      {431, {"INVALID_ARGUMENT", "the request's header is too large", ""}},
      {503, {"UNAVAILABLE", "the service is stopping", ""}},
      {504, {"DEADLINE_EXCEEDED", "no plan was found in time", ""}},
  };
  const auto found = kErrors.find(code);
  if (found == kErrors.end()) return nlohmann::json::object();
  const Error& error = found->second;
  return {{"code", error.code}, {"message", error.message}, {"field", error.field}};
}

}  // namespace medley::sched
