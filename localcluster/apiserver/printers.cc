#include "localcluster/apiserver/printers.h"

#include <fmt/format.h>

#include "localcluster/apiserver/table.h"

namespace medley::localcluster::apiserver {
namespace {

std::string Str(const kube::Json& object, const char* path, const char* fallback = "<none>") {
  const kube::Json value = JsonPath(object, path);
  if (value.is_null()) return fallback;
  const std::string text = value.is_string() ? value.get<std::string>() : kube::Dump(value);
  return text.empty() ? fallback : text;
}

int64_t Int(const kube::Json& object, const char* path) {
  const kube::Json value = JsonPath(object, path);
  return value.is_number() ? static_cast<int64_t>(value.get<double>()) : 0;
}

// The list at `path`, or an empty list.
kube::Json Items(const kube::Json& object, const char* path) {
  const kube::Json value = JsonPath(object, path);
  return value.is_array() ? value : kube::Json::array();
}

PrinterColumn Text(const char* name, const char* path, int priority = 0, const char* fallback = "<none>") {
  return {name, "string", priority,
          [path, fallback](const kube::Json& object) { return kube::Json(Str(object, path, fallback)); }};
}

PrinterColumn AgeColumn(base::WallTime now) {
  return {"Age", "string", 0,
          [now](const kube::Json& o) { return kube::Json(Age(Str(o, ".metadata.creationTimestamp"), now)); }};
}

kube::Json PodReady(const kube::Json& pod) {
  int ready = 0;
  for (const kube::Json& status : Items(pod, ".status.containerStatuses")) {
    ready += status.is_object() && status.value("ready", false);
  }
  return fmt::format("{}/{}", ready, Items(pod, ".spec.containers").size());
}

kube::Json PodStatus(const kube::Json& pod) {
  std::string reason = Str(pod, ".status.phase", "Unknown");
  if (const std::string why = Str(pod, ".status.reason", ""); !why.empty()) reason = why;
  const kube::Json statuses = Items(pod, ".status.containerStatuses");
  for (auto it = statuses.rbegin(); it != statuses.rend(); ++it) {
    const std::string waiting = Str(*it, ".state.waiting.reason", "");
    const std::string ended = Str(*it, ".state.terminated.reason", "");
    if (!waiting.empty()) {
      reason = waiting;
    } else if (!ended.empty()) {
      reason = ended;
    } else if (!JsonPath(*it, ".state.terminated").is_null()) {
      const int64_t signal = Int(*it, ".state.terminated.signal");
      reason = signal != 0 ? fmt::format("Signal:{}", signal)
                           : fmt::format("ExitCode:{}", Int(*it, ".state.terminated.exitCode"));
    }
  }
  if (!JsonPath(pod, ".metadata.deletionTimestamp").is_null()) reason = "Terminating";
  return reason;
}

kube::Json PodRestarts(const kube::Json& pod) {
  int64_t restarts = 0;
  for (const kube::Json& status : Items(pod, ".status.containerStatuses")) {
    restarts += Int(status, ".restartCount");
  }
  return std::to_string(restarts);
}

std::vector<PrinterColumn> Pods(base::WallTime now) {
  return {NameColumn(),
          {"Ready", "string", 0, PodReady},
          {"Status", "string", 0, PodStatus},
          {"Restarts", "string", 0, PodRestarts},
          AgeColumn(now),
          Text("IP", ".status.podIP", 1),
          Text("Node", ".spec.nodeName", 1),
          Text("Nominated Node", ".status.nominatedNodeName", 1),
          {"Readiness Gates", "string", 1, [](const kube::Json&) { return kube::Json("<none>"); }}};
}

std::vector<PrinterColumn> Events(base::WallTime now) {
  const auto last = [now](const kube::Json& e) -> kube::Json {
    for (const char* path :
         {".series.lastObservedTime", ".lastTimestamp", ".eventTime", ".metadata.creationTimestamp"}) {
      const std::string time = Str(e, path, "");
      if (!time.empty()) return Age(time, now);
    }
    return "<unknown>";
  };
  const auto object = [](const kube::Json& e) -> kube::Json {
    std::string kind = Str(e, ".involvedObject.kind", "");
    for (char& c : kind) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return fmt::format("{}/{}", kind, Str(e, ".involvedObject.name", ""));
  };
  const auto source = [](const kube::Json& e) -> kube::Json {
    const std::string component = Str(e, ".source.component", "");
    return component.empty() ? Str(e, ".reportingComponent", "") : component;
  };
  return {{"Last Seen", "string", 0, last},
          Text("Type", ".type"),
          Text("Reason", ".reason"),
          {"Object", "string", 0, object},
          Text("Subobject", ".involvedObject.fieldPath", 1, ""),
          {"Source", "string", 1, source},
          Text("Message", ".message", 0, ""),
          {"First Seen", "string", 1,
           [now](const kube::Json& e) { return kube::Json(Age(Str(e, ".firstTimestamp", ""), now)); }},
          {"Count", "string", 1,
           [](const kube::Json& e) { return kube::Json(std::to_string(std::max<int64_t>(1, Int(e, ".count")))); }},
          {"Name", "string", 1, NameColumn().cell}};
}

kube::Json ServicePorts(const kube::Json& service) {
  std::string text;
  for (const kube::Json& port : Items(service, ".spec.ports")) {
    text += fmt::format("{}{}/{}", text.empty() ? "" : ",", Int(port, ".port"), Str(port, ".protocol", "TCP"));
  }
  return text.empty() ? "<none>" : text;
}

kube::Json NodeStatus(const kube::Json& node) {
  std::string status = "Unknown";
  for (const kube::Json& condition : Items(node, ".status.conditions")) {
    if (Str(condition, ".type") == "Ready") {
      status = Str(condition, ".status") == "True" ? "Ready" : "NotReady";
    }
  }
  if (JsonPath(node, ".spec.unschedulable") == true) status += ",SchedulingDisabled";
  return status;
}

kube::Json NodeRoles(const kube::Json& node) {
  static constexpr std::string_view kPrefix = "node-role.kubernetes.io/";
  std::string roles;
  const kube::Json labels = JsonPath(node, ".metadata.labels");
  if (!labels.is_object()) return "<none>";
  for (const auto& [name, value] : labels.items()) {
    if (name.starts_with(kPrefix)) roles += (roles.empty() ? "" : ",") + name.substr(kPrefix.size());
  }
  return roles.empty() ? "<none>" : roles;
}

kube::Json QuotaCell(const kube::Json& quota, bool limits) {
  const kube::Json hard =
      JsonPath(quota, ".status.hard").is_object() ? JsonPath(quota, ".status.hard") : JsonPath(quota, ".spec.hard");
  const kube::Json used = JsonPath(quota, ".status.used");
  std::string text;
  if (!hard.is_object()) return "";
  for (const auto& [name, value] : hard.items()) {
    if (name.starts_with("limits.") != limits) continue;
    const std::string now = used.is_object() ? used.value(name, std::string("0")) : "0";
    text += fmt::format("{}{}: {}/{}", text.empty() ? "" : ", ", name, now,
                        value.is_string() ? value.get<std::string>() : kube::Dump(value));
  }
  return text;
}

kube::Json DataCount(const kube::Json& object) {
  size_t n = 0;
  for (const char* path : {".data", ".binaryData"}) {
    const kube::Json value = JsonPath(object, path);
    n += value.is_object() ? value.size() : 0;
  }
  return n;
}

kube::Json SelectorText(const kube::Json& policy) {
  const kube::Json labels = JsonPath(policy, ".spec.podSelector.matchLabels");
  std::string text;
  if (labels.is_object()) {
    for (const auto& [key, value] : labels.items()) {
      text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, value.is_string() ? value.get<std::string>() : "");
    }
  }
  return text.empty() ? "<none>" : text;
}

}  // namespace

