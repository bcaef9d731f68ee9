// Writes the statuses that the kubelets of the fake nodes would write: a bound pod becomes Running, and a terminating
// pod is removed. Thread-safe.
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
  // Borrows `pods`, which the caller starts afterwards. Every pod gets the address `ip`.
  Kubelet(kube::Client& client, kube::Informer& pods, std::string ip, int threads);
  ~Kubelet();  // stops

  // The number of failed writes, without conflicts with other writers.
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
