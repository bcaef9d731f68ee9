#include "tests/unit/worker/trainer/core_service.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "common/rpc/status.h"

namespace medley::worker {
namespace pb = ::medley::job::v1;

CoreService::CoreService(const CoreOptions& options) : core_(options, Now(), std::nullopt) {
  server_ = rpc::Server::Start({}, {this}).value();
  ticker_ = std::jthread([this](std::stop_token stop) {
    while (clock_.SleepFor(base::milliseconds(20), stop)) {
      base::MutexLock lock(mutex_);
      core_.Tick(Now());
      Execute();
    }
  });
}

CoreService::~CoreService() {
  ticker_ = {};
  server_->Stop();
}

absl::StatusOr<int64_t> CoreService::ApplyPlan(const pb::ApplyPlanRequest& request) {
  base::MutexLock lock(mutex_);
  const auto generation = core_.ApplyPlan(request, Now());
  Execute();
  return generation;
}

pb::Observation CoreService::Observe() {
  base::MutexLock lock(mutex_);
  return core_.Observe(Now());
}

std::map<int64_t, double> CoreService::Losses() {
  base::MutexLock lock(mutex_);
  return losses_;
}

grpc::Status CoreService::Session(grpc::ServerContext*, Stream* stream) {
  pb::SessionRequest request;
  if (!stream->Read(&request) || !request.has_hello()) return grpc::Status::OK;
  const std::pair key(request.hello().member(), request.hello().instance());
  do {
    base::MutexLock lock(mutex_);
    if (request.has_hello()) streams_[key] = stream;
    core_.OnMessage(key.first, key.second, request, Now());
    Execute();
  } while (stream->Read(&request));
  base::MutexLock lock(mutex_);
  streams_.erase(key);
  core_.OnLost(key.first, key.second, Now());
  Execute();
  return grpc::Status::OK;
}

grpc::Status CoreService::PutRendezvous(grpc::ServerContext*, const pb::PutRendezvousRequest* request,
                                        pb::PutRendezvousResponse*) {
  return rpc::ToGrpc(store_.Put(std::to_string(request->generation()) + "/" + request->key(), request->value()));
}

grpc::Status CoreService::GetRendezvous(grpc::ServerContext* context, const pb::GetRendezvousRequest* request,
                                        pb::GetRendezvousResponse* response) {
  std::vector<std::string> keys;
  for (const std::string& key : request->keys()) keys.push_back(std::to_string(request->generation()) + "/" + key);
  absl::StatusOr<std::vector<std::string>> values;
  do {
    values = store_.Get(keys, base::milliseconds(100), {});
  } while (!values.ok() && !context->IsCancelled());
  if (!values.ok()) return rpc::ToGrpc(values.status());
  response->mutable_values()->Assign(values->begin(), values->end());
  return grpc::Status::OK;
}

void CoreService::Execute() {
  for (bool again = true; again;) {
    again = false;
    for (const Command& command : core_.TakeCommands()) {
      if (const auto* send = std::get_if<SendCommand>(&command)) {
        const auto it = streams_.find({send->member, send->instance});
        if (it != streams_.end()) it->second->Write(send->message);
      } else if (const auto* step = std::get_if<StepCommand>(&command)) {
        losses_[step->range.step] = step->loss;
      } else if (const auto* back = std::get_if<RollbackCommand>(&command)) {
        losses_.erase(losses_.upper_bound(back->to_step), losses_.end());
      } else if (std::holds_alternative<FindCheckpointCommand>(command)) {
        core_.OnCheckpointFound(CheckpointSearch(), Now());
        again = true;
      } else if (const auto* note = std::get_if<LogCommand>(&command)) {
        std::fprintf(stderr, "coordinator: %s\n", note->message.c_str());
      }
    }
  }
}

}  // namespace medley::worker
