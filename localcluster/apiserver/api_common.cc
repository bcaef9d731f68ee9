#include <fmt/format.h>

#include "common/base/status.h"
#include "localcluster/apiserver/api.h"
#include "localcluster/apiserver/api_error.h"
#include "localcluster/apiserver/media_type.h"
#include "localcluster/apiserver/protobuf_body.h"
#include "localcluster/apiserver/table.h"

namespace medley::localcluster::apiserver {

HttpResponse JsonResponse(const kube::Json& body, int code) {
  HttpResponse response;
  response.code = code;
  response.body = kube::Dump(body);
  response.body += '\n';
  return response;
}

HttpResponse ErrorAnswer(const absl::Status& status) {
  const kube::Json body = StatusObject(status);
  HttpResponse response = JsonResponse(body, body.value("code", 500));
  const auto details = body.find("details");
  if (details != body.end() && details->contains("retryAfterSeconds")) {
    response.headers.emplace_back("Retry-After", (*details)["retryAfterSeconds"].dump());
  }
  return response;
}

void AddWarnings(const std::vector<std::string>& warnings, HttpResponse* response) {
  for (const std::string& text : warnings) {
    std::string quoted;
    for (const char c : text.substr(0, 256)) {
      if (c == '"' || c == '\\') quoted += '\\';
      if (static_cast<unsigned char>(c) >= 32) quoted += c;
    }
    response->headers.emplace_back("Warning", fmt::format("299 - \"{}\"", quoted));
  }
}

kube::Json InVersion(const ResourceInfo& info, const kube::Json& object) {
  kube::Json out = object;
  out["apiVersion"] = info.resource.ApiVersion();
  return out;
}

bool WantsTable(const HttpRequest& request) { return request.accept.find("as=Table") != std::string::npos; }

bool MethodIsWatch(const HttpRequest& request) { return request.method == "GET" && request.Is("watch"); }

HttpResponse ObjectResponse(const Route& route, const HttpRequest& request, const kube::Json& object,
                            base::WallTime now, int code) {
  const kube::Json shown = InVersion(*route.info, object);
  if (!WantsTable(request)) return JsonResponse(shown, code);
  return JsonResponse(MakeTable(*route.info, {&shown}, now, request.Query("includeObject")), code);
}

absl::StatusOr<kube::Json> DecodeBody(const Route& route, const HttpRequest& request, const WriteOptions& options,
                                      const kube::Definitions& definitions) {
  const ResourceInfo& info = *route.info;
  BodyType type = BodyType::kYaml;  // of an apply patch
  if (request.method != "PATCH") {
    MEDLEY_ASSIGN_OR_RETURN(type, ObjectBodyType(request.content_type, info.builtin));
  }
  kube::Json body;
  if (type == BodyType::kYaml) {
    auto documents = document::ParseYamlStream(request.body, kBodyLimits);
    if (!documents.ok()) return BadRequest(base::Message(documents.status()));
    if (documents->size() != 1) return BadRequest("the body must be one YAML document");
    body = std::move(documents->front());
  } else if (type == BodyType::kProtobuf) {
    auto decoded = DecodeProtobuf(request.body, definitions, info.definition);
    if (!decoded.ok()) return BadRequest(base::Message(decoded.status()));
    body = std::move(*decoded);
  } else {
    std::vector<std::string> duplicates;
    auto parsed = document::ParseJson(request.body, kBodyLimits, &duplicates);
    if (!parsed.ok()) return BadRequest(base::Message(parsed.status()));
    body = *std::move(parsed);
    if (!duplicates.empty()) {
      const std::string text = fmt::format("duplicate field \"{}\"", duplicates[0]);
      if (options.validation == FieldValidation::kStrict) {
        return BadRequest(
            fmt::format("{0} in version \"{1}\" cannot be handled as a {0}: strict "
                        "decoding error: {2}",
                        info.resource.kind, info.resource.version, text));
      }
      if (options.warnings != nullptr) options.warnings->push_back(text);
    }
  }
  if (!body.is_object()) return BadRequest("the body must be a JSON object");
  if (body.contains("metadata") && !body["metadata"].is_object()) {
    return BadRequest("metadata must be a JSON object");
  }
  if (!body.contains("metadata")) body["metadata"] = kube::Json::object();
  return body;
}

absl::StatusOr<WriteOptions> ReadWriteOptions(const Route& route, const HttpRequest& request) {
  WriteOptions options;
  options.subresource = route.subresource;
  if (const std::string dry = request.Query("dryRun"); !dry.empty()) {
    if (dry != "All") return BadRequest(fmt::format("dryRun: Unsupported value: \"{}\"", dry));
    options.dry_run = true;
  }
  const std::string validation = request.Query("fieldValidation");
  if (validation == "Strict") {
    options.validation = FieldValidation::kStrict;
  } else if (validation == "Ignore") {
    options.validation = FieldValidation::kIgnore;
  } else if (!validation.empty() && validation != "Warn") {
    return BadRequest(
        fmt::format("fieldValidation: Unsupported value: \"{}\": supported values: "
                    "\"Ignore\", \"Strict\", \"Warn\"",
                    validation));
  }
  options.manager = request.Query("fieldManager");
  if (options.manager.empty()) {
    options.manager = request.user_agent.substr(0, request.user_agent.find('/'));
  }
  if (options.manager.empty()) options.manager = "unknown";
  options.manager.resize(std::min<size_t>(options.manager.size(), 128));
  options.force = request.Is("force");
  return options;
}

}  // namespace medley::localcluster::apiserver
