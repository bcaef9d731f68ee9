// Trained policies that requests may use by name (planner.policy.name): the files NAME.policy in a folder,
// written by `medley plan --save-policy`.
//
// Thread-safe. The planner that uses a policy checks its bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "common/base/mutex.h"

namespace medley::sched {

class PolicyStore {
 public:
  using Policy = std::shared_ptr<const std::string>;
  static constexpr int64_t kMaxBytes = int64_t{16} << 20;  // larger files are not read
  static constexpr size_t kMaxPolicies = 256;

  explicit PolicyStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Scans the folder: reads new and changed files and drops the policies of deleted files.
  void Scan();
  // Null if there is no policy with that name.
  Policy Find(const std::string& name) const;
  std::string Names() const;  // "a, b", for messages
  // Grows when a policy is added, changed or removed.
  uint64_t version() const;

 private:
  struct LoadedPolicy {
    std::filesystem::file_time_type changed;
    uintmax_t size = 0;
    Policy policy;
  };
  std::map<std::string, LoadedPolicy> List(const std::map<std::string, LoadedPolicy>& known) const;

  const std::filesystem::path folder_;
  mutable base::Mutex mutex_;
  std::map<std::string, LoadedPolicy> policies_ ABSL_GUARDED_BY(mutex_);
  uint64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace medley::sched
