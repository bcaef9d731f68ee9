// What a step of a program takes at least, and what holds it up (HeteroG, section 4.2: the longest path and the busiest
// resource bound every order). Pure.
#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "common/program/program.h"
#include "scheduler-service/simulate/durations.h"

namespace medley::sched {

// Seconds of a step in steady state, each of which no simulation of the program falls below.
struct ProgramBound {
  // Every instruction starts as soon as what it depends on is done, as if no list, link or card were busy.
  double path = 0;
  // The passes, sums and updates of the busiest device, one after the other.
  double compute = 0;
  std::string device;  // its id
  // What moves through the busiest link: the messages of a channel, the reductions of a device that follow one another,
  // or the bytes that one machine's network card sends or receives.
  double link = 0;
  std::string link_name;  // "reductions of v100-0", "messages from v100-0 to p100-1", "sent by node-0", ...

  double seconds() const;
};

// Processor time of messages and reductions counts nothing. Averages count as often as replicas agree (AgreeingPart).
// Errors: those of CheckDurations; InvalidArgument for samples below 1; Internal where dependencies of one step form a
// circle, which Check excludes.
absl::StatusOr<ProgramBound> BoundOfProgram(const program::Program& program, const Durations& durations, int samples);

}  // namespace medley::sched
