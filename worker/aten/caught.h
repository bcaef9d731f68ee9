// Calls of LibTorch whose exceptions become statuses.
#pragma once

#include <absl/status/statusor.h>

#include <exception>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "worker/aten/errors.h"
#include "worker/pipeline/block_compute.h"

namespace medley::worker::aten {

// What `work` returns, or a status of what it throws.
template <typename Work>
auto Caught(std::string_view what, const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception& error) {
    return FromTorch(error, what);
  }
}

// The same for a pass, whose samples decide how much memory it takes.
template <typename Work>
absl::StatusOr<Values> CaughtPass(const std::string& what, const Work& work) {
  absl::StatusOr<Values> values = Caught(what, work);
  if (!absl::IsResourceExhausted(values.status()) || base::Message(values.status()).starts_with(what)) return values;
  return base::Annotate(values.status(), what);
}

}  // namespace medley::worker::aten
