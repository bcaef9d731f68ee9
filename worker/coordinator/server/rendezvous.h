// The rendezvous store of collectives: small values under (generation, key) that are written once. Readers wait for
// them.
//
// Fenced: keys of generations before the oldest valid one are dropped and refused. Bounded in bytes and keys.
// Thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace medley::worker {

class RendezvousStore {
 public:
  struct Limits {
    size_t bytes = size_t{64} << 20;
    size_t keys = size_t{1} << 18;
  };
  RendezvousStore() : RendezvousStore(Limits()) {}
  explicit RendezvousStore(Limits limits) : limits_(limits) {}

  // Errors: FailedPrecondition (fenced), AlreadyExists (another value), ResourceExhausted.
  absl::Status Put(int64_t generation, const std::string& key, std::string value);
  // Waits until all keys are written. Calls `cancelled` at least every 50 ms. Errors: FailedPrecondition (fenced before
  // or during the wait), Cancelled.
  absl::StatusOr<std::vector<std::string>> Get(int64_t generation, const std::vector<std::string>& keys,
                                               std::stop_token stop, const std::function<bool()>& cancelled);
  // Drops the generations before `oldest` and wakes their readers.
  void Fence(int64_t oldest);

 private:
  const Limits limits_;
  base::Mutex mutex_;
  base::CondVar changed_;
  int64_t oldest_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int64_t, std::map<std::string, std::string>> generations_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t keys_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace medley::worker
