// What a job's steps.jsonl says, for tests that look at it again and again while the job trains.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace medley::worker {

// The committed steps without those that were rolled back. Index 0 is step 1.
struct JobHistory {
  std::vector<double> losses;
  std::vector<int64_t> generations;
  std::set<int64_t> agreements;  // after which replicas that differ averaged their parameters
  std::set<int64_t> drains;  // steps that all members had applied before the next began; asynchronous schedules only
};

// Follows the file: each look reads only what was written since the one before. A coordinator that takes over replaces
// the file or cuts off its end; then all is read again. Not thread-safe.
class JobHistoryFile {
 public:
  explicit JobHistoryFile(std::filesystem::path path) : path_(std::move(path)) {}

  // Everything that complete lines of the file say now; empty where it does not exist.
  const JobHistory& Read();

 private:
  void Add(const std::string& line);

  const std::filesystem::path path_;
  JobHistory history_;
  uint64_t file_ = 0;  // inode
  int64_t read_ = 0;   // bytes
  std::string last_;   // the last line that was read, with its end
};

}  // namespace medley::worker
