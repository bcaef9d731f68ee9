#include "operator/runtime/reconciler.h"

#include <absl/strings/cord.h>

namespace medley::ops {
namespace {
constexpr const char* kTerminal = "medley.ops/terminal";
}  // namespace

absl::Status Terminal(const absl::Status& status) {
  absl::Status terminal = status;
  terminal.SetPayload(kTerminal, absl::Cord("1"));
  return terminal;
}

bool IsTerminal(const absl::Status& status) { return status.GetPayload(kTerminal).has_value(); }

}  // namespace medley::ops
