// The coordinator as a process: the state machine of core/ behind gRPC, with its journal, checkpoints and metrics.
//
// Serves CoordinatorService (operator) and MemberService (trainers, servers) on one port. Thread-safe; Start once.
//
//   MEDLEY_ASSIGN_OR_RETURN(auto server, CoordinatorServer::Start(options, clock));
//   int exit_code = server->Wait(stop);  // 0: complete or suspended; 1: failed, a restart may help; 2: failed for good
//                                       // kSuperseded: another coordinator leads the job
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "common/base/clock.h"
#include "worker/checkpoint/files.h"
#include "worker/checkpoint/layout.h"
#include "worker/coordinator/core/commands.h"
#include "worker/coordinator/core/options.h"

namespace medley::rpc {
class MutualTls;
}

namespace medley::worker {

// Writes the finished model of a job. `checkpoint` is the last one, verified. Call `may_publish` before anything
// becomes visible to others: it returns Aborted when another coordinator leads the job. Runs in a thread of its own,
// which may outlive the server.
using ExportModel =
    std::function<absl::Status(const Volume& volume, const CheckpointManifest& checkpoint, const ExportCommand& order,
                               const std::function<absl::Status()>& may_publish)>;

struct CoordinatorOptions {
  CoreOptions core;  // core.checkpoints is set from checkpoint_root, core.exports from export_model
  std::string host = "127.0.0.1";
  int port = 0;  // 0: the system chooses one, see port()
  // Given by the operator; a coordinator with a larger term replaces this one (docs/adr/0015-the-coordinator-moves.md).
  // 0: it takes nothing over, and stops when a coordinator with a term has claimed the job. Without a checkpoint_root
  // nobody can take over.
  int64_t term = 0;
  std::string address;  // "host:port" where members reach it; needed with a term
  // Random per process, for its claim: of two that claim the same term at once, one leads. Letters and digits.
  std::string instance;
  std::string token;
  std::shared_ptr<const rpc::MutualTls> tls;  // null: plain text
  // Folder for the journal, checkpoints, steps.jsonl, the log and the finished model; should outlive the pod. Empty:
  // nothing is kept.
  Volume checkpoint_root;
  int keep_checkpoints = 3;
  std::string model_fingerprint;
  std::string model_settings;  // what it covers (CheckpointManifest::settings)
  std::string job_settings;    // what core.job_digest covers, as JSON (worker/app/job_identity.h); may be empty
  // Whether members can save their state. False: there is a journal in checkpoint_root, but no checkpoints.
  bool keeps_state = true;
  ExportModel export_model;  // unset, or without checkpoint_root: no model is written
  // Folder of another job or of one of its checkpoints, to continue from when this job has none. Empty: none.
  std::string continue_from;
  bool tensor_board = false;                          // write event files of TensorBoard; needs checkpoint_root
  std::function<double(int64_t step)> learning_rate;  // of a step, for TensorBoard; unset: not written
  int metrics_port = -1;              // port of Prometheus' /metrics; -1: none, 0: the system chooses one
  std::string metrics_token_digests;  // of its readers' tokens (http_server::Readers); empty: everybody
  // A member is lost when its session breaks and the same process does not reconnect within this time.
  base::nanoseconds session_grace = base::milliseconds(500);
  // The interval of pings to members, so that one on a dead machine is lost within half a minute (rpc::ServerOptions).
  base::milliseconds keepalive_interval = base::seconds(10);
  base::nanoseconds tick = base::milliseconds(50);
  // Longest wait for a record of the journal, without which the coordinator can decide nothing more; it then exits so
  // that another process can continue. Also for the claim at the start.
  base::nanoseconds journal_timeout = base::seconds(120);
  // Longest wait at the end for operations on the volume that still run.
  base::nanoseconds volume_grace = base::seconds(5);
  base::nanoseconds claim_interval = base::seconds(1);  // between two looks for a newer claim
  // Longest wait for the coordinator before to hand the job over. After that the job is taken over without it.
  base::nanoseconds hand_over_timeout = base::seconds(20);
  // After a stop signal: how long the job trains on, so that another coordinator can take over. 0: not at all.
  base::nanoseconds notice{0};
  // Where the job's result is written at its end (common/job_result); empty: nowhere.
  std::filesystem::path result_file;
  // After the job's end: longest wait for the operator to read the last observation and for members to disconnect.
  base::nanoseconds linger = base::seconds(10);
};

class CoordinatorServer {
 public:
  // Takes the job over from the coordinator of an earlier term, if there is one. Errors: Unavailable
  // ("... 127.0.0.1:7000 ..." is in use), InvalidArgument, FailedPrecondition (the other coordinator refuses to hand
  // over), Aborted (a newer coordinator leads), Cancelled, file system.
  static absl::StatusOr<std::unique_ptr<CoordinatorServer>> Start(CoordinatorOptions options, base::Clock& clock,
                                                                  std::stop_token stop = {});
  ~CoordinatorServer();  // Stop

  int port() const;
  int metrics_port() const;  // 0: none
  // Waits until the job is over and the linger time has passed; returns the exit code, or -1 when `stop` came first.
  int Wait(std::stop_token stop);
  bool trains() const;  // the job is not over, and some member stays
  // Stops at once without informing members, as a crash would; they keep their state. Idempotent; joins every thread.
  void Stop();

 private:
  struct State;
  explicit CoordinatorServer(std::unique_ptr<State> state);
  const std::unique_ptr<State> state_;
};

// Runs Start and Wait for `medley-worker --role=coordinator`. Returns the exit code, or why the server could not start.
absl::StatusOr<int> RunCoordinator(CoordinatorOptions options, base::Clock& clock, std::stop_token stop);

}  // namespace medley::worker
