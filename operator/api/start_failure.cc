#include "operator/api/start_failure.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "common/base/utf8.h"
#include "operator/api/worker_state.h"

namespace medley::ops {
namespace {

constexpr size_t kLongestMessage = 300;

// What the kubelet says while everything goes well.
bool IsUsual(std::string_view reason) {
  return reason.empty() || reason == "ContainerCreating" || reason == "PodInitializing";
}

std::string Said(const kube::Object& waiting) {
  const std::string message = waiting.String("/message");
  return message.empty() ? "" : ": " + base::Printable(message, kLongestMessage);
}

std::optional<StartFailure> RefusedContainer(const kube::Object& pod) {
  for (const char* list : {"/status/initContainerStatuses", "/status/containerStatuses"}) {
    for (const kube::Json& json : pod.At(list)) {
      const kube::Object container(json);
      const kube::Object waiting(container.At("/state/waiting"));
      const std::string reason = waiting.String("/reason");
      if (IsUsual(reason)) continue;
      return StartFailure{
          StartFailure::Kind::kRefused,
          reason,
          {},
          fmt::format("container {}: {}{}", container.String("/name"), base::Printable(reason), Said(waiting))};
    }
  }
  return std::nullopt;
}

std::optional<StartFailure> WithoutNode(const kube::Object& pod) {
  for (const kube::Json& json : pod.At("/status/conditions")) {
    const kube::Object condition(json);
    if (condition.String("/type") != "PodScheduled" || condition.String("/status") != "False") continue;
    const std::string reason = condition.String("/reason");
    return StartFailure{StartFailure::Kind::kNoNode,
                        reason.empty() ? "Unschedulable" : reason,
                        {},
                        fmt::format("it has no node: {}{}", base::Printable(reason), Said(condition))};
  }
  return std::nullopt;
}

// What the pod mounts that may be missing, or not be attached.
std::string VolumesOf(const kube::Object& pod) {
  constexpr std::pair<const char*, const char*> kSources[] = {{"/persistentVolumeClaim/claimName", "claim"},
                                                              {"/configMap/name", "ConfigMap"},
                                                              {"/secret/secretName", "Secret"},
                                                              {"/csi/driver", "driver"},
                                                              {"/nfs/server", "NFS server"}};
  std::string text;
  for (const kube::Json& json : pod.At("/spec/volumes")) {
    const kube::Object volume(json);
    for (const auto& [path, kind] : kSources) {
      const std::string name = volume.String(path);
      if (!name.empty()) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", kind, base::Printable(name));
    }
  }
  return base::Printable(text, kLongestMessage);
}

std::optional<StartFailure> SlowCreation(const kube::Object& pod, base::WallTime now) {
  const std::string node = pod.String("/spec/nodeName");
  if (node.empty()) return std::nullopt;
  std::string since = pod.String("/metadata/creationTimestamp");
  for (const kube::Json& json : pod.At("/status/conditions")) {
    const kube::Object condition(json);
    const std::string bound = condition.String("/lastTransitionTime");
    if (condition.String("/type") == "PodScheduled" && !bound.empty()) since = bound;
  }
  const auto time = base::ParseTime(since);
  if (!time.ok() || now - *time < kUsualStart) return std::nullopt;
  const std::string volumes = VolumesOf(pod);
  return StartFailure{
      StartFailure::Kind::kSlow, "ContainerCreating", *time,
      fmt::format("node {} has been creating its containers since {}: it pulls the image, or cannot mount a volume{}",
                  base::Printable(node), since, volumes.empty() ? "" : " (" + volumes + ")")};
}

}  // namespace

bool HasStarted(const kube::Object& pod) {
  const kube::Object worker = WorkerStatus(pod);
  return worker.At("/state").contains("running") || worker.At("/state").contains("terminated") ||
         worker.At("/lastState").contains("terminated");
}

std::optional<StartFailure> StartFailureOf(const kube::Object& pod, base::WallTime now) {
  const std::string phase = pod.String("/status/phase");
  if (phase == "Failed" || phase == "Succeeded" || HasStarted(pod)) return std::nullopt;
  if (auto refused = RefusedContainer(pod)) return refused;
  if (auto unbound = WithoutNode(pod)) return unbound;
  // Kubelets of tests and other implementations may report no containers of a pod that runs.
  return phase == "Running" ? std::nullopt : SlowCreation(pod, now);
}

}  // namespace medley::ops
