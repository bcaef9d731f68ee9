#include "scheduler-service/serve_rest/openapi.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <nlohmann/json.hpp>
#include <set>

#include "common/base/embedded_file.h"
#include "common/base/status.h"
#include "scheduler-service/serve_rest/examples.h"

// The proto files as descriptors that include comments (the descriptors of the generated code have none).
MEDLEY_EMBEDDED(contracts);

namespace medley::sched {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptorSet;
using nlohmann::json;

constexpr char kService[] = "medley.scheduler.v1.SchedulerService";
constexpr char kVersion[] = "0.1.0";

template <typename D>
std::string CommentOf(const D& descriptor) {
  google::protobuf::SourceLocation where;
  if (!descriptor.GetSourceLocation(&where)) return "";
  std::string text = where.leading_comments + where.trailing_comments;
  std::string out;
  for (const char c : text) {
    const bool space = c == ' ' || c == '\n';
    if (!space) out += c;
    if (space && !out.empty() && out.back() != ' ') out += ' ';
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

std::string SchemaName(const Descriptor& type) {
  const std::string& name = type.full_name();
  return name.starts_with("medley.") ? name.substr(7) : name;
}

json Ref(const std::string& section, const std::string& name) {
  return {{"$ref", "#/components/" + section + "/" + name}};
}

// Collects the schemas of messages and of the messages that they use, each once.
class Schemas {
 public:
  json Of(const FieldDescriptor& field) {
    json schema = field.is_map()
                      ? json{{"type", "object"}, {"additionalProperties", Single(*field.message_type()->map_value())}}
                  : field.is_repeated() ? json{{"type", "array"}, {"items", Single(field)}}
                                        : Single(field);
    if (const std::string comment = CommentOf(field); !comment.empty()) schema["description"] = comment;
    return schema;
  }

  json Of(const Descriptor& type) {
    if (type.full_name() == "google.protobuf.Timestamp") return {{"type", "string"}, {"format", "date-time"}};
    const std::string name = SchemaName(type);
    if (!schemas_.contains(name)) {
      schemas_[name] = json::object();  // insert it before its fields, because messages may contain themselves
      json properties = json::object();
      for (int i = 0; i < type.field_count(); ++i) properties[type.field(i)->json_name()] = Of(*type.field(i));
      schemas_[name] = {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
      if (const std::string comment = CommentOf(type); !comment.empty()) schemas_[name]["description"] = comment;
    }
    return Ref("schemas", name);
  }

  json& all() { return schemas_; }

 private:
  json Single(const FieldDescriptor& field) {
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return Of(*field.message_type());
      case FieldDescriptor::CPPTYPE_ENUM:
        return Enum(*field.enum_type());
      case FieldDescriptor::CPPTYPE_STRING:
        if (field.type() == FieldDescriptor::TYPE_BYTES) return {{"type", "string"}, {"contentEncoding", "base64"}};
        return {{"type", "string"}};
      case FieldDescriptor::CPPTYPE_BOOL:
        return {{"type", "boolean"}};
      case FieldDescriptor::CPPTYPE_DOUBLE:
      case FieldDescriptor::CPPTYPE_FLOAT:
        return {{"type", "number"}, {"format", "double"}};
      case FieldDescriptor::CPPTYPE_INT32:
        return {{"type", "integer"}, {"format", "int32"}};
      case FieldDescriptor::CPPTYPE_UINT32:
        return {{"type", "integer"}, {"minimum", 0}, {"maximum", 4294967295}};
      // Responses have strings; requests may have strings or numbers.
      case FieldDescriptor::CPPTYPE_INT64:
        return {{"type", {"string", "integer"}}, {"format", "int64"}};
      case FieldDescriptor::CPPTYPE_UINT64:
        return {{"type", {"string", "integer"}}, {"format", "uint64"}};
    }
    return json::object();
  }

  static json Enum(const EnumDescriptor& type) {
    json values = json::array();
    for (int i = 0; i < type.value_count(); ++i) values.push_back(type.value(i)->name());
    return {{"type", "string"}, {"enum", values}};
  }

  json schemas_ = json::object();
};

json ErrorSchema() {
  return {{"type", "object"},
          {"description", "Why a request was rejected."},
          {"required", {"code", "message", "field"}},
          {"properties",
           {{"code", {{"type", "string"}, {"description", "A gRPC status code."}}},
            {"message", {{"type", "string"}}},
            {"field", {{"type", "string"}, {"description", "Path of the invalid field, or empty."}}}}},
          {"additionalProperties", false}};
}

struct ErrorResponse {
  int code;
  const char* name;
  const char* text;
  bool only_post;
};
// What every operation can answer besides 200; those of POST only where a body is read.
constexpr ErrorResponse kErrors[] = {
    {400, "BadRequest", "The request is invalid; `field` has the path of the field.", false},
    {401, "Unauthenticated", "A valid bearer token is required.", false},
    {403, "Forbidden", "The request comes from a page of another site, and the service requires no token.", true},
    {411, "LengthRequired", "Content-Length is required; chunked bodies are not supported.", true},
    {413, "TooLarge", "The body is larger than the service allows.", true},
    {415, "UnsupportedMediaType", "The body is neither JSON nor YAML.", true},
    {421, "Misdirected", "The service requires no token, and the Host is not one of its names.", false},
    {429, "Busy", "Too many requests or connections; try again after Retry-After seconds. The body may be empty.",
     false},
    {431, "HeaderTooLarge", "The header of the request is too large.", false},
    {503, "Unavailable", "The service is stopping.", false},
    {504, "DeadlineExceeded", "No answer was found in time.", false}};

json ErrorResponses() {
  json out = json::object();
  for (const ErrorResponse& error : kErrors) {
    const json content = {{"schema", Ref("schemas", "Error")}, {"example", ErrorExample(error.code)}};
    out[error.name] = {{"description", error.text}, {"content", {{"application/json", content}}}};
  }
  for (const char* name : {"Busy", "Unavailable"}) {
    out[name]["headers"]["Retry-After"] = {{"description", "Seconds."}, {"schema", {{"type", "integer"}}}};
  }
  return out;
}

void AddErrors(bool post, json& responses) {
  for (const ErrorResponse& error : kErrors) {
    if (error.only_post && !post) continue;
    responses.emplace(std::to_string(error.code), Ref("responses", error.name));
  }
}

json Responses(const json& schema, const json& example, bool post) {
  json content = {{"schema", schema}};
  if (!example.is_null()) content["example"] = example;
  json out = {{"200", {{"description", "OK"}, {"content", {{"application/json", content}}}}}};
  AddErrors(post, out);
  return out;
}

json PlainPath(const std::string& id, const std::string& summary, const std::string& type, bool may_fail) {
  const json content = {{type, {{"schema", {{"type", type == "application/json" ? "object" : "string"}}}}}};
  json operation = {{"operationId", id},
                    {"summary", summary},
                    {"responses", {{"200", {{"description", "OK"}, {"content", content}}}}}};
  if (may_fail) operation["responses"]["503"] = {{"description", "Not ready."}, {"content", content}};
  AddErrors(false, operation["responses"]);
  operation["responses"].erase("504");
  if (!may_fail) operation["responses"].erase("503");
  return {{"get", operation}};
}

json Operation(const Route& route, const Descriptor& request, const Descriptor& response, const std::string& summary,
               Schemas& schemas) {
  const bool post = route.method == "POST";
  const json examples = ExamplesOf(route.rpc);
  json operation = {{"operationId", route.rpc},
                    {"summary", summary},
                    {"parameters", json::array({Ref("parameters", "RequestId")})},
                    {"responses", Responses(schemas.Of(response), examples.value("response", json()), post)}};
  if (post) {
    operation["parameters"].push_back(Ref("parameters", "RequestTimeout"));
    json body = {{"schema", schemas.Of(request)}};
    if (examples.contains("request")) body["example"] = examples["request"];
    operation["requestBody"] = {{"required", true},
                                {"content", {{"application/json", body}, {"application/yaml", body}}}};
    return operation;
  }
  for (int i = 0; i < request.field_count(); ++i) {
    json schema = schemas.Of(*request.field(i));
    json parameter = {{"name", request.field(i)->json_name()}, {"in", "query"}};
    if (schema.contains("description")) parameter["description"] = schema["description"];
    schema.erase("description");
    parameter["schema"] = schema;
    const json values = examples.value("parameters", json::object());
    if (values.contains(request.field(i)->json_name())) parameter["example"] = values[request.field(i)->json_name()];
    operation["parameters"].push_back(parameter);
  }
  return operation;
}

json HeaderParameter(const char* name, const char* description, const json& schema) {
  return {{"name", name}, {"in", "header"}, {"description", description}, {"schema", schema}};
}

}  // namespace

std::string MakeOpenApi(const std::vector<Route>& routes) {
  FileDescriptorSet files;
  const std::string_view bytes = medley_embedded_contracts()[0].bytes;
  MEDLEY_CHECK(files.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())), "contracts as protoc wrote them");
  google::protobuf::DescriptorPool pool;
  for (const auto& file : files.file()) MEDLEY_CHECK(pool.BuildFile(file) != nullptr, file.name());
  const auto* service = pool.FindServiceByName(kService);
  MEDLEY_CHECK(service != nullptr, kService);

