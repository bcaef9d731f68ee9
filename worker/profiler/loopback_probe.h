// CommunicationProbe over a TCP connection to a thread of this process on the loopback interface:
// the kernel's copies and wake-ups of a real peer on the same machine, without its protocol. A
// server's work is done by the same code as a parameter server's (row copies, Apply).
#pragma once

#include <memory>

#include "common/base/clock.h"
#include "worker/profiler/communication_probe.h"

namespace medley::worker {

class LoopbackProbe final : public CommunicationProbe {
 public:
  // Errors: what the operating system says of sockets.
  static absl::StatusOr<std::unique_ptr<LoopbackProbe>> Create(const base::Clock& clock);
  ~LoopbackProbe() override;

  absl::StatusOr<double> AllreduceSeconds(int64_t bytes, int replicas) override;
  absl::StatusOr<double> ExchangeSeconds(int64_t bytes) override;
  absl::StatusOr<ServerCost> PullPushCost(int64_t rows, int columns) override;

 private:
  class Rep;
  explicit LoopbackProbe(std::unique_ptr<Rep> rep);
  std::unique_ptr<Rep> rep_;
};

}  // namespace medley::worker
