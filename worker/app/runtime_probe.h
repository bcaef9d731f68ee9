// CommunicationProbe with the runtime's own organs: gloo between two ranks, a parameter-server
// shard over gRPC, all on this machine's address. What it measures is what a step of a job pays,
// protocol included.
//
// Means over a stretch of time, not medians: where the processor is rationed (cgroup quota), only a
// stretch that is long against the quota's period shows what is really to be had. One thread at a
// time.
#pragma once

#include <memory>
#include <string>

#include "common/base/clock.h"
#include "worker/params/optimizer.h"
#include "worker/profiler/communication_probe.h"

namespace medley::worker {

struct RuntimeProbeOptions {
  std::string address = "127.0.0.1";                   // of this process
  int micro_batches = 1;                               // pieces in which activations travel
  Optimizer optimizer;                                 // of the shard
  base::nanoseconds stretch = base::milliseconds(40);  // of each measurement
};

class RuntimeProbe final : public CommunicationProbe {
 public:
  // `clock` is borrowed. Errors: gloo's and gRPC's, when the two ranks or the shard cannot connect.
  static absl::StatusOr<std::unique_ptr<RuntimeProbe>> Create(const RuntimeProbeOptions& options,
                                                              const base::Clock& clock);
  ~RuntimeProbe() override;

  absl::StatusOr<double> AllreduceSeconds(int64_t bytes, int replicas) override;
  absl::StatusOr<double> ExchangeSeconds(int64_t bytes) override;
  absl::StatusOr<ServerCost> PullPushCost(int64_t rows, int columns) override;

 private:
  class Rep;
  explicit RuntimeProbe(std::unique_ptr<Rep> rep);
  const std::unique_ptr<Rep> rep_;
};

}  // namespace medley::worker
