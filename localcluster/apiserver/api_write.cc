// The verbs create, update, patch, delete and deletecollection.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/base/status.h"
#include "kube/json_access.h"
#include "localcluster/apiserver/api.h"
#include "localcluster/apiserver/api_error.h"
#include "localcluster/apiserver/media_type.h"
#include "localcluster/apiserver/patch.h"
#include "localcluster/apiserver/protobuf_body.h"
#include "localcluster/apiserver/selectors.h"

namespace medley::localcluster::apiserver {
namespace {

// Custom resources and a few built-in ones can only be replaced by a client that names the version it has read.
absl::Status CheckConditional(const ResourceInfo& info, const std::string& name, const kube::Json& body) {
  static constexpr std::array kConditional = {"PodDisruptionBudget", "Lease", "CustomResourceDefinition"};
  const bool conditional =
      !info.builtin || std::find(kConditional.begin(), kConditional.end(), info.resource.kind) != kConditional.end();
  if (!conditional || !kube::GetString(body.value("metadata", kube::Json::object()), "resourceVersion").empty()) {
    return absl::OkStatus();
  }
  kube::Resource named = info.resource;
  named.kind = named.plural;  // as the real server does
  return InvalidError(named, name,
                      {kube::InvalidValue("metadata.resourceVersion", 0, "must be specified for an update")});
}

absl::Status CheckKind(const ResourceInfo& info, const kube::Json& body) {
  const std::string version = kube::GetString(body, "apiVersion");
  const std::string kind = kube::GetString(body, "kind");
  if ((version.empty() || version == info.resource.ApiVersion()) && (kind.empty() || kind == info.resource.kind)) {
    return absl::OkStatus();
  }
  return BadRequest(fmt::format("the object provided ({}, {}) does not match the resource ({}, {})", version, kind,
                                info.resource.ApiVersion(), info.resource.kind));
}

absl::StatusOr<kube::Json> BodyOf(const Route& route, const HttpRequest& request, const WriteOptions& options,
                                  const kube::Definitions& definitions) {
  MEDLEY_ASSIGN_OR_RETURN(kube::Json body, DecodeBody(route, request, options, definitions));
  MEDLEY_RETURN_IF_ERROR(CheckKind(*route.info, body));
  body["apiVersion"] = route.info->resource.ApiVersion();
  body["kind"] = route.info->resource.kind;
  return body;
}

absl::StatusOr<DeleteSpec> ReadDeleteSpec(const HttpRequest& request, const kube::Definitions& definitions) {
  DeleteSpec spec;
  kube::Json body = kube::Json::object();
  BodyType type = BodyType::kJson;
  if (!request.body.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(type, ObjectBodyType(request.content_type, true));
  }
  if (type == BodyType::kProtobuf) {
    auto decoded = DecodeProtobuf(request.body, definitions, "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions");
    if (!decoded.ok()) return BadRequest(base::Message(decoded.status()));
    body = std::move(*decoded);
  } else if (type == BodyType::kYaml) {
    auto parsed = document::ParseYamlStream(request.body, kBodyLimits);
    if (!parsed.ok()) return BadRequest("DeleteOptions: " + base::Message(parsed.status()));
    if (parsed->size() != 1 || !parsed->front().is_object()) return BadRequest("DeleteOptions must be one YAML object");
    body = std::move(parsed->front());
  } else if (!request.body.empty()) {
    auto parsed = document::ParseJson(request.body, kBodyLimits);
    if (!parsed.ok()) return BadRequest("DeleteOptions: " + base::Message(parsed.status()));
    if (!parsed->is_object()) return BadRequest("DeleteOptions must be a JSON object");
    body = *std::move(parsed);
  }
  spec.propagation = kube::GetString(body, "propagationPolicy");
  if (const std::string given = request.Query("propagationPolicy"); !given.empty()) {
    spec.propagation = given;
  }
  if (body.contains("gracePeriodSeconds") && body["gracePeriodSeconds"].is_number_integer()) {
    spec.grace_seconds = body["gracePeriodSeconds"].get<int64_t>();
  }
  if (const std::string given = request.Query("gracePeriodSeconds"); !given.empty()) {
    char* end = nullptr;
    spec.grace_seconds = std::strtoll(given.c_str(), &end, 10);
    if (*end != '\0') return BadRequest("gracePeriodSeconds must be a number");
  }
  if (spec.grace_seconds.value_or(0) < 0) return BadRequest("gracePeriodSeconds must not be negative");
  if (body.contains("preconditions") && body["preconditions"].is_object()) {
    const kube::Json& conditions = body["preconditions"];
    if (const std::string uid = kube::GetString(conditions, "uid"); !uid.empty()) spec.uid = uid;
    if (const std::string version = kube::GetString(conditions, "resourceVersion"); !version.empty()) {
      spec.resource_version = version;
    }
  }
  spec.dry_run =
      request.Query("dryRun") == "All" || (body.contains("dryRun") && body["dryRun"] == kube::Json::array({"All"}));
  if (!spec.propagation.empty() && spec.propagation != "Background" && spec.propagation != "Foreground" &&
      spec.propagation != "Orphan") {
    return BadRequest(fmt::format("propagationPolicy: Unsupported value: \"{}\"", spec.propagation));
  }
  return spec;
}

}  // namespace

absl::StatusOr<HttpResponse> Api::Create(const Route& route, const HttpRequest& request) {
  std::vector<std::string> warnings;
  MEDLEY_ASSIGN_OR_RETURN(WriteOptions options, ReadWriteOptions(route, request));
  options.warnings = &warnings;
  MEDLEY_ASSIGN_OR_RETURN(kube::Json body, BodyOf(route, request, options, rest_.registry().definitions()));
  MEDLEY_ASSIGN_OR_RETURN(const kube::ObjectPtr object, rest_.Create(*route.info, route.ns, std::move(body), options));
  HttpResponse response = ObjectResponse(route, request, object->json(), rest_.clock().Now(), 201);
  AddWarnings(warnings, &response);
  return response;
}

absl::StatusOr<HttpResponse> Api::Update(const Route& route, const HttpRequest& request) {
  std::vector<std::string> warnings;
  MEDLEY_ASSIGN_OR_RETURN(WriteOptions options, ReadWriteOptions(route, request));
  options.warnings = &warnings;
  MEDLEY_ASSIGN_OR_RETURN(const kube::Json body, BodyOf(route, request, options, rest_.registry().definitions()));
  MEDLEY_ASSIGN_OR_RETURN(const kube::ObjectPtr object,
                          rest_.Modify(
                              *route.info, route.key(),
                              [&](const kube::Json&) -> absl::StatusOr<kube::Json> {
                                warnings.clear();
                                MEDLEY_RETURN_IF_ERROR(CheckConditional(*route.info, route.name, body));
                                return body;
                              },
                              options));
  HttpResponse response = ObjectResponse(route, request, object->json(), rest_.clock().Now());
  AddWarnings(warnings, &response);
  return response;
}

absl::StatusOr<HttpResponse> Api::Patch(const Route& route, const HttpRequest& request) {
  std::vector<std::string> warnings;
  MEDLEY_ASSIGN_OR_RETURN(WriteOptions options, ReadWriteOptions(route, request));
  options.warnings = &warnings;
  const ResourceInfo& info = *route.info;
  MEDLEY_ASSIGN_OR_RETURN(const PatchBody type, PatchBodyType(request.content_type, info.builtin));
  kube::ObjectPtr object;
  int code = 200;
  if (type == PatchBody::kApply) {
    if (request.Query("fieldManager").empty()) {
      return ApiError(422, "Invalid",
                      "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is "
                      "required for apply patch");
    }
    MEDLEY_ASSIGN_OR_RETURN(const kube::Json body, BodyOf(route, request, options, rest_.registry().definitions()));
    if (const std::string name = kube::GetString(body["metadata"], "name"); !name.empty() && name != route.name) {
      return BadRequest("the name of the object does not match the name on the URL");
    }
    kube::Json config = body;
    config["metadata"]["name"] = route.name;
    bool created = false;
    MEDLEY_ASSIGN_OR_RETURN(object, rest_.Apply(info, route.key(), config, options, &created));
    if (created) code = 201;
  } else {
    const auto parsed = document::ParseJson(request.body, kBodyLimits);
    if (!parsed.ok()) return BadRequest(base::Message(parsed.status()));
    const kube::Json& patch = *parsed;
    const bool strategic = type == PatchBody::kStrategic;
    const bool merge = type == PatchBody::kMerge;
    if (merge && !patch.is_object()) return BadRequest("a merge patch must be a JSON object");
    const auto change = [&](const kube::Json& current) -> absl::StatusOr<kube::Json> {
      warnings.clear();
      if (strategic) return StrategicMergePatch(current, patch, info.schema);
      if (!merge) return JsonPatch(InVersion(info, current), patch);
      kube::Json next = current;
      kube::MergePatch(next, patch);
      return next;
    };
    MEDLEY_ASSIGN_OR_RETURN(object, rest_.Modify(info, route.key(), change, options));
  }
  HttpResponse response = ObjectResponse(route, request, object->json(), rest_.clock().Now(), code);
  AddWarnings(warnings, &response);
  return response;
}

absl::StatusOr<HttpResponse> Api::Delete(const Route& route, const HttpRequest& request) {
  MEDLEY_ASSIGN_OR_RETURN(const DeleteSpec spec, ReadDeleteSpec(request, rest_.registry().definitions()));
  MEDLEY_ASSIGN_OR_RETURN(const Deleted done, rest_.Delete(*route.info, route.key(), spec));
  const std::vector<std::string> warnings =
      options_.warn_of_delete ? options_.warn_of_delete(*done.object) : std::vector<std::string>();
  // As the real server does: return deleted pods and namespaces themselves, and a Status for other deleted objects.
  if (!done.removed || route.info->resource.kind == "Pod") {
    HttpResponse response = ObjectResponse(route, request, done.object->json(), rest_.clock().Now());
    AddWarnings(warnings, &response);
    return response;
  }
  kube::Json details = {{"name", route.name}, {"kind", route.info->resource.plural}, {"uid", done.object->uid()}};
  if (!route.info->resource.group.empty()) details["group"] = route.info->resource.group;
  HttpResponse response = JsonResponse({{"kind", "Status"},
                                        {"apiVersion", "v1"},
                                        {"metadata", kube::Json::object()},
                                        {"status", "Success"},
                                        {"details", std::move(details)}});
  AddWarnings(warnings, &response);
  return response;
}

absl::StatusOr<HttpResponse> Api::DeleteCollection(const Route& route, const HttpRequest& request) {
  MEDLEY_ASSIGN_OR_RETURN(const DeleteSpec spec, ReadDeleteSpec(request, rest_.registry().definitions()));
  MEDLEY_ASSIGN_OR_RETURN(
      const Selector selector,
      Selector::Parse(*route.info, route.ns, request.Query("labelSelector"), request.Query("fieldSelector")));
  kube::Json items = kube::Json::array();
  for (const kube::ObjectPtr& object : rest_.store().List(route.info->bucket(), route.ns).objects) {
    if (!selector.Matches(*object)) continue;
    const auto done = rest_.Delete(*route.info, object->key(), spec);
    if (done.ok()) items.push_back(InVersion(*route.info, done->object->json()));
    // NotFound means that another client has deleted the object, which is fine. Return all other errors.
    if (!done.ok() && HttpCodeOf(done.status()) != 404) return done.status();
  }
  return JsonResponse({{"kind", route.info->list_kind},
                       {"apiVersion", route.info->resource.ApiVersion()},
                       {"metadata", {{"resourceVersion", std::to_string(rest_.store().version())}}},
                       {"items", std::move(items)}});
}

}  // namespace medley::localcluster::apiserver
