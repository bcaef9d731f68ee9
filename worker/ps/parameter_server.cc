#include "worker/ps/parameter_server.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <functional>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "common/rpc/context.h"
#include "common/rpc/status.h"
#include "medley/job/v1/parameter_server.grpc.pb.h"
#include "worker/ps/half_floats.h"
#include "worker/ps/pull_rows.h"
#include "worker/ps/sharding.h"
#include "worker/ps/wire.h"

namespace medley::worker {
namespace {

namespace pb = ::medley::job::v1;

constexpr base::nanoseconds kReplayTime = base::seconds(120);  // for what one trainer sends again, at most

// The gradients lie in the request, which they keep, unless they are of 16 bits.
absl::StatusOr<std::vector<Gradients>> GradientsOf(const std::shared_ptr<const pb::PushRequest>& request) {
  std::vector<Gradients> gradients;
  MEDLEY_ASSIGN_OR_RETURN(const WireFormat format, WireFormatOf(request->format()));
  for (const pb::TableGradients& table : request->tables()) {
    MEDLEY_ASSIGN_OR_RETURN(const auto keys, ViewRaw<uint64_t>(table.keys(), "tables.keys"));
    if (format != WireFormat::kFloat32) {
      MEDLEY_ASSIGN_OR_RETURN(const auto halves, ViewRaw<uint16_t>(table.gradients(), "tables.gradients"));
      std::vector<float> values(halves.size());
      DecodeFloats(format, WireValues::kGradients, table.gradients().data(), values);
      gradients.push_back(Gradients::Of(table.table(), std::vector(keys.begin(), keys.end()), std::move(values)));
      continue;
    }
    MEDLEY_ASSIGN_OR_RETURN(const auto values, ViewRaw<float>(table.gradients(), "tables.gradients"));
    gradients.push_back({.table = table.table(), .keys = keys, .values = values, .keeper = request});
  }
  return gradients;
}

// One call, whose token has been checked, with one request and one response. Lives until gRPC calls OnDone, which
// follows the answer and the end of every other function here.
template <typename Request, typename Response>
class OneRequest : public grpc::ServerBidiReactor<Request, Response> {
 public:
  OneRequest() { this->StartRead(request_.get()); }
  void OnReadDone(bool received) final {
    if (received) return Handle(*request_);
    Reply(base::InvalidArgument("the call ended without a request"));
  }
  void OnDone() override { delete this; }

 protected:
  virtual void Handle(const Request& request) = 0;
  // Call it exactly once.
  void Reply(const absl::Status& status) {
    if (status.ok()) {
      this->StartWriteAndFinish(&response_, {}, grpc::Status::OK);
    } else {
      this->Finish(rpc::ToGrpc(status));
    }
  }
  const std::shared_ptr<Request>& request() const { return request_; }
  Response& response() { return response_; }

 private:
  const std::shared_ptr<Request> request_ = std::make_shared<Request>();
  Response response_;
};

// A call that is refused before its request is read.
template <typename Request, typename Response>
class Refusal final : public grpc::ServerBidiReactor<Request, Response> {
 public:
  explicit Refusal(const grpc::Status& status) { this->Finish(status); }
  void OnDone() override { delete this; }
};

// The time at which a pull that still waits gets an error that says what it waits for: shortly before the caller's own
// deadline, after which it would get no answer of this server at all.
base::SteadyTime AnswerBy(const grpc::ServerContextBase& context, base::SteadyTime now) {
  const gpr_timespec deadline = gpr_convert_clock_type(context.raw_deadline(), GPR_CLOCK_MONOTONIC);
  const gpr_timespec left = gpr_time_sub(deadline, gpr_now(GPR_CLOCK_MONOTONIC));
  if (left.tv_sec > 365 * 24 * 3600) return base::SteadyTime::max();  // the caller set none
  const base::nanoseconds nanos = base::seconds(left.tv_sec) + base::nanoseconds(left.tv_nsec);
  return now + nanos - std::min<base::nanoseconds>(nanos / 10, base::milliseconds(500));
}

using FindShard = std::function<absl::StatusOr<std::shared_ptr<ShardGeneration>>(int64_t generation)>;

class PullReactor final : public OneRequest<pb::PullRequest, pb::PullResponse> {
 public:
  PullReactor(const grpc::CallbackServerContext& context, FindShard find, const base::Clock& clock)
      : context_(context), find_(std::move(find)), clock_(clock) {}

  // gRPC may call it at any time, also while Handle runs.
  void OnCancel() override {
    std::shared_ptr<ShardGeneration> shard;
    int64_t pull = 0;
    {
      base::MutexLock lock(mutex_);
      cancelled_ = true;
      shard = shard_;
      pull = pull_;
    }
    if (shard != nullptr) shard->Cancel(pull);
  }

