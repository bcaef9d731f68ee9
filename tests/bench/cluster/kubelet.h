// Statuses that the kubelets of nodes that do not exist would write: a pod that is bound runs, a
// pod that is deleted is gone. Thread-safe.
#pragma once

#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "common/base/mutex.h"
#include "kube/cache/informer.h"
#include "kube/client.h"

namespace medley::bench {

class Kubelet {
 public:
  // `pods` is borrowed and started by the caller after this. Every pod gets the address `ip`.
  Kubelet(kube::Client& client, kube::Informer& pods, std::string ip, int threads);
  ~Kubelet();  // stops

  // Writes that failed, but for those that another writer made needless.
  int failures() const;

 private:
  void Look(const kube::ObjectPtr& pod);
  void Run(std::stop_token stop);
  absl::Status Work(const kube::Object& pod);

  kube::Client& client_;
  kube::Informer& pods_;
  const std::string ip_;
  mutable base::Mutex mutex_;
  base::CondVar changed_;
  std::deque<kube::Key> queue_ ABSL_GUARDED_BY(mutex_);
  int failures_ ABSL_GUARDED_BY(mutex_) = 0;
  kube::HandlerId handler_ = 0;
  std::vector<std::jthread> threads_;
};

}  // namespace medley::bench
