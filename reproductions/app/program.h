// The planner process: creates its parts, serves, and shuts down in order.
#pragma once

#include <absl/status/status.h>

#include <functional>
#include <string>

#include "reproductions/app/options.h"

namespace medley::reproductions::app {

// Answers the planning request in `file` (YAML or JSON; "-": standard input) on standard output, a PlanResponse in
// JSON. Prices and profiles must be filled in. Errors: those of MakePlan, and of reading.
absl::Status AnswerOnce(const std::string& file);

// Prints the planners on standard output, a ListPlannersResponse in JSON.
void PrintPlanners();

// Serves until `wait_for_end` returns. Then refuses new requests, waits for running ones for the grace period, stops
// the remaining ones (they answer with their best plan), and returns. Errors: an address in use, an invalid option or
// file.
absl::Status Serve(const PlannerProgramOptions& options, const std::function<void()>& wait_for_end);

}  // namespace medley::reproductions::app
