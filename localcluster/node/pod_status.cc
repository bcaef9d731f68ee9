#include "localcluster/node/pod_status.h"

#include <algorithm>

#include "common/base/status.h"
#include "kube/json_access.h"

namespace medley::localcluster {
namespace {

using State = ContainerView::State;

kube::Json TerminationJson(const Termination& end) {
  kube::Json json = {{"exitCode", end.exit_code},
                     {"reason", end.reason},
                     {"startedAt", base::FormatTime(end.started_at)},
                     {"finishedAt", base::FormatTime(end.finished_at)}};
  if (end.signal != 0) json["signal"] = end.signal;
  if (!end.message.empty()) json["message"] = end.message;
  if (!end.container_id.empty()) json["containerID"] = end.container_id;
  return json;
}

kube::Json StateJson(const ContainerView& view) {
  switch (view.state) {
    case State::kRunning:
      return {{"running", {{"startedAt", base::FormatTime(view.started_at)}}}};
    case State::kTerminated:
      return {{"terminated", TerminationJson(*view.termination)}};
    case State::kWaiting:
      break;
  }
  kube::Json waiting = {{"reason", view.waiting_reason}};
  if (!view.waiting_message.empty()) waiting["message"] = view.waiting_message;
  return {{"waiting", waiting}};
}

kube::Json ContainerStatusJson(const ContainerView& view) {
  kube::Json json = {
      {"name", view.name},
      {"image", view.image},
      {"imageID", view.image_id},
      {"ready", view.ready},
      {"started", view.state == State::kRunning},
      {"restartCount", view.restarts},
      {"state", StateJson(view)},
      {"lastState", view.last ? kube::Json{{"terminated", TerminationJson(*view.last)}} : kube::Json::object()}};
  if (!view.container_id.empty()) json["containerID"] = view.container_id;
  return json;
}

kube::Json ContainerStatusList(const std::vector<ContainerView>& views) {
  kube::Json list = kube::Json::array();
  for (const ContainerView& view : views) list.push_back(ContainerStatusJson(view));
  return list;
}

std::optional<Termination> ParseTermination(const kube::Json& json, base::WallTime now) {
  if (!json.is_object()) return std::nullopt;
  const auto time = [&](const char* name) {
    const auto parsed = base::ParseTime(kube::GetString(json, name));
    return parsed.ok() ? *parsed : now;
  };
  return Termination{static_cast<int>(kube::GetInt(json, "exitCode", 0)),
                     static_cast<int>(kube::GetInt(json, "signal", 0)),
                     kube::GetString(json, "reason"),
                     kube::GetString(json, "message"),
                     time("startedAt"),
                     time("finishedAt"),
                     kube::GetString(json, "containerID")};
}

bool HasStarted(const ContainerView& view) { return view.state != State::kWaiting || view.last.has_value(); }

std::string NotReadyNames(const std::vector<ContainerView>& views) {
  std::string names;
  for (const ContainerView& view : views) {
    if (!view.ready) names += (names.empty() ? "" : " ") + view.name;
  }
  return names;
}

void SetNodeConditions(kube::Json& conditions, const PodView& view, const std::string& phase, base::WallTime now) {
  SetCondition(conditions, "PodScheduled", true, "", "", now);
  const bool initialized = InitDone(view) || phase == "Succeeded";
  SetCondition(conditions, "Initialized", initialized, initialized ? "" : "ContainersNotInitialized",
               initialized ? "" : "The init containers have not completed.", now);
  const std::string unready = NotReadyNames(view.containers);
  const bool ready = phase == "Running" && unready.empty();
  std::string reason, message;
  if (phase == "Succeeded") {
    reason = "PodCompleted";
  } else if (phase == "Failed") {
    reason = "PodFailed";
  } else if (!ready) {
    reason = "ContainersNotReady";
    message = fmt::format("containers with unready status: [{}]", unready);
  }
  SetCondition(conditions, "ContainersReady", ready, reason, message, now);
  SetCondition(conditions, "Ready", ready, reason, message, now);
}

}  // namespace

RestartPolicy RestartPolicyOf(const kube::Object& pod) {
  const std::string policy = pod.String("/spec/restartPolicy");
  if (policy == "Never") return RestartPolicy::kNever;
  return policy == "OnFailure" ? RestartPolicy::kOnFailure : RestartPolicy::kAlways;
}

bool ShouldRestart(RestartPolicy policy, const Termination& termination) {
  return policy == RestartPolicy::kAlways || (policy == RestartPolicy::kOnFailure && termination.exit_code != 0);
}

bool InitDone(const PodView& view) {
  return std::all_of(view.init_containers.begin(), view.init_containers.end(), [](const ContainerView& c) {
    return c.state == State::kTerminated && c.termination->exit_code == 0;
  });
}

std::string PodPhase(RestartPolicy policy, const PodView& view) {
  if (!view.reason.empty()) return view.ended ? "Failed" : "Running";
  bool all_succeeded = true, restarts = false, failed_init = false;
  for (const ContainerView& container : view.init_containers) {
    failed_init |= container.state == State::kTerminated && container.termination->exit_code != 0;
  }
  if (failed_init && (view.ended || policy == RestartPolicy::kNever)) return "Failed";
  if (!view.ended) {
    const auto waits = [](const ContainerView& c) { return !HasStarted(c); };
    if (!InitDone(view) || std::any_of(view.containers.begin(), view.containers.end(), waits)) return "Pending";
  }
  for (const ContainerView& container : view.containers) {
    if (container.state != State::kTerminated) {
      // After its exit: whether the pod was never started or waits for a restart.
      if (!view.ended || container.state == State::kRunning) return "Running";
      all_succeeded = false;
      continue;
    }
    restarts |= !view.ended && ShouldRestart(policy, *container.termination);
    all_succeeded &= container.termination->exit_code == 0;
  }
  if (restarts) return "Running";
  return all_succeeded ? "Succeeded" : "Failed";
}

void SetCondition(kube::Json& conditions, const std::string& type, bool holds, const std::string& reason,
                  const std::string& message, base::WallTime now) {
  if (!conditions.is_array()) conditions = kube::Json::array();
  kube::Json* found = nullptr;
  for (kube::Json& condition : conditions) {
    if (kube::GetString(condition, "type") == type) found = &condition;
  }
  const std::string status = holds ? "True" : "False";
  kube::Json next = {{"type", type}, {"status", status}};
  if (!reason.empty()) next["reason"] = reason;
  if (!message.empty()) next["message"] = message;
  const bool same = found != nullptr && kube::GetString(*found, "status") == status;
  next["lastTransitionTime"] = same ? kube::GetString(*found, "lastTransitionTime") : base::FormatTime(now);
  if (found != nullptr) {
    *found = std::move(next);
  } else {
    conditions.push_back(std::move(next));
  }
}

kube::Json PodStatus(const kube::Object& pod, const PodView& view, base::WallTime now) {
  const kube::Json& old = pod.At("/status");
  kube::Json status = old.is_object() ? old : kube::Json::object();
  const std::string phase = PodPhase(RestartPolicyOf(pod), view);
  status["phase"] = phase;
  for (const auto& [name, text] : {std::pair("reason", view.reason), std::pair("message", view.message)}) {
    status.erase(name);
    if (!text.empty()) status[name] = text;
  }
  if (!view.host_ip.empty()) {
    status["hostIP"] = view.host_ip;
    status["hostIPs"] = kube::Json::array({{{"ip", view.host_ip}}});
  }
  if (!view.pod_ip.empty()) {
    status["podIP"] = view.pod_ip;
    status["podIPs"] = kube::Json::array({{{"ip", view.pod_ip}}});
  }
  if (view.start_time) status["startTime"] = base::FormatTime(*view.start_time);
  kube::Json conditions = kube::GetArray(status, "conditions");
  SetNodeConditions(conditions, view, phase, now);
  status["conditions"] = std::move(conditions);
  status["containerStatuses"] = ContainerStatusList(view.containers);
  if (!view.init_containers.empty()) {
    status["initContainerStatuses"] = ContainerStatusList(view.init_containers);
  }
  return status;
}

ContainerView ViewFromStatus(const kube::Json& spec, const kube::Json& statuses, base::WallTime now) {
  ContainerView view;
  view.name = kube::GetString(spec, "name");
  view.image = kube::GetString(spec, "image");
  for (const kube::Json& status : statuses) {
    if (kube::GetString(status, "name") != view.name) continue;
    view.restarts = static_cast<int>(kube::GetInt(status, "restartCount", 0));
    view.image_id = kube::GetString(status, "imageID");
    view.container_id = kube::GetString(status, "containerID");
    view.last = ParseTermination(kube::GetValue(kube::GetObject(status, "lastState"), "terminated"), now);
    const kube::Json& state = kube::GetObject(status, "state");
    view.termination = ParseTermination(kube::GetValue(state, "terminated"), now);
    if (const kube::Json& running = kube::GetValue(state, "running"); running.is_object()) {
      const auto started = base::ParseTime(kube::GetString(running, "startedAt"));
      view.termination = Termination{137,
                                     0,
                                     "ContainerStatusUnknown",
                                     "The node that ran the container was restarted.",
                                     started.ok() ? *started : now,
                                     now,
                                     view.container_id};
    }
    if (view.termination) view.state = State::kTerminated;
  }
  return view;
}

}  // namespace medley::localcluster
