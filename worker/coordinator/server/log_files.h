// The coordinator's log in the folder `logs` of the job's folder, so that it outlives the pods.
//
// Each term of the coordinator has files of its own, coordinator-TERM.log and, after it has grown to 2 MiB, the one
// before with .1 behind its name. So a former coordinator that still runs writes into no other one's file. All files
// together have at most 16 MiB: the oldest ones are removed. In an object store Drain writes the whole object again.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/mutex.h"
#include "worker/checkpoint/files.h"
#include "worker/coordinator/server/log_buffer.h"

namespace medley::worker {

inline constexpr char kLogFolder[] = "logs";

// Thread-safe. Every call may block for as long as the volume does not answer.
class LogFiles {
 public:
  // Continues the file of `term` >= 0.
  static absl::StatusOr<std::unique_ptr<LogFiles>> Open(const Volume& volume, int64_t term);
  ~LogFiles();

  // Appends the lines that wait. They are lost when that fails.
  absl::Status Drain(LogBuffer& waiting);

 private:
  LogFiles(Volume volume, std::string name) : volume_(std::move(volume)), name_(std::move(name)) {}
  absl::Status OpenFile() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status DrainObject(std::string lines) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Volume volume_;
  const std::string name_;  // of the file
  base::Mutex mutex_;
  int fd_ ABSL_GUARDED_BY(mutex_) = -1;
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string object_ ABSL_GUARDED_BY(mutex_);  // its content, in an object store
};

// All files of the folder, oldest first, as one text of at most 16 MiB. Empty: there is no log.
absl::StatusOr<std::string> ReadLogFiles(const Volume& volume);

}  // namespace medley::worker
