#include "worker/ps/parameter_server.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <map>
#include <thread>
#include <utility>
#include <vector>

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

// Answers one pull. Lives until gRPC calls OnDone, which follows the answer and the end of OnCancel.
class PullReactor final : public grpc::ServerUnaryReactor {
 public:
  PullReactor(std::shared_ptr<ShardGeneration> shard, const pb::PullRequest& request, pb::PullResponse& response)
      : shard_(std::move(shard)), request_(request), response_(response) {}

  // Called once, before the method's handler returns: until then gRPC does not call OnCancel or OnDone.
  void Start(base::SteadyTime now, base::SteadyTime deadline) {
    pull_ = shard_->Pull(request_.step(), now, deadline, [this](absl::Status ready) {
      Finish(rpc::ToGrpc(ready.ok() ? ReadRows(shard_->store(), request_, response_) : std::move(ready)));
    });
  }
  void OnCancel() override { shard_->Cancel(pull_); }
  void OnDone() override { delete this; }

 private:
  static absl::Status ReadRows(RowStore& store, const pb::PullRequest& request, pb::PullResponse& response) {
    for (const pb::TableKeys& table : request.tables()) {
      MEDLEY_ASSIGN_OR_RETURN(const std::vector<uint64_t> keys, ParseRaw<uint64_t>(table.keys(), "tables.keys"));
      std::vector<float> rows;
      MEDLEY_RETURN_IF_ERROR(store.Read(table.table(), keys, rows));
      pb::TableRows& out = *response.add_tables();
      out.set_table(table.table());
      AppendRaw(std::span<const float>(rows), *out.mutable_rows());
    }
    return absl::OkStatus();
  }

  const std::shared_ptr<ShardGeneration> shard_;
  const pb::PullRequest& request_;
  pb::PullResponse& response_;
  int64_t pull_ = 0;
};

// Takes one push. Replies to the trainer first and then answers the pulls that waited for it.
class PushReactor final : public grpc::ServerUnaryReactor {
 public:
  void Start(ShardGeneration& shard, const pb::PushRequest& request, std::vector<Gradients> gradients) {
    Finish(rpc::ToGrpc(shard.Push(request.step(), request.trainer(), std::move(gradients), request.samples(),
                                  {request.part(), std::max(1, request.parts())}, &ready_)));
  }
  void OnDone() override {
    ShardGeneration::Call(std::move(ready_));
    delete this;
  }

 private:
  ShardGeneration::Answers ready_;
};

grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext& context, const grpc::Status& status) {
  grpc::ServerUnaryReactor* reactor = context.DefaultReactor();
  reactor->Finish(status);
  return reactor;
}

// The time at which a pull that still waits gets an error that says what it waits for: shortly before the caller's own
// deadline, after which it would get no answer of this server at all.
base::SteadyTime AnswerBy(const grpc::CallbackServerContext& context, base::SteadyTime now) {
  const gpr_timespec deadline = gpr_convert_clock_type(context.raw_deadline(), GPR_CLOCK_MONOTONIC);
  const gpr_timespec left = gpr_time_sub(deadline, gpr_now(GPR_CLOCK_MONOTONIC));
  if (left.tv_sec > 365 * 24 * 3600) return base::SteadyTime::max();  // the caller set none
  const base::nanoseconds nanos = base::seconds(left.tv_sec) + base::nanoseconds(left.tv_nsec);
  return now + nanos - std::min<base::nanoseconds>(nanos / 10, base::milliseconds(500));
}

using Callbacks = pb::ParameterServerService::WithCallbackMethod_Pull<
    pb::ParameterServerService::WithCallbackMethod_Push<pb::ParameterServerService::Service>>;

}  // namespace

// Pulls and pushes use gRPC's callback API, so that waiting pulls occupy no threads. Exports use threads of the server:
// each is a long loop.
class ParameterServer::Service final : public Callbacks {
 public:
  Service(std::string token, const base::Clock& clock)
      : token_(std::move(token)), clock_(clock), expiry_([this](std::stop_token stop) { ExpirePulls(stop); }) {}

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

  grpc::ServerUnaryReactor* Pull(grpc::CallbackServerContext* context, const pb::PullRequest* request,
                                 pb::PullResponse* response) override {
    if (grpc::Status status = rpc::Authorize(*context, token_); !status.ok()) return Answer(*context, status);
    auto shard = Find(request->generation());
    if (shard == nullptr) return Answer(*context, rpc::ToGrpc(NoGeneration(request->generation())));
    auto* const reactor = new PullReactor(std::move(shard), *request, *response);  // NOLINT: OnDone deletes it
    const base::SteadyTime now = clock_.Steady();
    reactor->Start(now, AnswerBy(*context, now));
    return reactor;
  }

  grpc::ServerUnaryReactor* Push(grpc::CallbackServerContext* context, const pb::PushRequest* request,
                                 pb::PushResponse*) override {
    grpc::Status status = rpc::Authorize(*context, token_);
    if (!status.ok()) return Answer(*context, status);
    const auto shard = Find(request->generation());
    if (shard == nullptr) return Answer(*context, rpc::ToGrpc(NoGeneration(request->generation())));
    auto gradients = ParseGradients(*request);
    if (!gradients.ok()) return Answer(*context, rpc::ToGrpc(gradients.status()));
    auto* const reactor = new PushReactor;  // NOLINT: OnDone deletes it
    reactor->Start(*shard, *request, *std::move(gradients));
    return reactor;
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

  void ExpirePulls(std::stop_token stop) {
    constexpr base::nanoseconds kInterval = base::milliseconds(50);
    base::CondVar never;
    while (!stop.stop_requested()) {
      std::vector<std::shared_ptr<ShardGeneration>> shards;
      {
        base::MutexLock lock(mutex_);
        never.WaitFor(mutex_, stop, kInterval, [] { return false; });
        for (const auto& [generation, shard] : shards_) shards.push_back(shard);
      }
      for (const auto& shard : shards) shard->Expire(clock_.Steady());
    }
  }

  const std::string token_;
  const base::Clock& clock_;
  mutable base::Mutex mutex_;
  std::map<int64_t, std::shared_ptr<ShardGeneration>> shards_ ABSL_GUARDED_BY(mutex_);
  std::jthread expiry_;  // last member: stops and joins before the others are destroyed
};

ParameterServer::ParameterServer(std::string token, const base::Clock& clock)
    : service_(std::make_unique<Service>(std::move(token), clock)) {}
ParameterServer::~ParameterServer() = default;
grpc::Service& ParameterServer::service() { return *service_; }
void ParameterServer::Install(std::shared_ptr<ShardGeneration> shard) { service_->Install(std::move(shard)); }
std::shared_ptr<ShardGeneration> ParameterServer::Find(int64_t generation) const { return service_->Find(generation); }
void ParameterServer::Retain(int64_t first, int64_t last) { service_->Retain(first, last); }

}  // namespace medley::worker
