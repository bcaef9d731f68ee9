#include "localcluster/node/node_registrar.h"

#include <sys/utsname.h>

#include "common/base/quantity.h"
#include "common/base/status.h"
#include "kube/errors.h"
#include "kube/json_access.h"
#include "localcluster/node/pod_status.h"

namespace medley::localcluster {
namespace {

constexpr int kTries = 5;

void SetLabels(const VirtualNode& node, kube::Object& object) {
  object.SetLabel("kubernetes.io/hostname", node.name);
  object.SetLabel("kubernetes.io/os", "linux");
  for (const auto& [name, value] : node.labels) object.SetLabel(name, value);
}

}  // namespace

kube::Json NodeStatus(const VirtualNode& node, const kube::Json& old_status, bool ready, base::WallTime now) {
  kube::Json status = old_status.is_object() ? old_status : kube::Json::object();
  kube::Json amounts = kube::Json::object();
  for (const auto& [name, amount] : node.allocatable) amounts[name] = amount;
  if (!amounts.contains("pods")) amounts["pods"] = "110";
  status["capacity"] = amounts;
  for (const auto& [name, amount] : node.besides) {
    const auto own = node.allocatable.find(name);
    if (own == node.allocatable.end()) continue;
    amounts[name] =
        base::FormatDecimal(base::ParseQuantity(own->second).value_or(0) + base::ParseQuantity(amount).value_or(0), 3);
  }
  status["allocatable"] = std::move(amounts);
  kube::Json conditions = kube::GetArray(status, "conditions");
  SetCondition(conditions, "Ready", ready, ready ? "NodeReady" : "NodeStopped",
               ready ? "The process node is running." : "The process node has stopped.", now);
  for (kube::Json& condition : conditions) {
    if (kube::GetString(condition, "type") == "Ready") condition["lastHeartbeatTime"] = base::FormatTime(now);
  }
  status["conditions"] = std::move(conditions);
  status["addresses"] = kube::Json::array(
      {{{"type", "InternalIP"}, {"address", "127.0.0.1"}}, {{"type", "Hostname"}, {"address", node.name}}});
  utsname machine = {};
  uname(&machine);
  status["nodeInfo"] = {{"operatingSystem", "linux"},
                        {"architecture", std::string_view(machine.machine) == "aarch64" ? "arm64" : "amd64"},
                        {"kernelVersion", machine.release},
                        {"osImage", machine.sysname},
                        {"containerRuntimeVersion", "process://1"},
                        {"kubeletVersion", "v0.1.0-medley"},
                        {"kubeProxyVersion", ""},
                        {"bootID", ""},
                        {"machineID", ""},
                        {"systemUUID", ""}};
  return status;
}

absl::Status NodeRegistrar::Register() {
  for (const VirtualNode& node : nodes_) MEDLEY_RETURN_IF_ERROR(RegisterOne(node));
  return Beat(true);
}

absl::Status NodeRegistrar::RegisterOne(const VirtualNode& node) {
  const kube::Resource nodes = kube::resources::Nodes();
  kube::Object fresh(nodes, {"", node.name});
  SetLabels(node, fresh);
  const absl::Status created = client_.Create(nodes, fresh).status();
  if (!kube::IsAlreadyExists(created)) return base::Annotate(created, "registering node " + node.name);
  for (int i = 0; i < kTries; ++i) {
    auto object = client_.Get(nodes, {"", node.name});
    if (!object.ok()) return object.status();
    SetLabels(node, *object);
    const absl::Status updated = client_.Update(nodes, *object).status();
    if (!kube::IsConflict(updated)) return updated;
  }
  return base::Aborted("registering node '{}': it changed at the same time; retrying", node.name);
}

absl::Status NodeRegistrar::Beat(bool ready) {
  absl::Status first;
  for (const VirtualNode& node : nodes_) {
    const absl::Status beaten = BeatOne(node, ready);
    if (first.ok()) first = beaten;
  }
  return first;
}

absl::Status NodeRegistrar::BeatOne(const VirtualNode& node, bool ready) {
  const kube::Resource nodes = kube::resources::Nodes();
  for (int i = 0; i < kTries; ++i) {
    auto object = client_.Get(nodes, {"", node.name});
    if (kube::IsNotFound(object.status()) && ready) {
      MEDLEY_RETURN_IF_ERROR(RegisterOne(node));
      continue;
    }
    if (!object.ok()) return object.status();
    kube::Json status = NodeStatus(node, object->At("/status"), ready, clock_.Now());
    object->mutable_json()["status"] = std::move(status);
    const absl::Status updated = client_.Update(nodes, *object, "status").status();
    if (!kube::IsConflict(updated)) return updated;
  }
  return base::Aborted("writing the status of node '{}': it changed at the same time; retrying", node.name);
}

}  // namespace medley::localcluster
