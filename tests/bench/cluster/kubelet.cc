#include "tests/bench/cluster/kubelet.h"

#include <utility>

#include "common/base/status.h"
#include "kube/errors.h"

namespace medley::bench {
namespace {

using kube::Json;

bool Starts(const kube::Object& pod) {
  const std::string phase = pod.String("/status/phase");
  return !pod.String("/spec/nodeName").empty() && (phase.empty() || phase == "Pending");
}

Json Running(const kube::Object& pod, const std::string& ip) {
  Json containers = Json::array();
  for (const Json& container : pod.At("/spec/containers")) {
    containers.push_back({{"name", container["name"]},
                          {"image", container["image"]},
                          {"imageID", ""},
                          {"ready", true},
                          {"started", true},
                          {"restartCount", 0},
                          {"state", {{"running", Json::object()}}}});
  }
  return {{"status",
           {{"phase", "Running"},
            {"podIP", ip},
            {"podIPs", Json::array({{{"ip", ip}}})},
            {"conditions", Json::array({{{"type", "Ready"}, {"status", "True"}}})},
            {"containerStatuses", std::move(containers)}}}};
}

}  // namespace

Kubelet::Kubelet(kube::Client& client, kube::Informer& pods, std::string ip, int threads)
    : client_(client), pods_(pods), ip_(std::move(ip)) {
  handler_ = pods_
                 .AddHandler({.on_add = [this](const kube::ObjectPtr& pod, bool) { Look(pod); },
                              .on_update = [this](const kube::ObjectPtr&, const kube::ObjectPtr& pod) { Look(pod); },
                              .on_delete = nullptr})
                 .value();
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this](std::stop_token stop) { Run(std::move(stop)); });
}

Kubelet::~Kubelet() { pods_.RemoveHandler(handler_); }

int Kubelet::failures() const {
  base::MutexLock lock(mutex_);
  return failures_;
}

void Kubelet::Look(const kube::ObjectPtr& pod) {
  if (!pod->deleting() && !Starts(*pod)) return;
  base::MutexLock lock(mutex_);
  queue_.push_back(pod->key());
  changed_.NotifyOne();
}

void Kubelet::Run(std::stop_token stop) {
  while (true) {
    kube::Key key;
    {
      base::MutexLock lock(mutex_);
      if (!changed_.Wait(mutex_, stop, [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !queue_.empty(); })) return;
      key = std::move(queue_.front());
      queue_.pop_front();
    }
    const kube::ObjectPtr pod = pods_.store().Get(key);
    if (pod == nullptr) continue;
    const absl::Status done = Work(*pod);
    if (done.ok() || kube::IsNotFound(done) || kube::IsConflict(done)) continue;
    base::MutexLock lock(mutex_);
    ++failures_;
  }
}

absl::Status Kubelet::Work(const kube::Object& pod) {
  const kube::Resource resource = kube::resources::Pods();
  if (pod.deleting()) return client_.Delete(resource, pod.key(), {.uid = pod.uid(), .grace_period_seconds = 0});
  if (!Starts(pod)) return absl::OkStatus();
  return client_.Patch(resource, pod.key(), kube::PatchType::kStrategicMerge, Running(pod, ip_), {}, "status").status();
}

}  // namespace medley::bench
