// Values of a parameter or table on their way from one trainer to another, wherever each has them.
#pragma once

#include <absl/status/status.h>

#include <cstdint>

#include "worker/collective/group.h"
#include "worker/pipeline/dense_values.h"

namespace medley::worker {

// In messages of at most 16 MiB, so that a table of any size can move. Both have as many values. Errors: those of Group
// and of DenseValues.
absl::Status SendValues(Group& group, int to, uint64_t tag, const DenseValues& values);
absl::Status ReceiveValues(Group& group, int from, uint64_t tag, const DenseValues& values);

}  // namespace medley::worker
