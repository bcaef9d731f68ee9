// Runs a program in simulated time. Pure.
//
// Every list of every device executes its instructions in order, one at a time, each when its dependencies are done
// (common/program/program.h). Beyond that:
//   a Send occupies its list until its bytes have left; they arrive one latency later, and then the Receive ends;
//   a collective starts when all replicas have reached it and ends on all of them together; averages are only in steps
//   that agree (AgreeingPart);
//   messages through one network card share its rate (network.h); collectives have their own duration, and are longer
//   where what they send through a card shares it with others, as a message of even rate between two machines;
//   on CPUs, messages and reductions take processor time from the computation that runs then or next.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <stop_token>
#include <vector>

#include "common/program/program.h"
#include "scheduler-service/simulate/durations.h"

namespace medley::sched {

struct SimulationOptions {
  int samples = 1;  // of a step
  int steps = 10;
  int first_span_step = 0;  // spans of earlier steps are left out
  int64_t max_spans = 0;    // 0: no timeline; when there are more, the last are left out
  std::stop_token stop;     // looked at every few thousand instructions
};

struct Span {
  int list = 0;  // index into Program::lists
  int instruction = 0;
  int step = 0;
  double start = 0;  // seconds since the start of the first step
  double end = 0;
};

struct Simulation {
  double seconds_per_step = 0;   // in steady state
  double total_seconds = 0;      // of all steps
  std::vector<double> step_end;  // when all devices have reported the step
  std::vector<double> busy;      // by device: seconds of its compute list
  std::vector<Span> spans;       // by end
  bool spans_left_out = false;
  int64_t instructions = 0;  // executed
};

// The most instructions of all steps together.
inline constexpr int64_t kMaxSimulated = 100'000'000;

// Errors: InvalidArgument for durations of the wrong shape (CheckDurations), samples or steps below 1;
// ResourceExhausted above kMaxSimulated; Cancelled; Internal when the lists wait in a circle, which Check excludes.
absl::StatusOr<Simulation> Simulate(const program::Program& program, const Durations& durations,
                                    const SimulationOptions& options);

}  // namespace medley::sched
