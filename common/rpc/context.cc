#include "common/rpc/context.h"

#include <grpcpp/client_context.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/time.h>

#include "common/base/secrets.h"
#include "common/rpc/deadline.h"

namespace medley::rpc {
namespace {

constexpr std::string_view kBearer = "Bearer ";

}  // namespace

void Prepare(grpc::ClientContext& context, const CallOptions& options) {
  if (!options.token.empty()) context.AddMetadata("authorization", std::string(kBearer) + options.token);
  if (options.timeout > base::nanoseconds(0)) context.set_deadline(DeadlineIn(options.timeout));
  context.set_wait_for_ready(options.wait_for_ready);
}

grpc::Status Authorize(const grpc::ServerContextBase& context, std::string_view token) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find("authorization");
  if (found == metadata.end()) {
    return grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "the call carries no authorization metadata");
  }
  const std::string_view value(found->second.data(), found->second.size());
  const bool bearer = value.substr(0, kBearer.size()) == kBearer;
  if (token.empty() || !bearer || !base::SameSecret(value.substr(kBearer.size()), token)) {
    return grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "the call carries a wrong token");
  }
  return grpc::Status::OK;
}

StopCancelsCall::StopCancelsCall(grpc::ClientContext& context, std::stop_token stop)
    : callback_(std::move(stop), [&context] { context.TryCancel(); }) {}

}  // namespace medley::rpc
