#include "worker/trainer/restore_error.h"

#include <absl/strings/cord.h>

#include <utility>

namespace medley::worker {
namespace {

constexpr char kRestore[] = "medley/restore";

}  // namespace

absl::Status RestoreError(absl::Status status) {
  if (!status.ok()) status.SetPayload(kRestore, absl::Cord());
  return status;
}

bool IsRestoreError(const absl::Status& status) { return status.GetPayload(kRestore).has_value(); }

bool IsDamage(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kInvalidArgument:  // a part that the model does not have
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kFailedPrecondition:
      return true;
    default:
      return false;
  }
}

}  // namespace medley::worker
