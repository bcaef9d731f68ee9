// Fetches rows that a coming pull names, in a background thread. Thread-safe. The queue has a bound: what does not fit
// is not fetched ahead, and the pull fetches it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "common/base/mutex.h"

namespace medley::worker {

class FetchAhead {
 public:
  using Fetch = std::function<void(int table, std::span<const uint64_t> keys)>;
  static constexpr size_t kMostQueued = 64;

  explicit FetchAhead(Fetch fetch);

  void Add(int table, std::vector<uint64_t> keys);
  // Waits until all that was added is fetched.
  void Await();
  // The same for one table.
  void AwaitTable(int table);

 private:
  struct Keys {
    int table = 0;
    std::vector<uint64_t> keys;
  };
  void Run(std::stop_token stop);

  const Fetch fetch_;
  base::Mutex mutex_;
  base::CondVar changed_;
  std::deque<Keys> queue_ ABSL_GUARDED_BY(mutex_);
  std::optional<int> busy_with_ ABSL_GUARDED_BY(mutex_);  // table
  std::jthread thread_;  // last member: stops and joins before the others are destroyed
};

}  // namespace medley::worker
