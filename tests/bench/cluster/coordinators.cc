#include "tests/bench/cluster/coordinators.h"

#include <grpcpp/grpcpp.h>

#include <map>
#include <set>
#include <utility>

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "medley/job/v1/coordinator.grpc.pb.h"

namespace medley::bench {
namespace {

namespace pb = job::v1;

constexpr double kThroughput = 50'000;
constexpr int64_t kSamples = 1'000'000'000;

pb::Observation Training(int64_t generation) {
  pb::Observation out;
  out.set_phase(pb::JOB_PHASE_TRAINING);
  out.set_generation(generation);
  out.set_plan_generation(generation);
  out.set_step(1);
  out.set_samples_done(1);
  out.set_samples_total(kSamples);
  out.set_throughput(kThroughput);
  return out;
}

std::string TokenOf(const grpc::CallbackServerContext& context) {
  const auto found = context.client_metadata().find("authorization");
  return found == context.client_metadata().end() ? "" : std::string(found->second.data(), found->second.size());
}

// One open stream of observations. It deletes itself when gRPC has finished it.
class Watcher final : public grpc::ServerWriteReactor<pb::WatchObservationsResponse> {
 public:
  explicit Watcher(std::function<void(Watcher*)> on_done) : on_done_(std::move(on_done)) {}

  void Send(const pb::Observation& observation) {
    base::MutexLock lock(mutex_);
    *next_.mutable_observation() = observation;
    waiting_ = true;
    Write();
  }

  void OnWriteDone(bool ok) override {
    base::MutexLock lock(mutex_);
    writing_ = false;
    ended_ = ended_ || !ok;
    Write();
  }
  void OnCancel() override {
    base::MutexLock lock(mutex_);
    ended_ = true;
    Write();
  }
  void OnDone() override {
    on_done_(this);
    delete this;
  }

 private:
  void Write() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || finished_) return;
    if (ended_) {
      finished_ = true;
      Finish(grpc::Status::CANCELLED);
    } else if (waiting_) {
      writing_ = true;
      waiting_ = false;
      response_ = next_;
      StartWrite(&response_);
    }
  }

  const std::function<void(Watcher*)> on_done_;
  base::Mutex mutex_;
  pb::WatchObservationsResponse response_ ABSL_GUARDED_BY(mutex_);
  pb::WatchObservationsResponse next_ ABSL_GUARDED_BY(mutex_);
  bool waiting_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

class Coordinators::Service final : public pb::CoordinatorService::CallbackService {
 public:
  Service(base::Clock& clock, OnPlan on_plan) : clock_(clock), on_plan_(std::move(on_plan)) {}

  grpc::ServerUnaryReactor* ApplyPlan(grpc::CallbackServerContext* context, const pb::ApplyPlanRequest* request,
                                      pb::ApplyPlanResponse* response) override {
    const base::SteadyTime now = clock_.Steady();
    const int64_t generation = request->plan().generation();
    response->set_generation(generation);
    bool is_new = false;
    {
      base::MutexLock lock(mutex_);
      Job& job = jobs_[TokenOf(*context)];
      is_new = generation > job.generation;
      job.generation = generation;
      for (Watcher* watcher : job.watchers) watcher->Send(Training(generation));
    }
    if (is_new && request->slots_size() > 0) on_plan_(request->slots(0).member(), generation, now);
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  grpc::ServerWriteReactor<pb::WatchObservationsResponse>* WatchObservations(
      grpc::CallbackServerContext* context, const pb::WatchObservationsRequest*) override {
    const std::string token = TokenOf(*context);
    auto* watcher = new Watcher([this, token](Watcher* done) {
      base::MutexLock lock(mutex_);
      jobs_[token].watchers.erase(done);
    });
    base::MutexLock lock(mutex_);
    Job& job = jobs_[token];
    job.watchers.insert(watcher);
    if (job.generation > 0) watcher->Send(Training(job.generation));
    return watcher;
  }

 private:
  struct Job {
    int64_t generation = 0;
    std::set<Watcher*> watchers;
  };

  base::Clock& clock_;
  const OnPlan on_plan_;
  base::Mutex mutex_;
  std::map<std::string, Job> jobs_ ABSL_GUARDED_BY(mutex_);  // by token
};

Coordinators::Coordinators() = default;
Coordinators::~Coordinators() = default;

absl::StatusOr<std::unique_ptr<Coordinators>> Coordinators::Start(const std::string& host, int port, base::Clock& clock,
                                                                  OnPlan on_plan) {
  std::unique_ptr<Coordinators> out(new Coordinators);
  out->service_ = std::make_unique<Service>(clock, std::move(on_plan));
  MEDLEY_ASSIGN_OR_RETURN(out->server_, rpc::Server::Start({.host = host, .port = port}, {out->service_.get()}));
  return out;
}

}  // namespace medley::bench