 private:
  void Handle(const pb::PullRequest& request) override {
    const auto shard = find_(request.generation());
    if (!shard.ok()) return Reply(shard.status());
    if (request.ahead()) return Reply(ReadAhead(**shard));
    const base::SteadyTime now = clock_.Steady();
    const int64_t pull = (*shard)->Pull(request.step(), now, AnswerBy(context_, now),
                                        [this, store = (*shard)->shared_store()](const absl::Status& ready) {
                                          Reply(ready.ok() ? ReadRows(*store) : ready);
                                        });
    if (pull == 0) return;
    Expect((*shard)->store());
    bool cancelled = false;
    {
      base::MutexLock lock(mutex_);
      shard_ = *shard;
      pull_ = pull;
      cancelled = cancelled_;
    }
    if (cancelled) (*shard)->Cancel(pull);
  }

  // The pull waits for its step: meanwhile its cold rows can be read.
  void Expect(RowStore& store) {
    if (!store.HasTiers()) return;
    for (const pb::TableKeys& table : request()->tables()) {
      const auto keys = ViewRaw<uint64_t>(table.keys(), "tables.keys");
      if (keys.ok()) store.Expect(table.table(), std::vector(keys->begin(), keys->end()));
    }
  }

  // The step is read before the rows: these may be newer.
  absl::Status ReadAhead(const ShardGeneration& shard) {
    RowStore& store = *shard.shared_store();
    MEDLEY_ASSIGN_OR_RETURN(const int64_t at, shard.StepAhead(request()->step()));
    const bool given = at >= 0 && store.KnowsChanges();
    response().set_at(given ? at : -1);
    return given ? ReadRows(store) : absl::OkStatus();
  }

  absl::Status ReadRows(RowStore& store) { return AnswerPull(*request(), store, response()); }

  const grpc::CallbackServerContext& context_;
  const FindShard find_;
  const base::Clock& clock_;
  base::Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<ShardGeneration> shard_ ABSL_GUARDED_BY(mutex_);  // of a pull that waits
  int64_t pull_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Takes one push. Replies to the trainer first and then answers the pulls that waited for it.
class PushReactor final : public OneRequest<pb::PushRequest, pb::PushResponse> {
 public:
  explicit PushReactor(FindShard find) : find_(std::move(find)) {}

  void OnDone() override {
    ShardGeneration::Call(std::move(ready_));
    OneRequest::OnDone();
  }

 private:
  void Handle(const pb::PushRequest& request) override {
    const auto shard = find_(request.generation());
    if (!shard.ok()) return Reply(shard.status());
    auto gradients = GradientsOf(this->request());
    if (!gradients.ok()) return Reply(gradients.status());
    Reply((*shard)->Push(request.step(), request.trainer(), *std::move(gradients), request.samples(),
                         {request.part(), std::max(1, request.parts())}, &ready_));
  }

  const FindShard find_;
  ShardGeneration::Answers ready_;
};

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
    if (last >= first) return;
    {
      base::MutexLock lock(mutex_);
      closed_ = true;
    }
    SetReplay(0, nullptr);
  }

  grpc::ServerBidiReactor<pb::PullRequest, pb::PullResponse>* Pull(grpc::CallbackServerContext* context) override {
    const grpc::Status status = rpc::Authorize(*context, token_);
    if (!status.ok()) return new Refusal<pb::PullRequest, pb::PullResponse>(status);  // NOLINT: OnDone deletes it
    return new PullReactor(*context, Finder(), clock_);                               // NOLINT: OnDone deletes it
  }

  grpc::ServerBidiReactor<pb::PushRequest, pb::PushResponse>* Push(grpc::CallbackServerContext* context) override {
    const grpc::Status status = rpc::Authorize(*context, token_);
    if (!status.ok()) return new Refusal<pb::PushRequest, pb::PushResponse>(status);  // NOLINT: OnDone deletes it
    return new PushReactor(Finder());                                                 // NOLINT: OnDone deletes it
  }

