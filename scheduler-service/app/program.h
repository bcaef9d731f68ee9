// The whole service: creates its parts, serves, and shuts down in order.
#pragma once

#include <absl/status/status.h>

#include <functional>

#include "scheduler-service/app/options.h"

namespace medley::sched {

// Serves until `wait_for_end` returns. Then reports "not ready", rejects new requests, waits for running requests for
// the grace period, stops the remaining ones (they return the best plan found so far), and returns. Errors: an address
// in use, an invalid option or file.
absl::Status Serve(const ServiceOptions& options, const std::function<void()>& wait_for_end);

}  // namespace medley::sched
