#include "localcluster/node/pod_worker.h"

#include <signal.h>

#include <algorithm>
#include <system_error>

#include "common/base/log.h"
#include "common/base/status.h"
#include "kube/errors.h"
#include "kube/json_access.h"
#include "kube/pod.h"
#include "localcluster/node/emulated_network.h"
#include "localcluster/node/scheduler.h"
#include "localcluster/node/volumes.h"

namespace medley::localcluster {
namespace {

constexpr base::seconds kPrepareRetry{1};
constexpr int kStatusTries = 5;
constexpr const char* kHostIp = "127.0.0.1";

void Earliest(std::optional<base::SteadyTime>& at, const std::optional<base::SteadyTime>& other) {
  if (other && (!at || *other < *at)) at = other;
}

}  // namespace

PodWorker::PodWorker(NodeContext& node, const kube::Object& pod)
    : node_(node),
      key_(pod.key()),
      uid_(pod.uid()),
      folder_(node.options.root / "pods" / (key_.ns + "_" + key_.name + "_" + uid_)),
      policy_(RestartPolicyOf(pod)),
      facts_{"", kHostIp},
      steady_start_(node.clock.Steady()) {
  const base::WallTime now = node_.clock.Now();
  const auto adopt = [&](const char* list, const char* statuses, std::vector<Container>& into) {
    for (const kube::Json& spec : kube::GetArray(pod.At("/spec"), list)) {
      into.emplace_back(node_, key_, spec, ViewFromStatus(spec, kube::GetArray(pod.At("/status"), statuses), now));
      const ContainerView& view = into.back().view();
      const int start = view.state == ContainerView::State::kWaiting ? view.restarts - 1 : view.restarts;
      if (start >= 0) node_.logs.Put(key_, view.name, {folder_ / "logs", start, nullptr});
    }
  };
  adopt("initContainers", "initContainerStatuses", init_containers_);
  adopt("containers", "containerStatuses", containers_);
  if (const auto started = base::ParseTime(pod.String("/status/startTime")); started.ok()) {
    start_time_ = *started;
    steady_start_ -= std::max(base::nanoseconds(0), base::nanoseconds(now - *started));
  }
  if (const std::string ip = pod.String("/status/podIP"); !ip.empty()) {
    if (node_.options.network == nullptr) node_.addresses.Claim(key_.ToString(), ip);
    facts_.pod_ip = ip;
  }
  if (kube::HasEnded(pod)) {
    ended_ = true;
    reason_ = pod.String("/status/reason");
    message_ = pod.String("/status/message");
  }
}

absl::StatusOr<PodWorker::Outcome> PodWorker::Sync(const kube::ObjectPtr& pod) {
  NoteEnds();
  if (pod == nullptr || pod->uid() != uid_) return HandleDeletedPod();
  if (pod->deleting()) {
    BeginTermination(reason_, message_);
    return ContinueTermination(pod);
  }
  std::optional<base::SteadyTime> deadline;
  if (!ended_ && !ending_) deadline = CheckDeadline(*pod);
  if (ending_) return ContinueTermination(pod);
  if (ended_) return Outcome{};
  MEDLEY_ASSIGN_OR_RETURN(Outcome outcome, Run(pod));
  if (!ended_) Earliest(outcome.requeue_at, deadline);
  return outcome;
}

absl::StatusOr<PodWorker::Outcome> PodWorker::HandleDeletedPod() {
  SignalAll(SIGKILL);
  if (running()) return Outcome{};  // process exits requeue the pod
  node_.logs.Remove(key_);
  Release();
  if (!node_.options.keep_pod_folders) {
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
    if (error) base::log::Warn("removing a pod's folder failed", {{"path", folder_.string()}});
  }
  return Outcome{std::nullopt, true};
}

std::optional<base::SteadyTime> PodWorker::CheckDeadline(const kube::Object& pod) {
  const int64_t seconds = kube::GetInt(pod.At("/spec"), "activeDeadlineSeconds", 0);
  if (seconds <= 0) return std::nullopt;
  const base::SteadyTime deadline = steady_start_ + base::seconds(seconds);
  if (node_.clock.Steady() < deadline) return deadline;
  BeginTermination("DeadlineExceeded", "Pod was active on the node longer than the specified deadline");
  return std::nullopt;
}

void PodWorker::BeginTermination(const std::string& reason, const std::string& message) {
  if (ending_) return;
  ending_ = true;
  reason_ = reason;
  message_ = message;
  term_at_ = node_.clock.Steady();
  SignalAll(SIGTERM);
}

base::nanoseconds PodWorker::Grace(const kube::Object& pod) const {
  const int64_t declared = kube::GetInt(pod.At("/spec"), "terminationGracePeriodSeconds", 30);
  const int64_t seconds = kube::GetInt(pod.At("/metadata"), "deletionGracePeriodSeconds", declared);
  return base::seconds(std::max<int64_t>(0, seconds));
}

absl::StatusOr<PodWorker::Outcome> PodWorker::ContinueTermination(const kube::ObjectPtr& pod) {
  if (running()) {
    const base::SteadyTime kill_at = term_at_ + Grace(*pod);
    MEDLEY_RETURN_IF_ERROR(WriteStatus(pod));
    if (node_.clock.Steady() < kill_at) return Outcome{kill_at, false};
    SignalAll(SIGKILL);
    return Outcome{};  // process exits requeue the pod
  }
  ended_ = true;
  for (Container& container : containers_) container.GiveUp();
  const absl::Status written = WriteStatus(pod);
  if (!pod->deleting()) {
    ending_ = !written.ok();
    if (!written.ok()) return written;
    Release();
    return Outcome{};
  }
  MEDLEY_RETURN_IF_ERROR(written);
  MEDLEY_RETURN_IF_ERROR(DeletePod(*pod));
  return Outcome{};
}

absl::Status PodWorker::DeletePod(const kube::Object& pod) {
  // Finalizers of others may keep the pod; one request is enough.
  if (kube::GetInt(pod.At("/metadata"), "deletionGracePeriodSeconds", -1) == 0 &&
      !kube::GetArray(pod.At("/metadata"), "finalizers").empty()) {
    return absl::OkStatus();
  }
  kube::DeleteOptions options;
  options.grace_period_seconds = 0;
  options.uid = uid_;
  const absl::Status deleted = node_.client.Delete(kube::resources::Pods(), key_, options);
  if (deleted.ok() || kube::IsNotFound(deleted) || kube::IsConflict(deleted)) return absl::OkStatus();
  return deleted;
}

absl::StatusOr<PodWorker::Outcome> PodWorker::Run(const kube::ObjectPtr& pod) {
  Outcome outcome;
  if (!start_time_) {
    start_time_ = node_.clock.Now();
    steady_start_ = node_.clock.Steady();
  }
  const DataSource source = Source();
  if (!prepared_ && node_.clock.Steady() >= prepare_at_) {
    if (const absl::Status made = Prepare(*pod, source); !made.ok()) {
      prepare_at_ = node_.clock.Steady() + kPrepareRetry;
      for (Container& container : containers_) {
        container.SetWaiting("ContainerCreating", "preparing the pod failed: " + base::Message(made));
      }
    }
  }
  if (prepared_) {
    const absl::Status emulated = Emulate(*pod);
    if (const std::string error = base::Message(emulated); !emulated.ok() && error != not_emulated_) {
      not_emulated_ = error;
      base::log::Warn("a pod's annotations are not in force", {{"pod", key_.ToString()}, {"error", error}});
    }
    outcome.requeue_at = AdvanceAll(*pod, source);
  } else {
    outcome.requeue_at = prepare_at_;
  }
  const std::string phase = PodPhase(policy_, View());
  if (phase == "Succeeded" || phase == "Failed") {
    ending_ = true;  // no container is restarted; running ones continue until they exit
    if (!running()) return ContinueTermination(pod);
    ending_ = false;
  }
  MEDLEY_RETURN_IF_ERROR(WriteStatus(pod));
  return outcome;
}

absl::Status PodWorker::Prepare(const kube::Object& pod, const DataSource& source) {
  MEDLEY_ASSIGN_OR_RETURN(facts_.pod_ip, TakeAddress());
  MEDLEY_RETURN_IF_ERROR(Emulate(pod));
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) return base::ErrnoStatus(error.value(), "creating folder " + folder_.string());
  MEDLEY_ASSIGN_OR_RETURN(volumes_, MakeVolumes(pod, {folder_, node_.options.root / "claims"}, source));
  prepared_ = true;
  return absl::OkStatus();
}

