#include "localcluster/node/log_index.h"

#include "common/base/status.h"

namespace medley::localcluster {

std::filesystem::path LogPath(const std::filesystem::path& folder, const std::string& container, int start) {
  return folder / container / (std::to_string(start) + ".log");
}

void LogIndex::Put(const kube::Key& pod, const std::string& container, Entry entry) {
  base::MutexLock lock(mutex_);
  pods_[pod][container] = std::move(entry);
}

void LogIndex::Remove(const kube::Key& pod) {
  base::MutexLock lock(mutex_);
  pods_.erase(pod);
}

absl::StatusOr<std::pair<std::string, LogIndex::Entry>> LogIndex::Find(const kube::Key& pod,
                                                                       const std::string& container) const {
  base::MutexLock lock(mutex_);
  const auto found = pods_.find(pod);
  if (found == pods_.end()) return base::NotFound("pod '{}' has not started on this node", pod.ToString());
  const auto& containers = found->second;
  if (!container.empty()) {
    const auto it = containers.find(container);
    if (it == containers.end()) {
      return base::NotFound("container '{}' of pod '{}' has not started", container, pod.ToString());
    }
    return *it;
  }
  if (containers.size() != 1) {
    std::string names;
    for (const auto& [name, entry] : containers) names += (names.empty() ? "" : " ") + name;
    return base::InvalidArgument("a container name must be specified for pod {}, choose one of: [{}]", pod.name, names);
  }
  return *containers.begin();
}

}  // namespace medley::localcluster
