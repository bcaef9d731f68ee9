// The event files that are created below a folder from now on: a program that is started again begins a file of its
// own. Not thread-safe.
//
// At most kMostFiles files are followed, down to kMostDepth folders; a file that is damaged is not read further.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <vector>

#include "common/base/clock.h"
#include "worker/agent/event_reports.h"

namespace medley::worker {

class EventFiles {
 public:
  static constexpr size_t kMostFiles = 64;
  static constexpr int kMostDepth = 4;
  static constexpr int kMostEntries = 4096;  // of all folders, each time that they are read

  explicit EventFiles(std::filesystem::path folder);
  // What was written since the last call, in the order of each file. Folders are read again each 2 s, and for the
  // `last` call.
  std::vector<EventReport> Read(base::SteadyTime now, bool last = false);

 private:
  struct File {
    uint64_t read = 0;  // bytes
    bool damaged = false;
  };
  void Find();
  void Read(const std::filesystem::path& path, File& file, std::vector<EventReport>& reports);

  const std::filesystem::path folder_;
  std::set<std::filesystem::path> older_;  // files, at most kMostEntries
  std::map<std::filesystem::path, File> files_;
  base::SteadyTime found_at_{};
};

}  // namespace medley::worker
