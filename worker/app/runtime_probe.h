// A CommunicationProbe that uses the runtime's own transports: a group between ranks, and a parameter-server shard
// over gRPC, all on this machine's address. So the measured times include the protocols, as they do in a step of a
// job.
//
// Reports means over a stretch of time, not medians: under a CPU limit (cgroup quota), only a stretch that is long
// compared with the quota's period shows the processor time that is really available. One thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "worker/collective/tls_stream.h"
#include "worker/params/optimizer.h"
#include "worker/profiler/communication_probe.h"

namespace medley::worker {

struct RuntimeProbeOptions {
  std::string address = "127.0.0.1";                   // IP address of this process
  int micro_batches = 1;                               // number of pieces in which activations are sent
  Optimizer optimizer;                                 // optimizer of the shard
  std::optional<GroupTls> tls;                         // of the ranks' connections; nullopt: plain text
  base::nanoseconds stretch = base::milliseconds(40);  // duration of each measurement
};

class RuntimeProbe final : public CommunicationProbe {
 public:
  // `clock` is borrowed. Errors: the group's and gRPC's, when the two ranks or the shard cannot connect.
  static absl::StatusOr<std::unique_ptr<RuntimeProbe>> Create(const RuntimeProbeOptions& options,
                                                              const base::Clock& clock);
  ~RuntimeProbe() override;

  absl::StatusOr<Traffic> Allreduce(int64_t bytes, int replicas) override;
  absl::StatusOr<double> AllreduceSeconds(int64_t bytes, int replicas, model::AllreduceAlgorithm algorithm) override;
  absl::StatusOr<Traffic> Exchange(int64_t bytes) override;
  absl::StatusOr<double> ExchangeAmidComputation(int64_t bytes, int64_t computed_bytes) override;
  absl::StatusOr<ServerCost> PullPushCost(int64_t rows, int columns) override;

 private:
  class Rep;
  explicit RuntimeProbe(std::unique_ptr<Rep> rep);
  const std::unique_ptr<Rep> rep_;
};

}  // namespace medley::worker
