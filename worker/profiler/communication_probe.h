// The interface by which the profiler measures communication on this machine.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>

namespace medley::worker {

// Each call measures and may take some milliseconds. One thread at a time.
class CommunicationProbe {
 public:
  virtual ~CommunicationProbe() = default;
  // Seconds of one allreduce of `bytes` among `replicas` processes.
  virtual absl::StatusOr<double> AllreduceSeconds(int64_t bytes, int replicas) = 0;
  // Seconds to send `bytes` to another process and to receive as many back.
  virtual absl::StatusOr<double> ExchangeSeconds(int64_t bytes) = 0;
  struct ServerCost {
    double client_seconds = 0;  // time of the trainer for one pull and one push of the rows
    double server_seconds = 0;  // CPU time of the server for both
  };
  // The cost of a pull and a push of `rows` rows of `columns` floats.
  virtual absl::StatusOr<ServerCost> PullPushCost(int64_t rows, int columns) = 0;
};

}  // namespace medley::worker
