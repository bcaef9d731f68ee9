#include "localcluster/node/pod_status.h"

#include <algorithm>

#include "common/base/status.h"
#include "kube/json_access.h"

namespace medley::kube {
namespace {

using State = ContainerView::State;

Json TerminationJson(const Termination& end) {
  Json json = {{"exitCode", end.exit_code},
               {"reason", end.reason},
               {"startedAt", base::FormatTime(end.started_at)},
               {"finishedAt", base::FormatTime(end.finished_at)}};
  if (end.signal != 0) json["signal"] = end.signal;
  if (!end.message.empty()) json["message"] = end.message;
  if (!end.container_id.empty()) json["containerID"] = end.container_id;
  return json;
}

Json StateJson(const ContainerView& view) {
  switch (view.state) {
    case State::kRunning:
      return {{"running", {{"startedAt", base::FormatTime(view.started_at)}}}};
    case State::kTerminated:
      return {{"terminated", TerminationJson(*view.termination)}};
    case State::kWaiting:
      break;
  }
  Json waiting = {{"reason", view.waiting_reason}};
  if (!view.waiting_message.empty()) waiting["message"] = view.waiting_message;
  return {{"waiting", waiting}};
}

Json ContainerStatusJson(const ContainerView& view) {
  Json json = {{"name", view.name},
               {"image", view.image},
               {"imageID", view.image_id},
               {"ready", view.ready},
               {"started", view.state == State::kRunning},
               {"restartCount", view.restarts},
               {"state", StateJson(view)},
               {"lastState", view.last ? Json{{"terminated", TerminationJson(*view.last)}} : Json::object()}};
  if (!view.container_id.empty()) json["containerID"] = view.container_id;
  return json;
}

Json ContainerStatusList(const std::vector<ContainerView>& views) {
  Json list = Json::array();
  for (const ContainerView& view : views) list.push_back(ContainerStatusJson(view));
  return list;
}

std::optional<Termination> ParseTermination(const Json& json, base::WallTime now) {
  if (!json.is_object()) return std::nullopt;
  const auto time = [&](const char* name) {
    const auto parsed = base::ParseTime(GetString(json, name));
    return parsed.ok() ? *parsed : now;
  };
  return Termination{static_cast<int>(GetInt(json, "exitCode", 0)),
                     static_cast<int>(GetInt(json, "signal", 0)),
                     GetString(json, "reason"),
                     GetString(json, "message"),
                     time("startedAt"),
                     time("finishedAt"),
                     GetString(json, "containerID")};
}

bool HasStarted(const ContainerView& view) { return view.state != State::kWaiting || view.last.has_value(); }

std::string NotReadyNames(const std::vector<ContainerView>& views) {
  std::string names;
  for (const ContainerView& view : views) {
    if (!view.ready) names += (names.empty() ? "" : " ") + view.name;
  }
  return names;
}

void SetNodeConditions(Json& conditions, const PodView& view, const std::string& phase, base::WallTime now) {
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

RestartPolicy RestartPolicyOf(const Object& pod) {
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

void SetCondition(Json& conditions, const std::string& type, bool holds, const std::string& reason,
                  const std::string& message, base::WallTime now) {
  if (!conditions.is_array()) conditions = Json::array();
  Json* found = nullptr;
  for (Json& condition : conditions) {
    if (GetString(condition, "type") == type) found = &condition;
  }
  const std::string status = holds ? "True" : "False";
  Json next = {{"type", type}, {"status", status}};
  if (!reason.empty()) next["reason"] = reason;
  if (!message.empty()) next["message"] = message;
  const bool same = found != nullptr && GetString(*found, "status") == status;
  next["lastTransitionTime"] = same ? GetString(*found, "lastTransitionTime") : base::FormatTime(now);
  if (found != nullptr) {
    *found = std::move(next);
  } else {
    conditions.push_back(std::move(next));
  }
}

Json PodStatus(const Object& pod, const PodView& view, base::WallTime now) {
  const Json& old = pod.At("/status");
  Json status = old.is_object() ? old : Json::object();
  const std::string phase = PodPhase(RestartPolicyOf(pod), view);
  status["phase"] = phase;
  for (const auto& [name, text] : {std::pair("reason", view.reason), std::pair("message", view.message)}) {
    status.erase(name);
    if (!text.empty()) status[name] = text;
  }
  if (!view.host_ip.empty()) {
    status["hostIP"] = view.host_ip;
    status["hostIPs"] = Json::array({{{"ip", view.host_ip}}});
  }
  if (!view.pod_ip.empty()) {
    status["podIP"] = view.pod_ip;
    status["podIPs"] = Json::array({{{"ip", view.pod_ip}}});
  }
  if (view.start_time) status["startTime"] = base::FormatTime(*view.start_time);
  Json conditions = GetArray(status, "conditions");
  SetNodeConditions(conditions, view, phase, now);
  status["conditions"] = std::move(conditions);
  status["containerStatuses"] = ContainerStatusList(view.containers);
  if (!view.init_containers.empty()) {
    status["initContainerStatuses"] = ContainerStatusList(view.init_containers);
  }
  return status;
}

ContainerView ViewFromStatus(const Json& spec, const Json& statuses, base::WallTime now) {
  ContainerView view;
  view.name = GetString(spec, "name");
  view.image = GetString(spec, "image");
  for (const Json& status : statuses) {
    if (GetString(status, "name") != view.name) continue;
    view.restarts = static_cast<int>(GetInt(status, "restartCount", 0));
    view.image_id = GetString(status, "imageID");
    view.container_id = GetString(status, "containerID");
    view.last = ParseTermination(GetValue(GetObject(status, "lastState"), "terminated"), now);
    const Json& state = GetObject(status, "state");
    view.termination = ParseTermination(GetValue(state, "terminated"), now);
    if (const Json& running = GetValue(state, "running"); running.is_object()) {
      const auto started = base::ParseTime(GetString(running, "startedAt"));
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

}  // namespace medley::kube
