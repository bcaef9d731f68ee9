// The operator as one object: Start it, Stop it. Tests run several in one process; main runs one.
//
//   OperatorApp app(options, client, clock);
//   MEDLEY_RETURN_IF_ERROR(app.Start(stop));
//   ... app.http_port() ...
//   app.Stop();
//
// Thread-safe except for Start and Stop, which must be called from one thread. All durable state is in the cluster, so
// another instance can continue where this one stopped.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "common/base/clock.h"
#include "common/http_server/readers.h"
#include "common/rpc/channel.h"
#include "kube/client.h"
#include "kube/leader/elector.h"
#include "operator/controllers/job_deps.h"

namespace medley::ops {

struct OperatorOptions {
  std::string scheduler_address = "127.0.0.1:7100";
  int plan_calls = 16;                          // SlowCalls::Options::planner_threads
  int max_profilers = 0;                        // profiling::Options::max_pods
  std::string scheduler_token;                  // bearer token for the scheduling service; empty: none
  std::optional<rpc::ClientTls> scheduler_tls;  // absent: plain text
  std::string ns;                               // reconcile the jobs of this namespace; empty: of all
  std::string http_address = "127.0.0.1";
  int http_port = 0;  // 0: the system chooses
  http_server::Readers metrics_readers;
  int workers = 4;    // jobs reconciled at the same time
  uint64_t seed = 1;  // of jitter; differs between processes
  // Leader election: of all replicas with the same Lease, one reconciles and the others stand by. Absent: no election.
  struct Election {
    kube::Client* client = nullptr;  // borrowed; used by nothing else, see LeaderElector::Create
    kube::LeaderElector::Options elector;
  };
  std::optional<Election> election;
  bool recommend = false;  // answer jobs of other controllers that ask for it (operator/recommend)
  JobOptions job;
};

class OperatorApp {
 public:
  // `client` and `clock` are borrowed.
  OperatorApp(OperatorOptions options, kube::Client& client, base::Clock& clock);
  ~OperatorApp();  // Stop

  // Returns when the caches are filled and the controllers run or, with an election, when this replica stands by.
  // Errors: Unavailable (port in use), DeadlineExceeded (the API server does not answer), InvalidArgument (options of
  // the election).
  absl::Status Start(std::stop_token stop);
  // Blocks until `stop` (OK) or until this replica no longer leads (Aborted). After Aborted the process must exit at
  // once, without Stop.
  absl::Status Wait(std::stop_token stop);
  // Idempotent. Jobs continue to train. A leader releases its Lease after its controllers have stopped.
  void Stop();
  bool leading() const;
  int http_port() const;

 private:
  class Graph;
  std::unique_ptr<Graph> graph_;
};

}  // namespace medley::ops
