// The rendezvous store of a collective: a small write-once store that every member of a group can reach.
//
// The coordinator implements it for a job (PutRendezvous, GetRendezvous); MemoryStore serves ranks that share a
// process. Implementations are thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace medley::worker {

class KeyValueStore {
 public:
  virtual ~KeyValueStore() = default;
  // Errors: AlreadyExists when the key holds another value.
  virtual absl::Status Put(const std::string& key, const std::string& value) = 0;
  // Waits until every key has been written; returns the values in the order of the keys.
  // Errors: DeadlineExceeded after `timeout`, Cancelled by `stop`.
  virtual absl::StatusOr<std::vector<std::string>> Get(const std::vector<std::string>& keys, base::nanoseconds timeout,
                                                       std::stop_token stop) = 0;
};

class MemoryStore final : public KeyValueStore {
 public:
  absl::Status Put(const std::string& key, const std::string& value) override;
  absl::StatusOr<std::vector<std::string>> Get(const std::vector<std::string>& keys, base::nanoseconds timeout,
                                               std::stop_token stop) override;

 private:
  base::Mutex mutex_;
  base::CondVar changed_;
  std::map<std::string, std::string> values_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::worker