  // Each trainer's pushes are a long loop, as an export. Its thread waits while other trainers are behind.
  grpc::Status Replay(grpc::ServerContext* context, grpc::ServerReader<pb::ReplayRequest>* stream,
                      pb::ReplayResponse*) override {
    if (grpc::Status status = rpc::Authorize(*context, token_); !status.ok()) return status;
    const WaitLimit limit{{}, std::min(AnswerBy(*context, clock_.Steady()), clock_.Steady() + kReplayTime)};
    std::shared_ptr<PushReplay> replay;
    for (auto request = std::make_shared<pb::ReplayRequest>(); stream->Read(request.get());
         request = std::make_shared<pb::ReplayRequest>()) {
      if (replay == nullptr) replay = AwaitReplay(request->generation(), limit);
      if (replay == nullptr) {
        return rpc::ToGrpc(base::FailedPrecondition("this parameter server rebuilds no rows for generation {}",
                                                    request->generation()));
      }
      const std::shared_ptr<const pb::PushRequest> push(request, &request->push());
      absl::StatusOr<std::vector<Gradients>> gradients = GradientsOf(push);
      if (!gradients.ok()) return rpc::ToGrpc(gradients.status());
      const absl::Status taken = replay->Take({.step = push->step(),
                                               .trainer = push->trainer(),
                                               .trainers = request->trainers(),
                                               .samples = push->samples(),
                                               .part = {push->part(), std::max(1, push->parts())},
                                               .gradients = *std::move(gradients)},
                                              limit);
      if (!taken.ok()) return rpc::ToGrpc(taken);
    }
    if (replay == nullptr) return rpc::ToGrpc(base::InvalidArgument("replaying pushes: the call has no request"));
    return grpc::Status::OK;
  }

  void SetReplay(int64_t generation, std::shared_ptr<PushReplay> replay) {
    std::shared_ptr<PushReplay> old;
    {
      base::MutexLock lock(mutex_);
      old = std::exchange(replay_, std::move(replay));
      replays_ = replay_ == nullptr ? 0 : generation;
      replay_changed_.NotifyAll();
    }
    if (old != nullptr) old->Stop();
  }

  grpc::Status ExportRows(grpc::ServerContext* context,
                          grpc::ServerReaderWriter<pb::ExportRowsResponse, pb::ExportRowsRequest>* stream) override {
    if (grpc::Status status = rpc::Authorize(*context, token_); !status.ok()) return status;
    pb::ExportRowsRequest request;
    if (!stream->Read(&request)) return rpc::ToGrpc(base::InvalidArgument("exporting rows: the call has no request"));
    if (request.shards() <= 0)
      return rpc::ToGrpc(
          base::InvalidArgument("exporting rows: the number of shards is {}, it must be above 0", request.shards()));
    const auto shard = Finder()(request.source_generation());
    if (!shard.ok()) return rpc::ToGrpc(shard.status());
    const auto wanted = [&](int table, uint64_t key) {
      return ShardOf(table, key, request.shards()) == request.shard();
    };
    const absl::Status status = (*shard)->store().Export(request.since_step(), wanted, [&](const RowPiece& piece) {
      pb::ExportRowsResponse response;
      response.set_table(piece.table);
      AppendRaw(std::span<const uint64_t>(piece.keys), *response.mutable_keys());
      AppendRaw(std::span<const float>(piece.values), *response.mutable_values());
      response.set_at_step(piece.at_step);
      response.set_state_samples(piece.state_samples);
      return stream->Write(response) ? absl::OkStatus()
                                     : base::Cancelled("exporting rows: the receiver closed the stream");
    });
    return rpc::ToGrpc(status);
  }

 private:
  FindShard Finder() const {
    return [this](int64_t generation) -> absl::StatusOr<std::shared_ptr<ShardGeneration>> {
      if (auto shard = Find(generation)) return shard;
      return base::FailedPrecondition("this parameter server has no shard of generation {}", generation);
    };
  }

  // The trainers may be faster than this server, which reads a checkpoint first. Null: not in time, or it takes a newer
  // generation's.
  std::shared_ptr<PushReplay> AwaitReplay(int64_t generation, const WaitLimit& limit) {
    base::MutexLock lock(mutex_);
    const auto there = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return closed_ || replays_ >= generation; };
    replay_changed_.WaitUntil(mutex_, limit.stop, limit.deadline, there);
    return replays_ == generation ? replay_ : nullptr;
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
  base::CondVar replay_changed_;
  int64_t replays_ ABSL_GUARDED_BY(mutex_) = 0;  // the generation of replay_; 0: null
  std::shared_ptr<PushReplay> replay_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;  // nothing is rebuilt any more
  std::jthread expiry_;                          // last member: stops and joins before the others are destroyed
};

ParameterServer::ParameterServer(std::string token, const base::Clock& clock)
    : service_(std::make_unique<Service>(std::move(token), clock)) {}
ParameterServer::~ParameterServer() = default;
grpc::Service& ParameterServer::service() { return *service_; }
void ParameterServer::Install(std::shared_ptr<ShardGeneration> shard) { service_->Install(std::move(shard)); }
std::shared_ptr<ShardGeneration> ParameterServer::Find(int64_t generation) const { return service_->Find(generation); }
void ParameterServer::Retain(int64_t first, int64_t last) { service_->Retain(first, last); }
void ParameterServer::SetReplay(int64_t generation, std::shared_ptr<PushReplay> replay) {
  service_->SetReplay(generation, std::move(replay));
}

}  // namespace medley::worker
