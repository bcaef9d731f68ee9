// The machine's GPUs, and which pod has which: what a device plugin does in a cluster. Thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/mutex.h"

namespace medley::localcluster {

inline constexpr char kGpuResourceName[] = "nvidia.com/gpu";

class GpuPool {
 public:
  // `gpus`: names that CUDA_VISIBLE_DEVICES takes, as "0".
  explicit GpuPool(std::vector<std::string> gpus) : gpus_(std::move(gpus)) {}

  // `count` GPUs that no other key has, the same again for a key that has some, as the value of CUDA_VISIBLE_DEVICES;
  // empty for none. Errors: ResourceExhausted.
  absl::StatusOr<std::string> Take(const std::string& key, int count);
  void Release(const std::string& key);

 private:
  const std::vector<std::string> gpus_;
  base::Mutex mutex_;
  std::map<std::string, std::vector<std::string>> taken_ ABSL_GUARDED_BY(mutex_);
};

// The GPUs that a process of this user may use: those of CUDA_VISIBLE_DEVICES (`visible`) if it is set, else the first
// `count` by number. As CUDA does, stops at an entry that is no GPU.
std::vector<std::string> UsableGpus(int count, const char* visible);

}  // namespace medley::localcluster
