#include "worker/coordinator/server/hand_over.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "common/base/log.h"
#include "common/base/status.h"
#include "common/rpc/channel.h"
#include "common/rpc/context.h"
#include "common/rpc/status.h"
#include "medley/job/v1/coordinator.grpc.pb.h"

namespace medley::worker {
namespace {

// A dead node does not refuse a connection.
constexpr base::milliseconds kConnectTimeout{2000};

absl::Status AskToHandOver(const Claim& from, const CoordinatorOptions& options, std::stop_token stop) {
  const auto channel = rpc::MakeChannel(from.address, {.connect_timeout = kConnectTimeout});
  const auto stub = job::v1::CoordinatorService::NewStub(channel);
  grpc::ClientContext context;
  rpc::Prepare(context, {.token = options.token, .timeout = options.hand_over_timeout});
  const rpc::StopCancelsCall guard(context, std::move(stop));
  job::v1::HandOverRequest request;
  request.set_term(options.term);
  request.set_address(options.address);
  job::v1::HandOverResponse response;
  return rpc::FromGrpc(stub->HandOver(&context, request, &response),
                       fmt::format("asking the coordinator of term {} at {} to hand over", from.term, from.address));
}

}  // namespace

absl::StatusOr<bool> TakeLead(const Claims& claims, const CoordinatorOptions& options, std::stop_token stop) {
  MEDLEY_ASSIGN_OR_RETURN(const Claim before, claims.Newest());
  if (before.term > options.term) return Superseded(options.term, before);
  bool may_run = false;
  if (before.term > 0 && before.term < options.term) {
    const absl::Status handed_over = AskToHandOver(before, options, stop);
    if (stop.stop_requested()) return base::Cancelled("stopped before this coordinator led the job");
    if (absl::IsFailedPrecondition(handed_over)) return handed_over;
    may_run = !handed_over.ok();
    if (may_run) log::Warn("takes the job over without its coordinator", {{"error", base::ToString(handed_over)}});
  }
  MEDLEY_RETURN_IF_ERROR(claims.Take({options.term, options.address}));
  return may_run;
}

}  // namespace medley::worker
