#include <iostream>

#include "common/base/status.h"
#include "worker/app/roles.h"
#include "worker/profiler/profiler.h"

namespace medley::worker {

absl::StatusOr<int> RunProfilerRole(const Environment& env, base::Clock& clock, const Signals& signals) {
  ProfilerOptions options;
  options.job = env.spec;
  options.resource_type = env.pool;
  options.clock = &clock;
  options.output = &std::cout;
  options.stop = signals.stop();
  MEDLEY_RETURN_IF_ERROR(RunProfiler(options));
  return 0;
}

}  // namespace medley::worker
