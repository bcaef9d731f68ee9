// absl::Status <-> grpc::Status: the same codes, the same message, the same details (common/base/details.h). Pure,
// thread-safe.
#pragma once

#include <absl/status/status.h>

#include <string_view>

namespace grpc {
class Status;
}  // namespace grpc

namespace medley::rpc {

grpc::Status ToGrpc(const absl::Status& status);

// `what` ("scheduler 127.0.0.1:7000: Plan") is put before the message of an error; empty: nothing
// is.
absl::Status FromGrpc(const grpc::Status& status, std::string_view what = "");

}  // namespace medley::rpc
