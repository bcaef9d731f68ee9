#include "worker/coordinator/server/rendezvous.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"

namespace medley::worker {

absl::Status RendezvousStore::Put(int64_t epoch, const std::string& key, std::string value) {
  base::MutexLock lock(mutex_);
  if (epoch < oldest_) return base::FailedPrecondition("epoch {} is over, {} is the oldest", epoch, oldest_);
  const auto found = epochs_[epoch].find(key);
  if (found != epochs_[epoch].end()) {
    if (found->second == value) return absl::OkStatus();
    return base::AlreadyExists("key {} of epoch {} has another value", key, epoch);
  }
  if (keys_ >= limits_.keys || bytes_ + key.size() + value.size() > limits_.bytes) {
    return base::ResourceExhausted("the rendezvous store is full: {} keys, {} bytes", keys_, bytes_);
  }
  ++keys_;
  bytes_ += key.size() + value.size();
  epochs_[epoch].emplace(key, std::move(value));
  changed_.NotifyAll();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> RendezvousStore::Get(int64_t epoch, const std::vector<std::string>& keys,
                                                              std::stop_token stop,
                                                              const std::function<bool()>& cancelled) {
  base::MutexLock lock(mutex_);
  const auto there = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const auto found = epochs_.find(epoch);
    return found != epochs_.end() && std::all_of(keys.begin(), keys.end(), [&](const std::string& key) {
             return found->second.contains(key);
           });
  };
  for (;;) {
    if (epoch < oldest_) return base::FailedPrecondition("epoch {} is over, {} is the oldest", epoch, oldest_);
    if (keys.empty() || there()) break;
    if (stop.stop_requested() || cancelled()) {
      return base::Cancelled("stopped waiting for {} keys of epoch {}", keys.size(), epoch);
    }
    changed_.WaitFor(mutex_, stop, base::milliseconds(50), [&] { return epoch < oldest_ || there(); });
  }
  std::vector<std::string> values;
  for (const std::string& key : keys) values.push_back(epochs_[epoch].at(key));
  return values;
}

void RendezvousStore::Fence(int64_t oldest) {
  base::MutexLock lock(mutex_);
  oldest_ = std::max(oldest_, oldest);
  while (!epochs_.empty() && epochs_.begin()->first < oldest_) {
    for (const auto& [key, value] : epochs_.begin()->second) {
      --keys_;
      bytes_ -= key.size() + value.size();
    }
    epochs_.erase(epochs_.begin());
  }
  changed_.NotifyAll();
}

}  // namespace medley::worker
