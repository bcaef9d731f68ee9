// What a program reports in TensorBoard's event files: each step for which it has written a scalar, and its loss. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "common/model/progress_pattern.h"

namespace medley::worker {

struct EventReport {
  model::StepReport report;
  double wall_time = 0;  // Unix time in seconds, as the program says it
};

struct EventsRead {
  uint64_t used = 0;  // bytes of whole records; more than there are when a long record is skipped
  std::vector<EventReport> reports;
};

// Whether the scalar of this tag is the loss of training: loss, train/loss, train_loss and the like.
bool IsLossTag(std::string_view tag);

// Reads the whole records at the start of `bytes`. Scalars of one step in a row are one report; steps below 1, losses
// that are not finite and records of other kinds are left out. Errors: DataLoss, when the file is damaged.
absl::StatusOr<EventsRead> ReadEvents(std::string_view bytes);

}  // namespace medley::worker
