// Records of running processes on disk, so that the node's next start can kill those that this one left. Thread-safe.
//
// A process is provably ours if its pid and start time and the machine's boot are those of a record, or if its session
// is that of a record and it was started with the record's MEDLEY_CONTAINER_ID.
#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <filesystem>
#include <string>

#include "common/base/clock.h"

namespace medley::localcluster {

class ProcessRecords {
 public:
  explicit ProcessRecords(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // `container_id`: usable as a file name.
  absl::Status Write(const std::string& container_id, pid_t pid) const;
  void Remove(const std::string& container_id) const;
  // Kills every process that a record proves to be ours, waits up to 5 s until they have ended, and removes the
  // records. Returns the number of killed processes. Removes unreadable records with a warning.
  absl::StatusOr<int> KillLeftovers(base::Clock& clock) const;

 private:
  const std::filesystem::path folder_;
};

}  // namespace medley::localcluster
