#include "localcluster/apiserver/openapi.h"

#include <fmt/format.h>

#include <set>

#include "common/base/hash.h"
#include "localcluster/apiserver/api_error.h"

namespace medley::localcluster::apiserver {
namespace {

constexpr char kMeta[] = "io.k8s.apimachinery.pkg.apis.meta.v1.";

// "medley.dev" + "v1" + "Job" -> "dev.medley.v1.Job", as the real server names CRD definitions.
std::string DefinitionName(const ResourceInfo& info) {
  if (!info.definition.empty()) return info.definition;
  std::string reversed;
  std::string_view rest = info.resource.group;
  while (!rest.empty()) {
    const size_t dot = rest.rfind('.');
    const std::string_view part = dot == std::string_view::npos ? rest : rest.substr(dot + 1);
    reversed += std::string(part) + ".";
    rest = dot == std::string_view::npos ? std::string_view() : rest.substr(0, dot);
  }
  return reversed + info.resource.version + "." + info.resource.kind;
}

void CollectRefs(const kube::Json& node, std::set<std::string>* out) {
  if (node.is_object()) {
    for (const auto& [name, value] : node.items()) {
      if (name == "$ref" && value.is_string()) out->insert(value.get<std::string>());
      CollectRefs(value, out);
    }
  } else if (node.is_array()) {
    for (const kube::Json& item : node) CollectRefs(item, out);
  }
}

// Rewrites $refs to those of the document. Version 3 requires a $ref beside other keywords to be inside an allOf.
kube::Json WithRefs(const kube::Json& node, const std::string& prefix, bool v3) {
  if (node.is_array()) {
    kube::Json out = kube::Json::array();
    for (const kube::Json& item : node) out.push_back(WithRefs(item, prefix, v3));
    return out;
  }
  if (!node.is_object()) return node;
  kube::Json out = kube::Json::object();
  for (const auto& [name, value] : node.items()) {
    if (name == "x-proto") continue;
    if (name == "$ref" && value.is_string()) {
      const kube::Json ref = {{"$ref", prefix + value.get<std::string>()}};
      if (v3 && node.size() > 1) {
        out["allOf"] = kube::Json::array({ref});
      } else {
        out["$ref"] = ref["$ref"];
      }
    } else {
      out[name] = WithRefs(value, prefix, v3);
    }
  }
  return out;
}

// Converts a structural schema to version 2 of the document. Like a real server (ToStructuralOpenAPIV2), it omits what
// kubectl could not handle.
kube::Json InV2(const kube::Json& schema) {
  kube::Json out = schema;
  for (const char* junctor : {"allOf", "anyOf", "oneOf", "not"}) out.erase(junctor);
  const bool open = out.value("x-kubernetes-preserve-unknown-fields", false);
  const bool nullable = out.value("nullable", false);
  if (open || nullable) {
    out.erase("items");
    out.erase("properties");
    out.erase("nullable");
    if (nullable || out.value("type", "") == "object") out.erase("type");
  }
  if (out.value("type", "") == "array" && !out.contains("items")) out.erase("type");
  for (const char* inner : {"items", "additionalProperties"}) {
    if (out.contains(inner) && out[inner].is_object()) out[inner] = InV2(out[inner]);
  }
  if (out.contains("properties")) {
    for (kube::Json& property : out["properties"]) property = InV2(property);
  }
  return out;
}

kube::Json Gvk(const kube::Resource& r) { return {{"group", r.group}, {"version", r.version}, {"kind", r.kind}}; }

// The definitions of some kinds and of all that they refer to. Version 2 cannot express everything that a CRD can.
kube::Json Schemas(const Registry& registry, const std::vector<InfoPtr>& infos, const std::string& prefix, bool v3) {
  kube::Json out = kube::Json::object();
  std::set<std::string> wanted = {std::string(kMeta) + "DeleteOptions", std::string(kMeta) + "Status"};
  for (const InfoPtr& info : infos) {
    const std::string name = DefinitionName(*info);
    const bool as_it_is = info->builtin || v3;
    const kube::Json& own = info->builtin ? registry.definitions().all().at(name) : info->schema_document;
    const kube::Json schema = as_it_is ? own : InV2(own);
    CollectRefs(schema, &wanted);
    out[name] = WithRefs(schema, prefix, v3);
    out[name]["x-kubernetes-group-version-kind"] = kube::Json::array({Gvk(info->resource)});
  }
  while (!wanted.empty()) {
    const std::string name = *wanted.begin();
    wanted.erase(wanted.begin());
    if (out.contains(name) || !registry.definitions().all().contains(name)) continue;
    const kube::Json& schema = registry.definitions().all().at(name);
    CollectRefs(schema, &wanted);
    out[name] = WithRefs(schema, prefix, v3);
  }
  return out;
}

kube::Json Operation(const ResourceInfo& info, const std::string& action, const std::string& ref, bool v3,
                     const std::vector<const char*>& parameters) {
  kube::Json list = kube::Json::array();
  for (const char* name : parameters) {
    kube::Json parameter = {{"name", name}, {"in", "query"}, {"uniqueItems", true}};
    if (v3) {
      parameter["schema"] = {{"type", "string"}, {"uniqueItems", true}};
    } else {
      parameter["type"] = "string";
    }
    list.push_back(std::move(parameter));
  }
  kube::Json ok = {{"description", "OK"}};
  if (v3) {
    ok["content"] = {{"application/json", {{"schema", {{"$ref", ref}}}}}};
  } else {
    ok["schema"] = {{"$ref", ref}};
  }
  return {{"operationId", action + info.resource.kind},
          {"parameters", std::move(list)},
          {"responses", {{"200", std::move(ok)}}},
          {"x-kubernetes-action", action},
          {"x-kubernetes-group-version-kind", Gvk(info.resource)}};
}

kube::Json Paths(const std::vector<InfoPtr>& infos, const std::string& prefix, bool v3) {
  kube::Json paths = kube::Json::object();
  for (const InfoPtr& info : infos) {
    const kube::Resource& r = info->resource;
    const std::string ref = prefix + DefinitionName(*info);
    const std::string ns = r.namespaced ? "{namespace}" : "";
    paths[r.Path(ns)] = {{"get", Operation(*info, "list", ref, v3, {"labelSelector", "fieldSelector", "limit"})},
                         {"post", Operation(*info, "post", ref, v3, {"dryRun", "fieldManager", "fieldValidation"})}};
    paths[r.Path(ns, "{name}")] = {
        {"get", Operation(*info, "get", ref, v3, {})},
        {"put", Operation(*info, "put", ref, v3, {"dryRun", "fieldManager", "fieldValidation"})},
        {"patch", Operation(*info, "patch", ref, v3, {"dryRun", "fieldManager", "fieldValidation", "force"})},
        {"delete", Operation(*info, "delete", ref, v3, {"dryRun", "gracePeriodSeconds"})}};
  }
  return paths;
}

}  // namespace

kube::Json OpenApiV3(const Registry& registry, const std::string& group, const std::string& version) {
  static constexpr char kPrefix[] = "#/components/schemas/";
  std::vector<InfoPtr> infos;
  for (const InfoPtr& info : registry.All()) {
    if (info->resource.group == group && info->resource.version == version) infos.push_back(info);
  }
  if (infos.empty()) return nullptr;
  return {{"openapi", "3.0.0"},
          {"info", {{"title", "Kubernetes"}, {"version", "v1.32.0"}}},
          {"paths", Paths(infos, kPrefix, true)},
          {"components", {{"schemas", Schemas(registry, infos, kPrefix, true)}}}};
}

kube::Json OpenApiV2(const Registry& registry) {
  static constexpr char kPrefix[] = "#/definitions/";
  const std::vector<InfoPtr> infos = registry.All();
  return {{"swagger", "2.0"},
          {"info", {{"title", "Kubernetes"}, {"version", "v1.32.0"}}},
          {"paths", Paths(infos, kPrefix, false)},
          {"definitions", Schemas(registry, infos, kPrefix, false)}};
}

absl::StatusOr<std::optional<HttpResponse>> OpenApiDocument(const Registry& registry,
                                                            const std::vector<std::string>& parts,
                                                            const HttpRequest& request) {
  HttpResponse response;
  if (parts.size() == 2 && parts[1] == "v2") {
    const kube::Json document = OpenApiV2(registry);
    const bool protobuf = request.accept.find("proto-openapi.spec.v2") != std::string::npos;
    response.body = protobuf ? OpenApiV2Protobuf(document) : kube::Dump(document);
    if (protobuf) response.content_type = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    return response;
  }
  if (parts.size() == 2 && parts[1] == "v3") {
    kube::Json paths = kube::Json::object();
    for (const InfoPtr& info : registry.All()) {
      const kube::Resource& r = info->resource;
      const std::string at = r.group.empty() ? "api/" + r.version : "apis/" + r.ApiVersion();
      if (paths.contains(at)) continue;
      const std::string hash = base::HashHex(kube::Dump(OpenApiV3(registry, r.group, r.version)));
      paths[at] = {{"serverRelativeURL", fmt::format("/openapi/v3/{}?hash={}", at, hash)}};
    }
    response.body = kube::Dump({{"paths", std::move(paths)}});
    return response;
  }
  kube::Json document;
  if (parts.size() == 4 && parts[1] == "v3" && parts[2] == "api") {
    document = OpenApiV3(registry, "", parts[3]);
  } else if (parts.size() == 5 && parts[1] == "v3" && parts[2] == "apis") {
    document = OpenApiV3(registry, parts[3], parts[4]);
  }
  if (document.is_null()) {
    return ApiError(404, "NotFound", "the server could not find the requested resource");
  }
  response.body = kube::Dump(document);
  return response;
}

}  // namespace medley::localcluster::apiserver
