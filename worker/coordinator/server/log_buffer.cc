#include "worker/coordinator/server/log_buffer.h"

#include <fmt/core.h>

#include <utility>

namespace medley::worker {

void LogBuffer::Add(std::string_view line) {
  base::MutexLock lock(mutex_);
  if (lines_.size() + line.size() >= most_bytes_) {
    ++dropped_;
    return;
  }
  lines_.append(line).push_back('\n');
}

std::string LogBuffer::Take() {
  base::MutexLock lock(mutex_);
  std::string lines = std::exchange(lines_, {});
  if (const int64_t dropped = std::exchange(dropped_, 0); dropped > 0) {
    lines += fmt::format("{} more lines are missing here, because the volume did not answer in time\n", dropped);
  }
  return lines;
}

bool LogBuffer::empty() const {
  base::MutexLock lock(mutex_);
  return lines_.empty() && dropped_ == 0;
}

}  // namespace medley::worker
