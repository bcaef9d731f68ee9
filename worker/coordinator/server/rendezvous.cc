#include "worker/coordinator/server/rendezvous.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"

namespace medley::worker {

absl::Status RendezvousStore::Put(int64_t generation, const std::string& key, std::string value) {
  base::MutexLock lock(mutex_);
  if (generation < oldest_)
    return base::FailedPrecondition("rendezvous: generation {} is over, the oldest valid one is {}", generation,
                                    oldest_);
  const auto found = generations_[generation].find(key);
  if (found != generations_[generation].end()) {
    if (found->second == value) return absl::OkStatus();
    return base::AlreadyExists("rendezvous: key {} of generation {} already has another value", key, generation);
  }
  if (keys_ >= limits_.keys || bytes_ + key.size() + value.size() > limits_.bytes) {
    return base::ResourceExhausted("the rendezvous store is full: {} keys, {} bytes", keys_, bytes_);
  }
  ++keys_;
  bytes_ += key.size() + value.size();
  generations_[generation].emplace(key, std::move(value));
  changed_.NotifyAll();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> RendezvousStore::Get(int64_t generation, const std::vector<std::string>& keys,
                                                              std::stop_token stop,
                                                              const std::function<bool()>& cancelled) {
  base::MutexLock lock(mutex_);
  const auto there = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const auto found = generations_.find(generation);
    return found != generations_.end() &&
           std::all_of(keys.begin(), keys.end(), [&](const std::string& key) { return found->second.contains(key); });
  };
  for (;;) {
    if (generation < oldest_)
      return base::FailedPrecondition("rendezvous: generation {} is over, the oldest valid one is {}", generation,
                                      oldest_);
    if (keys.empty() || there()) break;
    if (stop.stop_requested() || cancelled()) {
      return base::Cancelled("rendezvous: the wait for {} keys of generation {} was stopped", keys.size(), generation);
    }
    changed_.WaitFor(mutex_, stop, base::milliseconds(50), [&] { return generation < oldest_ || there(); });
  }
  std::vector<std::string> values;
  for (const std::string& key : keys) values.push_back(generations_[generation].at(key));
  return values;
}

void RendezvousStore::Fence(int64_t oldest) {
  base::MutexLock lock(mutex_);
  oldest_ = std::max(oldest_, oldest);
  while (!generations_.empty() && generations_.begin()->first < oldest_) {
    for (const auto& [key, value] : generations_.begin()->second) {
      --keys_;
      bytes_ -= key.size() + value.size();
    }
    generations_.erase(generations_.begin());
  }
  changed_.NotifyAll();
}

}  // namespace medley::worker
