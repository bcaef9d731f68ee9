#include "localcluster/node/container.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "kube/json_access.h"
#include "localcluster/node/file_access.h"
#include "localcluster/node/termination_log.h"
#include "localcluster/node/volumes.h"

namespace medley::localcluster {
namespace {

namespace fs = std::filesystem;
using State = ContainerView::State;

constexpr base::seconds kStartRetry{1};
constexpr int64_t kProbeLogBytes = 64 << 10;

std::string ReasonOf(const ProcessExit& exit, bool out_of_memory) {
  if (out_of_memory && exit.exit_code != 0) return "OOMKilled";
  return exit.exit_code == 0 ? "Completed" : "Error";
}

}  // namespace

Container::Container(NodeContext& node, kube::Key pod, kube::Json spec, ContainerView view)
    : node_(node), pod_(std::move(pod)), spec_(std::move(spec)), view_(std::move(view)) {
  ended_at_ = node_.clock.Steady();
}

void Container::Poll() {
  if (process_ == nullptr) return;
  const std::optional<ProcessExit> exit = process_->exit();
  if (!exit) return;
  Termination end{
      exit->exit_code,   exit->signal,      ReasonOf(*exit, enforcement_->OutOfMemory()), "", view_.started_at,
      exit->finished_at, view_.container_id};
  end.message = ReadTerminationMessage(spec_, termination_log_, log_, exit->exit_code, node_.clock);
  if (end.reason == "OOMKilled" && end.message.empty()) end.message = "The container used more memory than its limit.";
  node_.records.Remove(container_id_);
  enforcement_.reset();
  process_.reset();
  if (probe_process_ != nullptr) probe_process_->Signal(SIGKILL);
  probe_process_.reset();
  NoteEnd(std::move(end));
}

void Container::NoteEnd(Termination termination) {
  ended_at_ = node_.clock.Steady();
  if (ended_at_ - started_at_ >= node_.options.restart_backoff_reset) failures_ = 0;
  ++failures_;
  view_.ready = false;
  view_.state = State::kTerminated;
  view_.termination = std::move(termination);
}

// As a kubelet does: no delay after the first exit, then first, 2 x first, ... up to the maximum.
base::nanoseconds Container::BackoffDelay() const {
  base::nanoseconds delay{0};
  for (int i = 1; i < failures_; ++i) {
    delay = i == 1 ? node_.options.restart_backoff : std::min(delay * 2, node_.options.restart_backoff_max);
  }
  return std::min(delay, node_.options.restart_backoff_max);
}

std::optional<base::SteadyTime> Container::Advance(RestartPolicy policy, const PodPlace& place) {
  if (process_ != nullptr) {
    KeepCores(place);
    return Probe(place);
  }
  if (view_.state == State::kTerminated || view_.last.has_value()) return Restart(policy, place);
  if (node_.clock.Steady() < retry_at_) return retry_at_;
  Start(place);
  return process_ != nullptr ? Probe(place) : Advance(policy, place);
}

// A pod's annotations may change while it runs.
void Container::KeepCores(const PodPlace& place) {
  const std::optional<double> wanted = place.cores ? place.cores : limit_;
  if (wanted == cores_) return;
  if (const absl::Status set = enforcement_->SetCores(wanted); !set.ok()) {
    base::log::Warn("changing the cores of a container failed",
                    {{"pod", pod_.ToString()}, {"error", base::Message(set)}});
    return;  // tried again with the next look at the pod
  }
  cores_ = wanted;
}

std::optional<base::SteadyTime> Container::Restart(RestartPolicy policy, const PodPlace& place) {
  const base::SteadyTime now = node_.clock.Steady();
  if (view_.state == State::kTerminated) {
    if (!ShouldRestart(policy, *view_.termination)) return std::nullopt;
    view_.last = std::move(view_.termination);
    view_.termination.reset();
    view_.state = State::kWaiting;
    ++view_.restarts;
    retry_at_ = ended_at_ + BackoffDelay();
    view_.waiting_reason = "CrashLoopBackOff";
    view_.waiting_message = fmt::format("back-off {:.3g}s restarting failed container={} pod={}",
                                        base::ToSeconds(BackoffDelay()), view_.name, pod_.ToString());
  }
  if (now < retry_at_) return retry_at_;
  Start(place);
  if (process_ != nullptr) return Probe(place);
  if (view_.state == State::kTerminated) return Restart(policy, place);
  return retry_at_;
}

void Container::Start(const PodPlace& place) {
  view_.image = kube::GetString(spec_, "image");
  container_id_ = base::HashHex(fmt::format("{} {} {} {}", place.pod.uid(), view_.name, view_.restarts,
                                            node_.clock.Now().time_since_epoch().count()));
  const absl::Status started = TryStart(place);
  if (started.ok()) {
    base::log::Debug("started a container", {{"pod", pod_.ToString()}, {"container", view_.name}});
    return;
  }
  enforcement_.reset();
  if (view_.state == State::kTerminated) return;
  retry_at_ = node_.clock.Steady() + kStartRetry;
  view_.waiting_message = base::Message(started);
}

// After an error the view shows whether the start is retried (waiting) or counts as an exit (terminated).
absl::Status Container::TryStart(const PodPlace& place) {
  view_.state = State::kWaiting;
  view_.waiting_reason = "ErrImagePull";
  MEDLEY_ASSIGN_OR_RETURN(const fs::path program, FindProgram(node_.options.images, view_.image));
  view_.image_id = "file://" + program.string();
  view_.waiting_reason = "CreateContainerConfigError";
  MEDLEY_ASSIGN_OR_RETURN(Limits limits, ContainerLimits(spec_));
  limit_ = limits.cores;
  if (place.cores) limits.cores = place.cores;
  cores_ = limits.cores;
  MEDLEY_ASSIGN_OR_RETURN(probe_, ReadinessProbe(spec_));
  if (probe_ && probe_->kind == ProbeSpec::Kind::kExec) {
    MEDLEY_RETURN_IF_ERROR(CheckProgram(probe_->command[0], program, view_.image));
  }
  MEDLEY_RETURN_IF_ERROR(CheckVolumes(place.pod, spec_, place.volumes));
  termination_log_ = place.folder / "termination" / view_.name;
  MEDLEY_ASSIGN_OR_RETURN(const std::string gpus, TakeGpus(place.pod, limits.gpus));
  const LaunchContext context{place.facts,     place.volumes,    place.folder, container_id_,
                              node_.inherited, termination_log_, gpus};
  MEDLEY_ASSIGN_OR_RETURN(SpawnSpec spec, PlanLaunch(place.pod, spec_, program, context, place.source));
  view_.waiting_reason = "CreateContainerError";
  spec.network_namespace = place.network_namespace;
  MEDLEY_RETURN_IF_ERROR(CreateTerminationLog(termination_log_));
  MEDLEY_ASSIGN_OR_RETURN(enforcement_, node_.enforcer.Apply(container_id_, limits));
  launched_ = spec;
  enforcement_->Prepare(spec);
  const fs::path logs = place.folder / "logs";
  log_ = LogPath(logs, view_.name, view_.restarts);
  Supervisor::Launch launch{std::move(spec), log_, node_.options.log_bytes,
                            [wake = node_.wake, pod = pod_] { wake(pod); }};
  view_.container_id = "process://" + container_id_;
  auto process = node_.supervisor.Run(std::move(launch));
  started_at_ = node_.clock.Steady();
  view_.started_at = node_.clock.Now();
  if (!process.ok()) {
    if (process.status().code() == absl::StatusCode::kUnavailable) return process.status();  // stopping
    NoteEnd({128, 0, "ContainerCannotRun", base::Message(process.status()), view_.started_at, view_.started_at,
             view_.container_id});
    return process.status();
  }
  process_ = *std::move(process);
  enforcement_->Attach(process_);
  if (const absl::Status kept = node_.records.Write(container_id_, process_->pid()); !kept.ok()) {
    base::log::Warn("recording a process failed", {{"pod", pod_.ToString()}, {"error", base::Message(kept)}});
  }
  node_.logs.Put(pod_, view_.name, {logs, view_.restarts, process_});
  RemoveOldLogs(logs);
  view_.state = State::kRunning;
  view_.ready = !probe_.has_value();
  if (probe_) tally_.emplace(*probe_);
  probe_at_ = started_at_ + (probe_ ? probe_->initial_delay : base::nanoseconds(0));
  return absl::OkStatus();
}

// A node that stands for other machines has none of this one's.
absl::StatusOr<std::string> Container::TakeGpus(const kube::Object& pod, int count) {
  const auto node = std::ranges::find(node_.options.nodes, pod.String("/spec/nodeName"), &VirtualNode::name);
  if (node == node_.options.nodes.end() || !node->has_gpus) return "";
  return node_.gpus.Take(GpuKey(), count);
}

void Container::ReleaseGpus() { node_.gpus.Release(GpuKey()); }

// Keeps the logs of this start and of the previous one.
void Container::RemoveOldLogs(const fs::path& folder) const {
  if (view_.restarts < 2) return;
  const fs::path old = LogPath(folder, view_.name, view_.restarts - 2);
  const auto logs = OpenFolder(old.parent_path());
  if (!logs.ok()) return;
  const std::string name = old.filename();
  unlinkat(logs->get(), name.c_str(), 0);
  unlinkat(logs->get(), (name + ".1").c_str(), 0);
}

std::optional<base::SteadyTime> Container::Probe(const PodPlace& place) {
  if (!probe_) return std::nullopt;
  const base::SteadyTime now = node_.clock.Steady();
  const bool answered = probe_process_ != nullptr && probe_process_->exit().has_value();
  if (now < probe_at_ && !answered) return probe_at_;
  if (probe_->kind == ProbeSpec::Kind::kExec) {
    if (!ProbeExec(place)) return probe_at_;
  } else {
    tally_->Count(AskProbe(*probe_, place.facts.pod_ip, node_.clock).ok());
    probe_at_ = now + probe_->period;
  }
  view_.ready = tally_->ready();
  return probe_at_;
}

// Starts the command, or checks how it ended. Returns false if there is no result yet; probe_at_ is then the time to
// check.
bool Container::ProbeExec(const PodPlace& place) {
  const base::SteadyTime now = node_.clock.Steady();
  if (probe_process_ != nullptr) {
    std::optional<ProcessExit> exit = probe_process_->exit();
    if (!exit) probe_process_->Signal(SIGKILL);  // the probe's timeout has passed
    tally_->Count(exit && exit->exit_code == 0);
    probe_process_.reset();
    probe_at_ = now + probe_->period;
    return true;
  }
  SpawnSpec spec = launched_;
  spec.arguments = probe_->command;
  auto process = node_.supervisor.Run({std::move(spec), place.folder / "logs" / (view_.name + ".probe.log"),
                                       kProbeLogBytes, [wake = node_.wake, pod = pod_] { wake(pod); }});
  if (!process.ok()) {
    tally_->Count(false);
    probe_at_ = now + probe_->period;
    return true;
  }
  probe_process_ = *std::move(process);
  probe_at_ = now + probe_->timeout;
  return false;
}

void Container::Signal(int number) {
  if (process_ != nullptr) process_->Signal(number);
}

void Container::GiveUp() {
  if (process_ != nullptr || view_.state == State::kTerminated || !view_.last) return;
  view_.state = State::kTerminated;
  view_.termination = std::move(view_.last);
  view_.last.reset();
  view_.restarts = std::max(0, view_.restarts - 1);  // the counted restart will not happen
}

void Container::SetWaiting(const std::string& reason, const std::string& message) {
  if (process_ != nullptr || view_.state == State::kTerminated || view_.last) return;
  view_.waiting_reason = reason;
  view_.waiting_message = message;
}

}  // namespace medley::localcluster
