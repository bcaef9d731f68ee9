// A simulated timeline as a Chrome trace (chrome://tracing, Perfetto) and as a picture. Pure.
#pragma once

#include <string>
#include <vector>

#include "common/program/program.h"
#include "scheduler-service/simulate/simulate.h"

namespace medley::sched {

// JSON: a process for each device, a thread for each of its lists; microseconds. `cat` is forward, backward, update,
// reduction or messages; `args` has the step, the operations and the micro-batch, if the instruction is of one.
// `names`: of the operations.
std::string ChromeTrace(const program::Program& program, const Simulation& simulation,
                        const std::vector<std::string>& names);

// SVG, in the colours of the reader's light or dark theme: a row for each device, its computation above its messages
// and collectives. Rows get lower when there are many; names of instructions are shown where they fit.
std::string TimelineSvg(const program::Program& program, const Simulation& simulation,
                        const std::vector<std::string>& names);

}  // namespace medley::sched
