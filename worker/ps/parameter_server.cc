#include "worker/ps/parameter_server.h"

#include <grpcpp/grpcpp.h>

#include <map>
#include <utility>

#include "common/base/mutex.h"
#include "common/rpc/context.h"
#include "common/rpc/status.h"
#include "medley/job/v1/parameter_server.grpc.pb.h"
#include "worker/ps/sharding.h"
#include "worker/ps/wire.h"

namespace medley::worker {
namespace {

namespace pb = ::medley::job::v1;

absl::StatusOr<std::vector<Gradients>> ParseGradients(const pb::PushRequest& request) {
  std::vector<Gradients> gradients;
  for (const pb::TableGradients& table : request.tables()) {
    Gradients g{.table = table.table()};
    MEDLEY_ASSIGN_OR_RETURN(g.keys, ParseRaw<uint64_t>(table.keys(), "tables.keys"));
    MEDLEY_ASSIGN_OR_RETURN(g.values, ParseRaw<float>(table.gradients(), "tables.gradients"));
    gradients.push_back(std::move(g));
  }
  return gradients;
}

}  // namespace

class ParameterServer::Service final : public pb::ParameterServerService::Service {
 public:
  Service(std::string token, const base::Clock& clock) : token_(std::move(token)), clock_(clock) {}

  void Install(std::shared_ptr<ShardGeneration> shard) {
    std::shared_ptr<ShardGeneration> old;
    {
      base::MutexLock lock(mutex_);
      old = std::exchange(shards_[shard->generation()], shard);
    }
    if (old != nullptr) old->Close();
  }

  std::shared_ptr<ShardGeneration> Find(int64_t generation) const {
    base::MutexLock lock(mutex_);
    const auto it = shards_.find(generation);
    return it == shards_.end() ? nullptr : it->second;
  }

  void Retain(int64_t first, int64_t last) {
    std::vector<std::shared_ptr<ShardGeneration>> removed;
    {
      base::MutexLock lock(mutex_);
      for (auto it = shards_.begin(); it != shards_.end();) {
        const bool keep = it->first >= first && it->first <= last;
        if (!keep) removed.push_back(it->second);
        it = keep ? std::next(it) : shards_.erase(it);
      }
    }
    for (const auto& shard : removed) shard->Close();
  }

  grpc::Status Pull(grpc::ServerContext* context, const pb::PullRequest* request, pb::PullResponse* response) override {
    if (grpc::Status status = rpc::Authorize(*context, token_); !status.ok()) return status;
    return rpc::ToGrpc(DoPull(*request, *response));
  }

  grpc::Status Push(grpc::ServerContext* context, const pb::PushRequest* request, pb::PushResponse*) override {
    if (grpc::Status status = rpc::Authorize(*context, token_); !status.ok()) return status;
    return rpc::ToGrpc(DoPush(*request));
  }

  grpc::Status ExportRows(grpc::ServerContext* context, const pb::ExportRowsRequest* request,
                          grpc::ServerWriter<pb::ExportRowsResponse>* writer) override {
    if (grpc::Status status = rpc::Authorize(*context, token_); !status.ok()) return status;
    if (request->shards() <= 0)
      return rpc::ToGrpc(
          base::InvalidArgument("exporting rows: the number of shards is {}, it must be above 0", request->shards()));
    const auto shard = Find(request->source_generation());
    if (shard == nullptr) return rpc::ToGrpc(NoGeneration(request->source_generation()));
    const auto wanted = [&](int table, uint64_t key) {
      return ShardOf(table, key, request->shards()) == request->shard();
    };
    const absl::Status status = shard->store().Export(request->since_step(), wanted, [&](const RowPiece& piece) {
      pb::ExportRowsResponse response;
      response.set_table(piece.table);
      AppendRaw(std::span<const uint64_t>(piece.keys), *response.mutable_keys());
      AppendRaw(std::span<const float>(piece.values), *response.mutable_values());
      response.set_at_step(piece.at_step);
      response.set_state_samples(piece.state_samples);
      return writer->Write(response) ? absl::OkStatus()
                                     : base::Cancelled("exporting rows: the receiver closed the stream");
    });
    return rpc::ToGrpc(status);
  }

 private:
  static absl::Status NoGeneration(int64_t generation) {
    return base::FailedPrecondition("this parameter server has no shard of generation {}", generation);
  }

  absl::Status DoPull(const pb::PullRequest& request, pb::PullResponse& response) {
    const auto shard = Find(request.generation());
    if (shard == nullptr) return NoGeneration(request.generation());
    MEDLEY_RETURN_IF_ERROR(shard->WaitForPull(request.step(), {}, clock_.Steady()));
    for (const pb::TableKeys& table : request.tables()) {
      MEDLEY_ASSIGN_OR_RETURN(const std::vector<uint64_t> keys, ParseRaw<uint64_t>(table.keys(), "tables.keys"));
      std::vector<float> rows;
      MEDLEY_RETURN_IF_ERROR(shard->store().Read(table.table(), keys, rows));
      pb::TableRows& out = *response.add_tables();
      out.set_table(table.table());
      AppendRaw(std::span<const float>(rows), *out.mutable_rows());
    }
    return absl::OkStatus();
  }

  absl::Status DoPush(const pb::PushRequest& request) {
    const auto shard = Find(request.generation());
    if (shard == nullptr) return NoGeneration(request.generation());
    MEDLEY_ASSIGN_OR_RETURN(std::vector<Gradients> gradients, ParseGradients(request));
    return shard->Push(request.step(), request.trainer(), std::move(gradients), request.samples());
  }

  const std::string token_;
  const base::Clock& clock_;
  mutable base::Mutex mutex_;
  std::map<int64_t, std::shared_ptr<ShardGeneration>> shards_ ABSL_GUARDED_BY(mutex_);
};

ParameterServer::ParameterServer(std::string token, const base::Clock& clock)
    : service_(std::make_unique<Service>(std::move(token), clock)) {}
ParameterServer::~ParameterServer() = default;
grpc::Service& ParameterServer::service() { return *service_; }
void ParameterServer::Install(std::shared_ptr<ShardGeneration> shard) { service_->Install(std::move(shard)); }
std::shared_ptr<ShardGeneration> ParameterServer::Find(int64_t generation) const { return service_->Find(generation); }
void ParameterServer::Retain(int64_t first, int64_t last) { service_->Retain(first, last); }

}  // namespace medley::worker
