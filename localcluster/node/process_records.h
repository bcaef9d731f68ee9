// What runs, on disk, so that the next life of the node can end what this one left. Thread-safe.
//
// A process is provably ours when its pid, start time and the machine's boot are those of a record; so is
// one whose session is the record's and which was started with the record's MEDLEY_CONTAINER_ID.
#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <filesystem>
#include <string>

#include "common/base/clock.h"

namespace medley::kube {

class ProcessRecords {
 public:
  explicit ProcessRecords(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // `container_id`: usable as a file name.
  absl::Status Write(const std::string& container_id, pid_t pid) const;
  void Remove(const std::string& container_id) const;
  // Kills every process that a record proves to be ours, waits (at most 5 s) until they are gone, and
  // removes the records. Returns how many it killed. Unreadable records are removed with a warning.
  absl::StatusOr<int> KillLeftovers(base::Clock& clock) const;

 private:
  const std::filesystem::path folder_;
};

}  // namespace medley::kube
