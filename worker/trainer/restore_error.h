// Marks the errors of reading the checkpoint from which a generation starts: the coordinator then looks for an older
// one. Pure.
#pragma once

#include <absl/status/status.h>

namespace medley::worker {

// OK stays OK.
absl::Status RestoreError(absl::Status status);
bool IsRestoreError(const absl::Status& status);

// Whether the content is wrong, so that reading it again would end in the same way. Of a RestoreError.
bool IsDamage(const absl::Status& status);

}  // namespace medley::worker
