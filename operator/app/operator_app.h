// The operator as one object: Start it, Stop it. Tests run several in one process; main runs one.
//
//   OperatorApp app(options, client, clock);
//   MEDLEY_RETURN_IF_ERROR(app.Start(stop));
//   ... app.http_port() ...
//   app.Stop();
//
// Thread-safe but for Start and Stop, which belong to one thread. Everything it knows is in the
// cluster: a second instance goes on where the first stopped.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "common/base/clock.h"
#include "common/rpc/channel.h"
#include "kube/client.h"
#include "kube/leader/elector.h"
#include "operator/controllers/job_deps.h"

namespace medley::ops {

struct OperatorOptions {
  std::string scheduler_address = "127.0.0.1:7100";
  std::string scheduler_token;                  // shown to the scheduling service; empty: none
  std::optional<rpc::ClientTls> scheduler_tls;  // none: plain text
  std::string ns;                               // of the jobs to run; empty: all
  std::string http_address = "127.0.0.1";
  int http_port = 0;                  // 0: the system chooses
  int workers = 4;                    // jobs reconciled at the same time
  uint64_t seed = 1;                  // of jitter; differs between processes
  std::function<uint64_t()> entropy;  // for tokens; null: the operating system's
  // Replicas: of those with the same Lease one works, the others stand by. Absent: this one works.
  struct Election {
    kube::Client* client = nullptr;  // borrowed; the election's alone, see LeaderElector::Create
    kube::LeaderElector::Options elector;
  };
  std::optional<Election> election;
  JobOptions job;
};

class OperatorApp {
 public:
  // `client` and `clock` are borrowed.
  OperatorApp(OperatorOptions options, kube::Client& client, base::Clock& clock);
  ~OperatorApp();  // Stop

  // Returns when the caches are filled and the controllers run, or with an election this one stands by. Errors:
  // Unavailable (port in use), DeadlineExceeded (the API server does not answer), InvalidArgument (the election's).
  absl::Status Start(std::stop_token stop);
  // Until `stop` (OK), or until the lead is lost (Aborted): then the process should exit at once, without Stop.
  absl::Status Wait(std::stop_token stop);
  // Idempotent; jobs go on without it. A leader gives its Lease up when its controllers have stopped.
  void Stop();
  bool leading() const;
  int http_port() const;

 private:
  class Graph;
  std::unique_ptr<Graph> graph_;
};

}  // namespace medley::ops