absl::StatusOr<std::string> PodWorker::TakeAddress() {
  EmulatedNetwork* network = node_.options.network;
  if (network == nullptr) return node_.addresses.Take(key_.ToString());
  MEDLEY_ASSIGN_OR_RETURN(network_namespace_, network->Namespace(key_.ToString()));
  return network->Address(key_.ToString());
}

void PodWorker::Release() {
  for (Container& container : init_containers_) container.ReleaseGpus();
  for (Container& container : containers_) container.ReleaseGpus();
  if (node_.options.network != nullptr) node_.options.network->Remove(key_.ToString());
  node_.addresses.Release(key_.ToString());
}

// The links and quotas that the pod's annotations ask for now.
absl::Status PodWorker::Emulate(const kube::Object& pod) {
  EmulatedNetwork* network = node_.options.network;
  MEDLEY_ASSIGN_OR_RETURN(const Emulation wanted, EmulationOf(pod));
  if (network == nullptr && wanted.card.delay.count() > 0) {
    return base::FailedPrecondition("annotation '{}' needs an emulated network: medley run --emulate-network",
                                    kLinkDelayAnnotation);
  }
  if (network != nullptr && wanted.card != emulation_.card) {
    MEDLEY_RETURN_IF_ERROR(network->SetCard(key_.ToString(), wanted.card));
  }
  emulation_ = wanted;
  return absl::OkStatus();
}

