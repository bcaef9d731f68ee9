// Rebuilding the rows of a lost server (docs/adr/0083-a-lost-server-is-given-its-pushes-again.md): what the server that
// takes its place does, and what trainers do.
#pragma once

#include <absl/status/status.h>

#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "medley/job/v1/coordinator.pb.h"
#include "worker/ps/parameter_server.h"
#include "worker/ps/push_log.h"
#include "worker/ps/row_store.h"
#include "worker/trainer/session.h"

namespace medley::worker {

// The longest that a server waits for the pushes of all trainers, after it has read its checkpoint.
inline constexpr base::nanoseconds kRebuildTime = base::seconds(120);

bool Rebuilds(const job::v1::Prepare& order, int shard);

// Takes the rows from the checkpoint to order.rebuild.to_step: receives the pushes of the trainers through `server`.
// `store` has the rows of the checkpoint. All errors but Cancelled are marked as RestoreError: the coordinator then
// takes every member back to the checkpoint.
absl::Status TakePushes(const job::v1::Prepare& order, std::shared_ptr<RowStore> store, ParameterServer& server,
                        const base::Clock& clock, std::stop_token stop);

// Sends the kept pushes to the servers that are rebuilt, to all at the same time, in the background. Not thread-safe.
class ResentPushes {
 public:
  // Begins, when order has shards to rebuild and `log` is not null. What it is given must outlive it.
  ResentPushes(const job::v1::Prepare& order, const SessionOptions& session, const std::shared_ptr<PushLog>& log,
               const base::Clock& clock);
  ~ResentPushes();  // gives up

  // Waits until every server has taken them. An error that is no broken exchange is marked as RestoreError.
  absl::Status Finish(std::stop_token stop);

 private:
  std::stop_source end_;
  std::vector<std::unique_ptr<absl::Status>> results_;  // of the threads
  std::vector<std::jthread> threads_;
};

// For Halted.
void ReportPushes(const PushLog& log, job::v1::Halted& halted);

// A log for this process. What it may use follows from the memory that the process may use and uses.
std::shared_ptr<PushLog> MakePushLog(const base::Clock& clock);

}  // namespace medley::worker
