// Lines of the log that wait for the volume. Thread-safe; never blocks, because it is a base::log::Copy's sink.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/mutex.h"

namespace medley::worker {

class LogBuffer {
 public:
  explicit LogBuffer(size_t most_bytes = size_t{1} << 18) : most_bytes_(most_bytes) {}

  // Drops the line when `most_bytes` wait already: the volume does not answer.
  void Add(std::string_view line);
  // Returns all lines, each with its newline, and a line about those that were dropped.
  std::string Take();
  bool empty() const;

 private:
  const size_t most_bytes_;
  mutable base::Mutex mutex_;
  std::string lines_ ABSL_GUARDED_BY(mutex_);
  int64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace medley::worker
