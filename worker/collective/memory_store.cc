#include "common/base/status.h"
#include "worker/collective/key_value_store.h"

namespace medley::worker {

absl::Status MemoryStore::Put(const std::string& key, const std::string& value) {
  base::MutexLock lock(mutex_);
  const auto [it, inserted] = values_.emplace(key, value);
  if (!inserted && it->second != value)
    return base::AlreadyExists("rendezvous key '{}' already has another value", key);
  changed_.NotifyAll();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> MemoryStore::Get(const std::vector<std::string>& keys,
                                                          base::nanoseconds timeout, std::stop_token stop) {
  std::vector<std::string> values;
  std::string missing;
  base::MutexLock lock(mutex_);
  const bool complete = changed_.WaitFor(mutex_, stop, timeout, [&] {
    values.clear();
    for (const std::string& key : keys) {
      const auto it = values_.find(key);
      if (it == values_.end()) {
        missing = key;
        return false;
      }
      values.push_back(it->second);
    }
    return true;
  });
  if (complete) return values;
  if (stop.stop_requested()) return base::Cancelled("the wait for rendezvous key '{}' was stopped", missing);
  return base::DeadlineExceeded("rendezvous key '{}' was not written within {:.1f} s", missing,
                                base::ToSeconds(timeout));
}

}  // namespace medley::worker
