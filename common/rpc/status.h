// Converts between absl::Status and grpc::Status: same code, same message, same details (common/base/details.h). Pure,
// thread-safe.
#pragma once

#include <absl/status/status.h>

#include <string_view>

namespace grpc {
class Status;
}  // namespace grpc

namespace medley::rpc {

grpc::Status ToGrpc(const absl::Status& status);

// Puts `what` ("scheduler 127.0.0.1:7000: Plan") before the message of an error, unless it is empty.
absl::Status FromGrpc(const grpc::Status& status, std::string_view what = "");

}  // namespace medley::rpc
