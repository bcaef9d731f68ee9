// Serves CoordinatorCore by a minimal MemberService, for tests of members in one process: no journal, no checkpoints.
//
// Thread-safe. A member is lost as soon as its session ends.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/mutex.h"
#include "common/rpc/server.h"
#include "medley/job/v1/coordinator.grpc.pb.h"
#include "worker/collective/key_value_store.h"
#include "worker/coordinator/core/core.h"

namespace medley::worker {

class CoreService final : public job::v1::MemberService::Service {
 public:
  explicit CoreService(const CoreOptions& options);
  ~CoreService() override;

  std::string address() const { return server_->address(); }
  absl::StatusOr<int64_t> ApplyPlan(const job::v1::ApplyPlanRequest& request);
  job::v1::Observation Observe();
  std::map<int64_t, double> Losses();  // by step

  grpc::Status Session(grpc::ServerContext* context,
                       grpc::ServerReaderWriter<job::v1::SessionResponse, job::v1::SessionRequest>* stream) override;
  grpc::Status PutRendezvous(grpc::ServerContext* context, const job::v1::PutRendezvousRequest* request,
                             job::v1::PutRendezvousResponse* response) override;
  grpc::Status GetRendezvous(grpc::ServerContext* context, const job::v1::GetRendezvousRequest* request,
                             job::v1::GetRendezvousResponse* response) override;

 private:
  using Stream = grpc::ServerReaderWriter<job::v1::SessionResponse, job::v1::SessionRequest>;
  Instant Now() const { return {clock_.Steady(), clock_.Now()}; }
  void Execute() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  base::SystemClock clock_;
  base::Mutex mutex_;
  CoordinatorCore core_ ABSL_GUARDED_BY(mutex_);
  std::map<std::pair<std::string, std::string>, Stream*> streams_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, double> losses_ ABSL_GUARDED_BY(mutex_);
  MemoryStore store_;
  std::unique_ptr<rpc::Server> server_;
  std::jthread ticker_;
};

}  // namespace medley::worker
