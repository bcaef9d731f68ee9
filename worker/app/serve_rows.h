// Shards of embedding rows in this process: of a parameter server, or of a trainer whose plan has them inside trainers.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "worker/app/environment.h"
#include "worker/app/job_tls.h"
#include "worker/model/graph.h"
#include "worker/ps/parameter_server.h"
#include "worker/trainer/server_role.h"

namespace medley::rpc {
class Server;
}

namespace medley::worker {

// What keeps rows of the job's tables, and the port where other members find them. Owned by the function that runs a
// role; `service` must outlive it. Not thread-safe.
class RowsHost {
 public:
  // Reads the model. `port` 0: one that the system chooses. Errors: InvalidArgument, DataLoss (the model's tables),
  // those of rpc::Server::Start.
  static absl::StatusOr<std::unique_ptr<RowsHost>> Start(const Environment& env, const JobTls& tls, int port,
                                                         ParameterServer& service, base::Clock& clock);
  ~RowsHost();  // closes every generation, which wakes the handlers, and stops the port
  // For a member with this name.
  ServerContext Context(const std::string& name);
  // Requested when rows are lost, and the process should end; then Error() says why.
  std::stop_token lost() const { return lost_.get_token(); }
  absl::Status Error() const;

 private:
  RowsHost(const Environment& env, const JobTls& tls, ParameterServer& service, base::Clock& clock);

  const Environment& env_;
  const JobTls& tls_;
  ParameterServer& service_;
  base::Clock& clock_;
  Graph graph_;
  Optimizer optimizer_;
  std::unique_ptr<rpc::Server> server_;
  std::stop_source lost_;
  mutable base::Mutex mutex_;
  base::CondVar changed_;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
  // Requests `lost`: the store that reports the loss has locks. The last member.
  std::jthread watch_;
};

// The shard of a trainer: a member of the job beside the trainer's own, named model::RowsMember, in a thread. The
// coordinator gives it a shard where the plan has the rows in trainers; in other plans it only waits. After a release
// it joins again without state. Thread-safe; everything that it is made from must outlive it.
class RowsInTrainer {
 public:
  RowsInTrainer(const Environment& env, const JobTls& tls, base::Clock& clock);
  ~RowsInTrainer();  // ends the member

  ParameterServer& service() { return service_; }
  // Requested when the member cannot serve and the process should end; then Error() says why.
  std::stop_token failed() const { return failed_.get_token(); }
  absl::Status Error() const;

 private:
  absl::Status Serve(const std::stop_token& stop);

  const Environment& env_;
  const JobTls& tls_;
  base::Clock& clock_;
  ParameterServer service_;
  std::stop_source failed_;
  mutable base::Mutex mutex_;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
  std::jthread thread_;  // last member: joined before the others are destroyed
};

}  // namespace medley::worker
