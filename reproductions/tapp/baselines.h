// What TAPP is compared with and the service does not need: bsp, bsp-subset, random.
#pragma once

#include <memory>
#include <vector>

#include "scheduler-service/pipeline/pipeline_planners.h"

namespace medley::reproductions::tapp {

// Times random pipelines until `calls` simulations were made or the limits end.
void SearchRandomly(const sched::DeviceProblem& problem, int64_t calls, base::Rng& rng, const sched::Budget& limits,
                    sched::PipelineTimer& timer);

std::vector<std::unique_ptr<sched::Planner>> MakeBaselines();

}  // namespace medley::reproductions::tapp
