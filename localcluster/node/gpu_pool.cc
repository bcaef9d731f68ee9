#include "localcluster/node/gpu_pool.h"

#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <set>

#include "common/base/status.h"

namespace medley::localcluster {

absl::StatusOr<std::string> GpuPool::Take(const std::string& key, int count) {
  if (count <= 0) return "";
  const base::MutexLock lock(mutex_);
  std::vector<std::string>& own = taken_[key];
  if (own.size() == static_cast<size_t>(count)) return absl::StrJoin(own, ",");
  own.clear();
  std::set<std::string> used;
  for (const auto& [other, gpus] : taken_) used.insert(gpus.begin(), gpus.end());
  for (const std::string& gpu : gpus_) {
    if (own.size() < static_cast<size_t>(count) && !used.contains(gpu)) own.push_back(gpu);
  }
  if (own.size() == static_cast<size_t>(count)) return absl::StrJoin(own, ",");
  const size_t free = own.size();
  taken_.erase(key);
  return base::ResourceExhausted("{} GPUs were requested, and {} of the machine's {} are free", count, free,
                                 gpus_.size());
}

void GpuPool::Release(const std::string& key) {
  const base::MutexLock lock(mutex_);
  taken_.erase(key);
}

std::vector<std::string> UsableGpus(int count, const char* visible) {
  std::vector<std::string> gpus;
  if (visible == nullptr) {
    for (int i = 0; i < count; ++i) gpus.push_back(std::to_string(i));
    return gpus;
  }
  const std::vector<std::string> entries = absl::StrSplit(visible, ',');
  for (std::string name : entries) {
    absl::StripAsciiWhitespace(&name);
    int number = 0;
    const bool is_number = absl::SimpleAtoi(name, &number);
    const bool is_gpu =
        is_number ? number >= 0 && number < count : name.starts_with("GPU-") || name.starts_with("MIG-");
    if (!is_gpu || std::ranges::find(gpus, name) != gpus.end()) break;
    gpus.push_back(name);
  }
  return gpus;
}

}  // namespace medley::localcluster
