// The coordinator as a process: the state machine of core/ behind gRPC, with its journal, checkpoints and metrics.
//
// Serves CoordinatorService (operator) and MemberService (trainers, servers) on one port. Thread-safe; Start once.
//
//   MEDLEY_ASSIGN_OR_RETURN(auto server, CoordinatorServer::Start(options, clock));
//   int exit_code = server->Wait(stop);   // 0 complete or suspended, 1 failed but worth a restart, 2 failed for good
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>

#include "common/base/clock.h"
#include "worker/coordinator/core/options.h"

namespace medley::worker {

struct CoordinatorOptions {
  CoreOptions core;  // core.checkpoints is set from checkpoint_root
  std::string host = "127.0.0.1";
  int port = 0;  // 0: the system chooses, see port()
  std::string token;
  // Journal, checkpoints, steps.jsonl and exports; should outlive the pod. Empty: nothing is kept.
  std::filesystem::path checkpoint_root;
  int keep_checkpoints = 3;
  std::string model_fingerprint;
  int metrics_port = -1;  // Prometheus /metrics; -1: none, 0: the system chooses
  // A broken session is a lost member after this long without the same process coming back.
  base::nanoseconds session_grace = base::milliseconds(500);
  base::nanoseconds tick = base::milliseconds(50);
  // After the end: how long to wait for the operator to read the last observation and for members to go.
  base::nanoseconds linger = base::seconds(10);
};

class CoordinatorServer {
 public:
  // Errors: Unavailable ("... 127.0.0.1:7000 ..." is in use), InvalidArgument, file system.
  static absl::StatusOr<std::unique_ptr<CoordinatorServer>> Start(CoordinatorOptions options, base::Clock& clock);
  ~CoordinatorServer();  // Stop

  int port() const;
  int metrics_port() const;  // 0: none
  // Until the job is over (and lingered) or `stop`; the exit code, -1 when stopped before.
  int Wait(std::stop_token stop);
  // Without ceremony, as a crash would: members keep their state. Idempotent; joins every thread.
  void Stop();

 private:
  struct State;
  explicit CoordinatorServer(std::unique_ptr<State> state);
  const std::unique_ptr<State> state_;
};

// Start and Wait: the whole life of `medley-worker --role=coordinator`. The exit code, or why it could not start.
absl::StatusOr<int> RunCoordinator(CoordinatorOptions options, base::Clock& clock, std::stop_token stop);

}  // namespace medley::worker
