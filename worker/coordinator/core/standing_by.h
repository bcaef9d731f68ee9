// Slow trainers stand by until they are as fast as usual again (docs/adr/0026-slow-members-stand-by.md).
#pragma once

#include "worker/coordinator/core/options.h"
#include "worker/coordinator/core/slow_members.h"
#include "worker/coordinator/core/standbys.h"

namespace medley::worker {

struct StandingByState {
  explicit StandingByState(const CoreOptions& options) : slow(options.slow_for), standbys(options.standby) {}

  SlowMembers slow;   // how fast the trainers of the generation in force are
  Standbys standbys;  // slow trainers: those that stand by, and those in force that the next generation leaves out
};

}  // namespace medley::worker
