// A block that takes rows of a coming step while it computes another one, on a device.
//
// Who stages is one thread, and not the one that computes.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <span>

namespace medley::worker {

class RowStager {
 public:
  virtual ~RowStager() = default;
  // Rows that SetRows will give for Tables()[table] in `step`, or older values of them: the block replaces those that
  // differ then. Errors: those of the device.
  virtual absl::Status StageRows(int64_t step, int table, std::span<const float> rows) = 0;
};

}  // namespace medley::worker