std::optional<base::SteadyTime> PodWorker::AdvanceAll(const kube::Object& pod, const DataSource& source) {
  const Container::PodPlace place{pod, facts_, folder_, volumes_, source, emulation_.cores, network_namespace_};
  std::optional<base::SteadyTime> again;
  // With policy Never an init container that fails is not restarted, and the pod fails (PodPhase).
  const RestartPolicy init_policy = policy_ == RestartPolicy::kAlways ? RestartPolicy::kOnFailure : policy_;
  for (Container& container : init_containers_) {
    const ContainerView& view = container.view();
    if (view.state == ContainerView::State::kTerminated && view.termination->exit_code == 0) continue;
    Earliest(again, container.Advance(init_policy, place));
    for (Container& waiting : containers_) waiting.SetWaiting("PodInitializing", "");
    return again;
  }
  for (Container& container : containers_) Earliest(again, container.Advance(policy_, place));
  return again;
}

DataSource PodWorker::Source() const {
  return [this](DataKind kind, const std::string& name) -> absl::StatusOr<std::map<std::string, std::string>> {
    const kube::Resource resource =
        kind == DataKind::kSecret ? kube::resources::Secrets() : kube::resources::ConfigMaps();
    MEDLEY_ASSIGN_OR_RETURN(const kube::Object object, node_.client.Get(resource, {key_.ns, name}));
    return DecodeData(kind, object);
  };
}

PodView PodWorker::View() const {
  PodView view;
  for (const Container& container : containers_) view.containers.push_back(container.view());
  for (const Container& container : init_containers_) view.init_containers.push_back(container.view());
  view.pod_ip = facts_.pod_ip;
  view.host_ip = facts_.host_ip;
  view.start_time = start_time_;
  view.ended = ended_;
  view.reason = reason_;
  view.message = message_;
  return view;
}

absl::Status PodWorker::WriteStatus(kube::ObjectPtr pod) {
  for (int i = 0; i < kStatusTries; ++i) {
    kube::Json status = PodStatus(*pod, View(), node_.clock.Now());
    if (status == pod->At("/status")) return absl::OkStatus();
    kube::Object changed = *pod;
    changed.mutable_json()["status"] = std::move(status);
    const auto written = node_.client.Update(kube::resources::Pods(), changed, "status");
    if (written.ok() || kube::IsNotFound(written.status())) return absl::OkStatus();
    if (!kube::IsConflict(written.status())) return written.status();
    auto fresh = node_.client.Get(kube::resources::Pods(), key_);
    if (!fresh.ok()) return kube::IsNotFound(fresh.status()) ? absl::OkStatus() : fresh.status();
    if (fresh->uid() != uid_) return absl::OkStatus();
    pod = std::make_shared<const kube::Object>(*std::move(fresh));
  }
  return base::Aborted("writing the status of pod '{}': it changed at the same time in {} attempts", key_.ToString(),
                       kStatusTries);
}

void PodWorker::NoteEnds() {
  for (Container& container : init_containers_) container.Poll();
  for (Container& container : containers_) container.Poll();
}

void PodWorker::SignalAll(int number) {
  for (Container& container : init_containers_) container.Signal(number);
  for (Container& container : containers_) container.Signal(number);
}

void PodWorker::Shutdown(int signal) { SignalAll(signal); }

bool PodWorker::running() const {
  const auto runs = [](const Container& container) { return container.running(); };
  return std::any_of(containers_.begin(), containers_.end(), runs) ||
         std::any_of(init_containers_.begin(), init_containers_.end(), runs);
}

absl::Status PodWorker::Report(const kube::ObjectPtr& pod) {
  NoteEnds();
  if (pod == nullptr || pod->uid() != uid_) return absl::OkStatus();
  return WriteStatus(pod);
}

}  // namespace medley::localcluster
