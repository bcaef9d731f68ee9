#include "worker/coordinator/server/services.h"

#include <grpcpp/grpcpp.h>

#include <thread>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/rpc/context.h"
#include "common/rpc/status.h"
#include "medley/job/v1/coordinator.grpc.pb.h"
#include "worker/coordinator/server/engine.h"

namespace medley::worker {
namespace {

using grpc::ServerContext;

constexpr int kMaxKeys = 100000;

class CoordinatorService final : public job::v1::CoordinatorService::Service {
 public:
  CoordinatorService(Engine& engine, std::string token) : engine_(engine), token_(std::move(token)) {}

  grpc::Status ApplyPlan(ServerContext* context, const job::v1::ApplyPlanRequest* request,
                         job::v1::ApplyPlanResponse* response) override {
    if (grpc::Status status = rpc::Authorize(*context, token_); !status.ok()) return status;
    const absl::StatusOr<int64_t> generation = engine_.ApplyPlan(*request);
    if (generation.ok()) response->set_generation(*generation);
    return rpc::ToGrpc(generation.status());
  }

  // Streams the latest observation at once, then each change, at most one per second. Ends after the job's last one.
  grpc::Status WatchObservations(ServerContext* context, const job::v1::WatchObservationsRequest*,
                                 grpc::ServerWriter<job::v1::WatchObservationsResponse>* writer) override {
    if (grpc::Status status = rpc::Authorize(*context, token_); !status.ok()) return status;
    const std::stop_token stop = engine_.stop_token();
    base::SystemClock clock;  // real time, because the interval protects the network; the job's clock may be simulated
    std::string last;
    base::SteadyTime next{};
    while (!stop.stop_requested() && !context->IsCancelled()) {
      const bool over = engine_.over();
      if (over || clock.Steady() >= next) {
        job::v1::WatchObservationsResponse response;
        *response.mutable_observation() = engine_.Observe();
        if (engine_.gave_up()) break;
        job::v1::Observation plain = response.observation();
        plain.clear_at();
        if (std::string bytes = plain.SerializeAsString(); bytes != last || over) {
          if (!writer->Write(response)) return grpc::Status::CANCELLED;
          last = std::move(bytes);
          next = clock.Steady() + base::seconds(1);
        }
      }
      if (over) {
        engine_.FinalObservationRead();
        return grpc::Status::OK;
      }
      clock.SleepFor(base::milliseconds(50), stop);
    }
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the coordinator is stopping");
  }

  grpc::Status Drain(ServerContext* context, const job::v1::DrainRequest* request, job::v1::DrainResponse*) override {
    if (grpc::Status status = rpc::Authorize(*context, token_); !status.ok()) return status;
    return rpc::ToGrpc(engine_.Drain({request->members().begin(), request->members().end()}, request->leader_term()));
  }

  grpc::Status Suspend(ServerContext* context, const job::v1::SuspendRequest* request,
                       job::v1::SuspendResponse* response) override {
    if (grpc::Status status = rpc::Authorize(*context, token_); !status.ok()) return status;
    const absl::StatusOr<int64_t> step =
        engine_.Suspend(request->reason(), request->leader_term(), [context] { return context->IsCancelled(); });
    if (step.ok()) response->set_step(*step);
    return rpc::ToGrpc(step.status());
  }

  grpc::Status HandOver(ServerContext* context, const job::v1::HandOverRequest* request,
                        job::v1::HandOverResponse*) override {
    if (grpc::Status status = rpc::Authorize(*context, token_); !status.ok()) return status;
    return rpc::ToGrpc(engine_.HandOver(*request, [context] { return context->IsCancelled(); }));
  }

 private:
  Engine& engine_;
  const std::string token_;
};

class MemberService final : public job::v1::MemberService::Service {
 public:
  MemberService(Engine& engine, std::string token) : engine_(engine), token_(std::move(token)) {}

  grpc::Status Session(ServerContext* context,
                       grpc::ServerReaderWriter<job::v1::SessionResponse, job::v1::SessionRequest>* stream) override {
    if (grpc::Status status = rpc::Authorize(*context, token_); !status.ok()) return status;
    job::v1::SessionRequest message;
    if (!stream->Read(&message) || !message.has_hello() || message.hello().member().empty() ||
        message.hello().instance().empty()) {
      return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT,
                          "a session must start with Hello that names member and instance");
    }
    const auto session = std::make_shared<worker::Session>(message.hello().member(), message.hello().instance(),
                                                           [context] { context->TryCancel(); });
    std::jthread writer([session, stream](std::stop_token stop) {
      while (std::optional<job::v1::SessionResponse> order = session->Pop(stop)) {
        if (!stream->Write(*order)) return session->Cancel();
      }
    });
    engine_.Open(session, message);
    while (stream->Read(&message)) {
      if (!message.has_hello()) engine_.Receive(session, message);
    }
    engine_.Close(session);
    session->Detach();
    writer.request_stop();
    writer.join();
    return grpc::Status::OK;
  }

  grpc::Status PutRendezvous(ServerContext* context, const job::v1::PutRendezvousRequest* request,
                             job::v1::PutRendezvousResponse*) override {
    if (grpc::Status status = rpc::Authorize(*context, token_); !status.ok()) return status;
    return rpc::ToGrpc(engine_.rendezvous().Put(request->generation(), request->key(), request->value()));
  }

  grpc::Status GetRendezvous(ServerContext* context, const job::v1::GetRendezvousRequest* request,
                             job::v1::GetRendezvousResponse* response) override {
    if (grpc::Status status = rpc::Authorize(*context, token_); !status.ok()) return status;
    if (request->keys_size() > kMaxKeys)
      return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "rendezvous: too many keys in one request");
    absl::StatusOr<std::vector<std::string>> values =
        engine_.rendezvous().Get(request->generation(), {request->keys().begin(), request->keys().end()},
                                 engine_.stop_token(), [context] { return context->IsCancelled(); });
    if (!values.ok()) return rpc::ToGrpc(values.status());
    for (std::string& value : *values) response->add_values(std::move(value));
    return grpc::Status::OK;
  }

 private:
  Engine& engine_;
  const std::string token_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeCoordinatorService(Engine& engine, std::string token) {
  return std::make_unique<CoordinatorService>(engine, std::move(token));
}

std::unique_ptr<grpc::Service> MakeMemberService(Engine& engine, std::string token) {
  return std::make_unique<MemberService>(engine, std::move(token));
}

}  // namespace medley::worker
