#include "common/rpc/status.h"

#include <grpcpp/support/status.h>

#include "common/base/details.h"
#include "common/base/status.h"

namespace medley::rpc {

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.raw_code()), base::Message(status), base::Details(status));
}

absl::Status FromGrpc(const grpc::Status& status, std::string_view what) {
  if (status.ok()) return absl::OkStatus();
  absl::Status plain = base::MakeStatus(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  if (!status.error_details().empty()) plain = base::WithDetails(std::move(plain), status.error_details());
  return what.empty() ? plain : base::Annotate(plain, what);
}

}  // namespace medley::rpc
