// The interface by which the profiler measures communication on this machine.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>

#include "common/model/allreduce_algorithm.h"

namespace medley::worker {

// What moving data costs one process.
struct Traffic {
  double seconds = 0;
  double processor_seconds = 0;  // of all its threads: copying, protocols, the kernel; without waiting
  // The median of single ones; less than `seconds` where a CPU quota interrupts some of them. 0: not measured.
  double burst_seconds = 0;
};

// Each call measures and may take some milliseconds. One thread at a time.
class CommunicationProbe {
 public:
  virtual ~CommunicationProbe() = default;
  // One allreduce of `bytes` among `replicas` processes, by the algorithm of a plan without measurements.
  virtual absl::StatusOr<Traffic> Allreduce(int64_t bytes, int replicas) = 0;
  // The mean seconds of an allreduce by `algorithm`, of a short stretch of time.
  virtual absl::StatusOr<double> AllreduceSeconds(int64_t bytes, int replicas, model::AllreduceAlgorithm algorithm) = 0;
  // Sends `bytes` to another process and receives as many back.
  virtual absl::StatusOr<Traffic> Exchange(int64_t bytes) = 0;
  // The processor seconds of a rank for such an exchange, without those of its computation with `computed_bytes` before
  // and after each message. After it, messages do not find in the processor's caches what they left there, so they cost
  // more than in a row, which 0 bytes say.
  virtual absl::StatusOr<double> ExchangeAmidComputation(int64_t bytes, int64_t computed_bytes) = 0;
  struct ServerCost {
    Traffic client;             // of the trainer, for one pull and one push of the rows; only its calling thread
    double server_seconds = 0;  // processor time of the server for both, with the transport's threads
  };
  // The cost of a pull and a push of `rows` rows of `columns` floats.
  virtual absl::StatusOr<ServerCost> PullPushCost(int64_t rows, int columns) = 0;
};

}  // namespace medley::worker
