// The subresources: scale of custom resources; binding, eviction and log of pods.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "common/base/status.h"
#include "localcluster/apiserver/api.h"
#include "localcluster/apiserver/api_error.h"
#include "localcluster/apiserver/media_type.h"
#include "localcluster/apiserver/patch.h"
#include "localcluster/apiserver/table.h"
#include "localcluster/log_reader.h"

namespace medley::localcluster::apiserver {
namespace {

// Converts ".spec.replicas" to a JSON pointer.
kube::Json::json_pointer Pointer(const std::string& path) {
  std::string text;
  for (const char c : path) text += c == '.' ? '/' : c;
  return kube::Json::json_pointer(text);
}

kube::Json ScaleOf(const ResourceInfo& info, const kube::Json& object) {
  const kube::Json& metadata = object.at("metadata");
  kube::Json scale = {{"kind", "Scale"},
                      {"apiVersion", "autoscaling/v1"},
                      {"metadata",
                       {{"name", metadata.value("name", "")},
                        {"namespace", metadata.value("namespace", "")},
                        {"uid", metadata.value("uid", "")},
                        {"resourceVersion", metadata.value("resourceVersion", "")},
                        {"creationTimestamp", metadata.value("creationTimestamp", "")}}},
                      {"spec", {{"replicas", 0}}},
                      {"status", {{"replicas", 0}}}};
  if (const kube::Json v = JsonPath(object, info.spec_replicas); v.is_number_integer()) {
    scale["spec"]["replicas"] = v;
  }
  if (const kube::Json v = JsonPath(object, info.status_replicas); v.is_number_integer()) {
    scale["status"]["replicas"] = v;
  }
  if (const kube::Json v = JsonPath(object, info.label_selector); v.is_string()) {
    scale["status"]["selector"] = v;
  }
  return scale;
}

// Reads a whole number >= `least` from the query; nullopt if it is absent or empty.
absl::StatusOr<std::optional<int64_t>> ReadCount(const HttpRequest& request, const char* name, int64_t least,
                                                 kube::FieldErrors* errors) {
  const std::string text = request.Query(name);
  if (text.empty()) return std::nullopt;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return BadRequest(fmt::format("strconv.ParseInt: parsing {}: invalid syntax", kube::Dump(text)));
  }
  if (value < least) {
    errors->push_back(
        kube::InvalidValue(name, value, least == 0 ? "must be greater than or equal to 0" : "must be greater than 0"));
  }
  return value;
}

absl::StatusOr<LogOptions> ReadLogOptions(const Route& route, const HttpRequest& request, base::WallTime now) {
  LogOptions options;
  kube::FieldErrors errors;
  options.container = request.Query("container");
  options.follow = request.Is("follow");
  options.previous = request.Is("previous");
  options.timestamps = request.Is("timestamps");
  MEDLEY_ASSIGN_OR_RETURN(options.tail_lines, ReadCount(request, "tailLines", 0, &errors));
  MEDLEY_ASSIGN_OR_RETURN(options.limit_bytes, ReadCount(request, "limitBytes", 1, &errors));
  const std::string time = request.Query("sinceTime");
  if (!time.empty()) {
    const auto since = base::ParseTime(time);
    if (!since.ok()) return BadRequest(base::Message(since.status()));
    options.since = *since;
  }
  const bool both = !time.empty() && !request.Query("sinceSeconds").empty();
  if (both) {
    errors.push_back(kube::Forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"));
  }
  kube::FieldErrors unused;
  MEDLEY_ASSIGN_OR_RETURN(const std::optional<int64_t> seconds,
                          ReadCount(request, "sinceSeconds", 1, both ? &unused : &errors));
  // A kubelet would overflow here; we return the whole log.
  constexpr int64_t kForever = int64_t{100} * 365 * 24 * 3600;
  if (seconds) options.since = now - base::seconds(std::min(*seconds, kForever));
  if (!errors.empty()) {
    return InvalidError({"", "v1", "podlogoptions", "PodLogOptions"}, route.name, errors);
  }
  return options;
}

// The body of a write to a subresource, which has no schema of its own here.
absl::StatusOr<kube::Json> SubresourceBody(const HttpRequest& request) {
  BodyType type = BodyType::kJson;
  if (request.method == "PATCH") {
    MEDLEY_RETURN_IF_ERROR(PatchBodyType(request.content_type, false).status());
  } else {
    MEDLEY_ASSIGN_OR_RETURN(type, ObjectBodyType(request.content_type, false));
  }
  if (type == BodyType::kYaml) {
    auto documents = document::ParseYamlStream(request.body, kBodyLimits);
    if (!documents.ok()) return BadRequest(base::Message(documents.status()));
    if (documents->size() != 1) return BadRequest("the body must be one YAML document");
    return std::move(documents->front());
  }
  auto parsed = document::ParseJson(request.body, kBodyLimits);
  if (!parsed.ok()) return BadRequest(base::Message(parsed.status()));
  return *std::move(parsed);
}

// Chooses the container; the errors are those of a real server.
absl::Status PickContainer(const kube::Json& pod, LogOptions* options) {
  const kube::Json::json_pointer place("/spec/containers");
  std::string names;
  bool found = false;
  for (const kube::Json& container : pod.at(place)) {
    const std::string name = container.value("name", "");
    names += (names.empty() ? "" : " ") + name;
    found = found || name == options->container;
  }
  const std::string pod_name = pod["metadata"].value("name", "");
  if (options->container.empty()) {
    if (pod.at(place).size() > 1) {
      return BadRequest(
          fmt::format("a container name must be specified for pod {}, choose one of: [{}]", pod_name, names));
    }
    options->container = names;
  } else if (!found) {
    return BadRequest(fmt::format("container {} is not valid for pod {}", options->container, pod_name));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<HttpResponse> Api::Scale(const Route& route, const HttpRequest& request) {
  const ResourceInfo& info = *route.info;
  if (route.verb == "get") {
    MEDLEY_ASSIGN_OR_RETURN(const kube::ObjectPtr object, rest_.Get(info, route.key()));
    return JsonResponse(ScaleOf(info, object->json()));
  }
  if (route.verb != "update" && route.verb != "patch")
    return MethodNotAllowed("scale allows only get, update and patch");
  MEDLEY_ASSIGN_OR_RETURN(WriteOptions options, ReadWriteOptions(route, request));
  MEDLEY_ASSIGN_OR_RETURN(const kube::Json body, SubresourceBody(request));
  const auto change = [&](const kube::Json& current) -> absl::StatusOr<kube::Json> {
    kube::Json scale = body;
    if (route.verb == "patch") {
      scale = ScaleOf(info, current);
      if (body.is_array()) {
        MEDLEY_ASSIGN_OR_RETURN(scale, JsonPatch(scale, body));
      } else {
        kube::MergePatch(scale, body);
      }
    }
    const kube::Json replicas = JsonPath(scale, ".spec.replicas");
    if (!replicas.is_number_integer() || replicas.get<int64_t>() < 0) {
      return InvalidError(
          {"autoscaling", "v1", "scales", "Scale"}, route.name,
          {kube::InvalidValue("spec.replicas", replicas, "should be a whole number that is not negative")});
    }
    kube::Json next = current;
    next[Pointer(info.spec_replicas)] = replicas;
    next["metadata"].erase("resourceVersion");
    if (const kube::Json version = JsonPath(scale, ".metadata.resourceVersion"); version.is_string()) {
      next["metadata"]["resourceVersion"] = version;
    }
    return next;
  };
  MEDLEY_ASSIGN_OR_RETURN(const kube::ObjectPtr object, rest_.Modify(info, route.key(), change, options));
  return JsonResponse(ScaleOf(info, object->json()));
}

absl::StatusOr<HttpResponse> Api::Bind(const Route& route, const HttpRequest& request) {
  MEDLEY_ASSIGN_OR_RETURN(WriteOptions options, ReadWriteOptions(route, request));
  options.subresource.clear();
  options.binding = true;
  MEDLEY_ASSIGN_OR_RETURN(const kube::Json body, SubresourceBody(request));
  const kube::Json node = JsonPath(body, ".target.name");
  if (!node.is_string()) return BadRequest("target.name: Required value");
  const auto change = [&](const kube::Json& current) -> absl::StatusOr<kube::Json> {
    const kube::Json bound = JsonPath(current, ".spec.nodeName");
    if (bound.is_string() && bound != node && !bound.get<std::string>().empty()) {
      return ConflictError(route.info->resource, route.name,
                           fmt::format("pod {} is already assigned to node {}", route.name, kube::Dump(bound)));
    }
    kube::Json next = current;
    next["spec"]["nodeName"] = node;
    return next;
  };
  MEDLEY_ASSIGN_OR_RETURN(const kube::ObjectPtr bound, rest_.Modify(*route.info, route.key(), change, options));
  // Set the condition that a scheduler's binding leads to.
  options.subresource = "status";
  options.binding = false;
  const std::string now = base::FormatTime(rest_.clock().Now());
  const auto scheduled = [&](const kube::Json& current) -> absl::StatusOr<kube::Json> {
    kube::Json next = current;
    kube::Json& conditions = next["status"]["conditions"];
    if (!conditions.is_array()) conditions = kube::Json::array();
    for (const kube::Json& one : conditions) {
      if (one.is_object() && one.value("type", "") == "PodScheduled") return next;
    }
    conditions.push_back({{"type", "PodScheduled"}, {"status", "True"}, {"lastTransitionTime", now}});
    return next;
  };
  if (auto done = rest_.Modify(*route.info, route.key(), scheduled, options); !done.ok()) {
    return done.status();
  }
  return JsonResponse({{"kind", "Status"},
                       {"apiVersion", "v1"},
                       {"metadata", kube::Json::object()},
                       {"status", "Success"},
                       {"code", 201}},
                      201);
}

absl::StatusOr<HttpResponse> Api::Evict(const Route& route, const HttpRequest& request) {
  if (!request.body.empty()) MEDLEY_RETURN_IF_ERROR(ObjectBodyType(request.content_type, true).status());
  MEDLEY_ASSIGN_OR_RETURN(const Deleted done, rest_.Delete(*route.info, route.key(), {}));
  return JsonResponse({{"kind", "Status"},
                       {"apiVersion", "v1"},
                       {"metadata", kube::Json::object()},
                       {"status", "Success"},
                       {"code", 201}},
                      201);
}

absl::StatusOr<HttpResponse> Api::Log(const Route& route, const HttpRequest& request) {
  MEDLEY_ASSIGN_OR_RETURN(const kube::ObjectPtr pod, rest_.Get(*route.info, route.key()));
  MEDLEY_ASSIGN_OR_RETURN(LogOptions options, ReadLogOptions(route, request, rest_.clock().Now()));
  MEDLEY_RETURN_IF_ERROR(PickContainer(pod->json(), &options));
  if (!logs_.serving()) return ApiError(404, "NotFound", "no node serves the logs of this pod");
  HttpResponse response;
  response.content_type = "text/plain";
  if (options.follow) {
    response.stream = [this, key = route.key(), options](BodySink& sink, const std::stop_token& stop) {
      const absl::Status status =
          logs_.Read(key, options, stop, [&](std::string_view piece) { return sink.Write(piece); });
      if (!status.ok()) sink.Write(base::Message(status) + "\n");
    };
    return response;
  }
  const absl::Status status = logs_.Read(route.key(), options, std::stop_token(), [&](std::string_view piece) {
    response.body += piece;
    return response.body.size() < (size_t{64} << 20);
  });
  if (!status.ok()) {
    return status.code() == absl::StatusCode::kNotFound ? ApiError(404, "NotFound", base::Message(status))
                                                        : BadRequest(base::Message(status));
  }
  return response;
}

}  // namespace medley::localcluster::apiserver
