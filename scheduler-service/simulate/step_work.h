// What every instruction of a step takes by itself, before any of them waits for another. Pure.
#pragma once

#include <vector>

#include "common/program/program.h"
#include "scheduler-service/simulate/durations.h"

namespace medley::sched {

struct StepWork {
  // The instructions of a collective, which end together.
  struct Collective {
    program::Kind kind = program::Kind::kAllReduce;
    int members = 0;
    double seconds = 0;
    int block = -1;      // of a reduction or an average; -1: a norm, of a few bytes
    int first_load = 0;  // of `loads`
    int end_load = 0;
  };
  // What the members on one machine send those on another, all messages of a collective as one.
  struct Load {
    int collective = 0;
    int from = 0;  // machines
    int to = 0;
    double bytes = 0;
  };

  std::vector<double> seconds;  // by instruction; 0: messages, which take what the network takes
  std::vector<double>
      processor;                // by instruction: of the device's computation, beside `seconds`; PullRows and PushRows
  std::vector<double> bytes;    // by instruction: of messages
  std::vector<double> rate;     // by instruction: bytes a second of a Send's link; 0: no limit
  std::vector<int> collective;  // by instruction; -1: none
  std::vector<Collective> collectives;
  std::vector<Load> loads;  // by collective; only where collectives share network cards with something
};

// `durations` must have passed CheckDurations; `samples`: of a step, at least 1.
StepWork WorkOfStep(const program::Program& program, const Durations& durations, int samples);

}  // namespace medley::sched