PrinterColumn NameColumn() {
  return {"Name", "string", 0, [](const kube::Json& o) { return kube::Json(Str(o, ".metadata.name", "")); }};
}

std::string Age(const std::string& time, base::WallTime now) {
  const auto parsed = base::ParseTime(time);
  return parsed.ok() ? HumanDuration(now - *parsed) : "<unknown>";
}

std::vector<PrinterColumn> BuiltinColumns(const ResourceInfo& info, base::WallTime now) {
  const PrinterColumn age = AgeColumn(now);
  const std::string kind = info.builtin ? info.resource.kind : "";
  if (kind == "Pod") return Pods(now);
  if (kind == "Event") return Events(now);
  if (kind == "Service") {
    return {NameColumn(),
            Text("Type", ".spec.type"),
            Text("Cluster-IP", ".spec.clusterIP"),
            {"External-IP", "string", 0, [](const kube::Json&) { return kube::Json("<none>"); }},
            {"Port(s)", "string", 0, ServicePorts},
            age};
  }
  if (kind == "ConfigMap") return {NameColumn(), {"Data", "string", 0, DataCount}, age};
  if (kind == "Secret") {
    return {NameColumn(), Text("Type", ".type"), {"Data", "string", 0, DataCount}, age};
  }
  if (kind == "Node") {
    return {NameColumn(),
            {"Status", "string", 0, NodeStatus},
            {"Roles", "string", 0, NodeRoles},
            age,
            Text("Version", ".status.nodeInfo.kubeletVersion", 0, "")};
  }
  if (kind == "Namespace") return {NameColumn(), Text("Status", ".status.phase"), age};
  if (kind == "Lease") return {NameColumn(), Text("Holder", ".spec.holderIdentity", 0, ""), age};
  if (kind == "ResourceQuota") {
    return {NameColumn(),
            {"Request", "string", 0, [](const kube::Json& o) { return QuotaCell(o, false); }},
            {"Limit", "string", 0, [](const kube::Json& o) { return QuotaCell(o, true); }},
            age};
  }
  if (kind == "PodDisruptionBudget") {
    return {NameColumn(), Text("Min Available", ".spec.minAvailable", 0, "N/A"),
            Text("Max Unavailable", ".spec.maxUnavailable", 0, "N/A"),
            Text("Allowed Disruptions", ".status.disruptionsAllowed", 0, "0"), age};
  }
  if (kind == "NetworkPolicy") {
    return {NameColumn(), {"Pod-Selector", "string", 0, SelectorText}, age};
  }
  if (kind == "CustomResourceDefinition") {
    return {NameColumn(), Text("Created At", ".metadata.creationTimestamp")};
  }
  return {NameColumn(), age};
}

}  // namespace medley::localcluster::apiserver
