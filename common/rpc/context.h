// What every call carries: the job's token as "authorization: Bearer TOKEN", a deadline, and a stop
// token.
//
// Functions are thread-safe; StopCancelsCall belongs to the thread that makes the call.
//
//   grpc::ClientContext context;
//   rpc::Prepare(context, {.token = token, .timeout = base::seconds(5)});
//   rpc::StopCancelsCall guard(context, stop);
//   absl::Status status = rpc::FromGrpc(stub->Plan(&context, request, &response), "scheduler:
//   Plan");
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
class ServerContext;
class Status;
}  // namespace grpc

namespace medley::rpc {

struct CallOptions {
  std::string token;             // empty: none is sent
  base::nanoseconds timeout{0};  // 0: none (streams that live as long as their stop token)
  bool wait_for_ready = false;   // wait for a connection, within the deadline, instead of failing at once
};

// Before the call starts.
void Prepare(grpc::ClientContext& context, const CallOptions& options);

// OK when the caller sent exactly `token`; UNAUTHENTICATED otherwise, also for an empty `token` (a
// process without a token serves nobody). Compares in constant time. First line of every handler:
//   if (grpc::Status status = rpc::Authorize(*context, token_); !status.ok()) return status;
grpc::Status Authorize(const grpc::ServerContext& context, std::string_view token);

// While it lives, a request to stop cancels the call (TryCancel); streams end with CANCELLED.
class StopCancelsCall {
 public:
  StopCancelsCall(grpc::ClientContext& context, std::stop_token stop);

 private:
  std::stop_callback<std::function<void()>> callback_;
};

}  // namespace medley::rpc
