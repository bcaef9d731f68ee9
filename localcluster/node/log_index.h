// Maps containers to their logs. The pods' workers write it, ReadLog reads it. Thread-safe.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "kube/object.h"
#include "localcluster/node/supervisor.h"

namespace medley::localcluster {

// FOLDER/CONTAINER/N.log for the start after N restarts.
std::filesystem::path LogPath(const std::filesystem::path& folder, const std::string& container, int start);

class LogIndex {
 public:
  struct Entry {
    std::filesystem::path folder;
    int start = 0;                     // number of the current start
    std::shared_ptr<Process> process;  // null if it does not run
  };
  void Put(const kube::Key& pod, const std::string& container, Entry entry);
  void Remove(const kube::Key& pod);
  // Errors: NotFound; InvalidArgument lists the containers if `container` is empty and the pod has several.
  absl::StatusOr<std::pair<std::string, Entry>> Find(const kube::Key& pod, const std::string& container) const;

 private:
  mutable base::Mutex mutex_;
  std::map<kube::Key, std::map<std::string, Entry>> pods_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::localcluster