  Schemas schemas;
  json paths = json::object();
  for (const Route& route : routes) {
    const auto* rpc = service->FindMethodByName(route.rpc);
    MEDLEY_CHECK(rpc != nullptr || !route.summary.empty(), route.rpc);
    const std::string method = route.method == "POST" ? "post" : "get";
    paths[route.path][method] = Operation(route, *pool.FindMessageTypeByName(route.request->full_name()),
                                          *pool.FindMessageTypeByName(route.response->full_name()),
                                          rpc != nullptr ? CommentOf(*rpc) : route.summary, schemas);
  }
  paths["/healthz"] = PlainPath("Healthz", "The process is alive.", "text/plain", false);
  paths["/readyz"] = PlainPath("Readyz", "The service has prices and is not stopping.", "text/plain", true);
  paths["/metrics"] = PlainPath("Metrics", "Prometheus metrics.", "text/plain", false);
  paths["/openapi.json"] = PlainPath("OpenApi", "This document.", "application/json", false);
  schemas.all()["Error"] = ErrorSchema();
  const json document = {
      {"openapi", "3.1.0"},
      {"info",
       {{"title", "Medley's scheduling service"},
        {"version", kVersion},
        {"description", CommentOf(*service)},
        {"license", {{"name", "Apache-2.0"}, {"identifier", "Apache-2.0"}}}}},
      {"servers", json::array({{{"url", "/"}}})},
      {"security", json::array({json::object(), {{"bearer", json::array()}}})},
      {"paths", paths},
      {"components",
       {{"schemas", schemas.all()},
        {"responses", ErrorResponses()},
        {"parameters",
         {{"RequestId",
           HeaderParameter("X-Request-Id", "The caller's ID for the request, included in logs and in the response.",
                           {{"type", "string"}, {"maxLength", 64}})},
          {"RequestTimeout", HeaderParameter("Request-Timeout", "The caller's timeout in seconds.",
                                             {{"type", "number"}, {"exclusiveMinimum", 0}, {"maximum", 86400}})}}},
        {"securitySchemes", {{"bearer", {{"type", "http"}, {"scheme", "bearer"}}}}}}}};
  return document.dump();
}

}  // namespace medley::sched
