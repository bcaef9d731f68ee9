// The service as a whole: makes its parts, serves, and leaves in good order.
#pragma once

#include <absl/status/status.h>

#include <functional>

#include "scheduler-service/app/options.h"

namespace medley::sched {

// Serves until `wait_for_end` returns; then says that it is not ready, takes no new work, lets running requests finish
// for the grace period, stops them with the best plan known, and returns. Errors: addresses in use, bad options or
// files.
absl::Status Serve(const Options& options, const std::function<void()>& wait_for_end);

}  // namespace medley::sched
