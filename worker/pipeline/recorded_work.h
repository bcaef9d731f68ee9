// What blocks tell of work that their device recorded and does again (worker/aten/recorder.h).
#pragma once

#include <cstdint>
#include <string>

namespace medley::worker {

struct RecordingCounts {
  int64_t recorded = 0;    // recordings that were made
  int64_t replayed = 0;    // how often one was done
  int64_t one_by_one = 0;  // how often such work was given kernel by kernel
  int64_t bytes = 0;       // of the device's memory that recordings keep
  std::string reason;      // of the last work that cannot be recorded; empty: there was none

  RecordingCounts& operator+=(const RecordingCounts& other) {
    recorded += other.recorded;
    replayed += other.replayed;
    one_by_one += other.one_by_one;
    bytes += other.bytes;
    if (reason.empty()) reason = other.reason;
    return *this;
  }
};

// A block that has such work.
class RecordsWork {
 public:
  virtual ~RecordsWork() = default;
  virtual RecordingCounts Recordings() const = 0;
};

}  // namespace medley::worker
