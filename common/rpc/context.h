// Prepares calls and checks their tokens. Every call carries the job's token as metadata "authorization: Bearer TOKEN",
// has a deadline, and can be cancelled by a stop token.
//
// Functions are thread-safe; StopCancelsCall belongs to the thread that makes the call.
//
//   grpc::ClientContext context;
//   rpc::Prepare(context, {.token = token, .timeout = base::seconds(5)});
//   rpc::StopCancelsCall guard(context, stop);
//   absl::Status status = rpc::FromGrpc(stub->Plan(&context, request, &response), "scheduler: Plan");
#pragma once

#include <absl/status/status.h>

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "common/base/clock.h"

namespace grpc {
class ClientContext;
class ServerContextBase;
class Status;
}  // namespace grpc

namespace medley::rpc {

struct CallOptions {
  std::string token;             // empty: no token is sent
  base::nanoseconds timeout{0};  // 0: no deadline (for streams that a stop token ends)
  bool wait_for_ready = false;   // wait for a connection, within the deadline, instead of failing at once
};

// Call it before the call starts.
void Prepare(grpc::ClientContext& context, const CallOptions& options);

// Returns OK if the caller sent exactly `token`, otherwise UNAUTHENTICATED. An empty `token` refuses every call.
// Compares in constant time. Every handler begins with:
//   if (grpc::Status status = rpc::Authorize(*context, token_); !status.ok()) return status;
grpc::Status Authorize(const grpc::ServerContextBase& context, std::string_view token);

// While this object exists, a stop request cancels the call (TryCancel). A cancelled stream ends with CANCELLED.
class StopCancelsCall {
 public:
  StopCancelsCall(grpc::ClientContext& context, std::stop_token stop);

 private:
  std::stop_callback<std::function<void()>> callback_;
};

}  // namespace medley::rpc
