#include "worker/coordinator/server/services.h"

#include <grpcpp/grpcpp.h>

#include <thread>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/rpc/context.h"
#include "common/rpc/status.h"
#include "common/rpc/utf8_strings.h"
#include "medley/job/v1/coordinator.grpc.pb.h"
#include "worker/coordinator/server/engine.h"

namespace medley::worker {
namespace {

using grpc::ServerContext;
using grpc::ServerSplitStreamer;
using grpc::ServerUnaryStreamer;

constexpr int kMaxKeys = 100000;

// Serves a method with one request and one response: checks the token, and only then reads the request.
template <typename Request, typename Response, typename Handle>
grpc::Status Serve(const ServerContext& context, const std::string& token, ServerUnaryStreamer<Request, Response>& call,
                   const Handle& handle) {
  if (grpc::Status status = rpc::Authorize(context, token); !status.ok()) return status;
  Request request;
  if (!call.Read(&request)) return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "the call has no request");
  Response response;
  const absl::Status status = handle(request, response);
  if (status.ok()) call.Write(response);
  return rpc::ToGrpc(status);
}

// gRPC reads the request of a usual unary method before the service sees the token. For a StreamedService it reads none
// until the service does, so that a caller without the token cannot make this process keep large messages. Callers
// notice no difference.
class CoordinatorService final : public job::v1::CoordinatorService::StreamedService {
 public:
  CoordinatorService(Engine& engine, std::string token) : engine_(engine), token_(std::move(token)) {}

  grpc::Status StreamedApplyPlan(
      ServerContext* context,
      ServerUnaryStreamer<job::v1::ApplyPlanRequest, job::v1::ApplyPlanResponse>* call) override {
    return Serve(*context, token_, *call,
                 [&](const job::v1::ApplyPlanRequest& request, job::v1::ApplyPlanResponse& response) {
                   const absl::StatusOr<int64_t> generation = engine_.ApplyPlan(request);
                   if (generation.ok()) response.set_generation(*generation);
                   return generation.status();
                 });
  }

  // Streams the latest observation at once, then each change, at most one per second. Ends after the job's last one.
  grpc::Status StreamedWatchObservations(
      ServerContext* context,
      ServerSplitStreamer<job::v1::WatchObservationsRequest, job::v1::WatchObservationsResponse>* writer) override {
    if (grpc::Status status = rpc::Authorize(*context, token_); !status.ok()) return status;
    job::v1::WatchObservationsRequest request;
    if (!writer->Read(&request)) return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "the call has no request");
    const std::stop_token stop = engine_.stop_token();
    base::SystemClock clock;  // real time, because the interval protects the network; the job's clock may be simulated
    std::string last;
    base::SteadyTime next{};
    while (!stop.stop_requested() && !context->IsCancelled()) {
      const bool over = engine_.over();
      if (over || clock.Steady() >= next) {
        job::v1::WatchObservationsResponse response;
        *response.mutable_observation() = engine_.Observe();
        rpc::EscapeStrings(response);
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
        // A client that has left has not read it.
        if (!context->IsCancelled()) engine_.FinalObservationRead();
        return grpc::Status::OK;
      }
      clock.SleepFor(base::milliseconds(50), stop);
    }
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the coordinator is stopping");
  }

  grpc::Status StreamedDrain(ServerContext* context,
                             ServerUnaryStreamer<job::v1::DrainRequest, job::v1::DrainResponse>* call) override {
    return Serve(*context, token_, *call, [&](const job::v1::DrainRequest& request, job::v1::DrainResponse&) {
      return engine_.Drain({request.members().begin(), request.members().end()}, request.leader_term());
    });
  }

  grpc::Status StreamedSuspend(ServerContext* context,
                               ServerUnaryStreamer<job::v1::SuspendRequest, job::v1::SuspendResponse>* call) override {
    return Serve(
        *context, token_, *call, [&](const job::v1::SuspendRequest& request, job::v1::SuspendResponse& response) {
          const absl::StatusOr<int64_t> step =
              engine_.Suspend(request.reason(), request.leader_term(), [context] { return context->IsCancelled(); });
          if (step.ok()) response.set_step(*step);
          return step.status();
        });
  }

  grpc::Status StreamedHandOver(
      ServerContext* context, ServerUnaryStreamer<job::v1::HandOverRequest, job::v1::HandOverResponse>* call) override {
    return Serve(*context, token_, *call, [&](const job::v1::HandOverRequest& request, job::v1::HandOverResponse&) {
      return engine_.HandOver(request, [context] { return context->IsCancelled(); });
    });
  }

 private:
  Engine& engine_;
  const std::string token_;
};

class MemberService final : public job::v1::MemberService::StreamedService {
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
        rpc::EscapeStrings(*order);
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

  grpc::Status StreamedPutRendezvous(
      ServerContext* context,
      ServerUnaryStreamer<job::v1::PutRendezvousRequest, job::v1::PutRendezvousResponse>* call) override {
    return Serve(*context, token_, *call,
                 [&](const job::v1::PutRendezvousRequest& request, job::v1::PutRendezvousResponse&) {
                   return engine_.rendezvous().Put(request.generation(), request.key(), request.value());
                 });
  }

  grpc::Status StreamedGetRendezvous(
      ServerContext* context,
      ServerUnaryStreamer<job::v1::GetRendezvousRequest, job::v1::GetRendezvousResponse>* call) override {
    return Serve(
        *context, token_, *call,
        [&](const job::v1::GetRendezvousRequest& request, job::v1::GetRendezvousResponse& response) -> absl::Status {
          if (request.keys_size() > kMaxKeys) return base::InvalidArgument("rendezvous: too many keys in one request");
          MEDLEY_ASSIGN_OR_RETURN(
              std::vector<std::string> values,
              engine_.rendezvous().Get(request.generation(), {request.keys().begin(), request.keys().end()},
                                       engine_.stop_token(), [context] { return context->IsCancelled(); }));
          for (std::string& value : values) response.add_values(std::move(value));
          return absl::OkStatus();
        });
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
