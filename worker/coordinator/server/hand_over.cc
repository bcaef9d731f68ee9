#include "worker/coordinator/server/hand_over.h"

#include <grpcpp/grpcpp.h>

#include <memory>
#include <utility>

#include "common/base/log.h"
#include "common/base/status.h"
#include "common/rpc/channel.h"
#include "common/rpc/context.h"
#include "common/rpc/status.h"
#include "medley/job/v1/coordinator.grpc.pb.h"
#include "worker/claim/claims.h"

namespace medley::worker {
namespace {

// A dead node does not refuse a connection.
constexpr base::milliseconds kConnectTimeout{2000};

absl::Status AskToHandOver(const Claim& from, const CoordinatorOptions& options, std::stop_token stop) {
  const auto channel = rpc::MakeChannel(from.address, {.mutual_tls = options.tls, .connect_timeout = kConnectTimeout});
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

absl::StatusOr<Claim> NewestClaim(VolumeThread& volume, const CoordinatorOptions& options, std::stop_token stop) {
  const auto found = std::make_shared<Claim>();  // the operation may outlive this function
  const auto look = [found, claims = Claims(options.checkpoint_root)]() -> absl::Status {
    MEDLEY_ASSIGN_OR_RETURN(*found, claims.Newest());
    return absl::OkStatus();
  };
  MEDLEY_RETURN_IF_ERROR(
      volume.Run("looking for the coordinator before", options.journal_timeout, std::move(stop), look));
  return *found;
}

absl::StatusOr<Claim> TakeClaim(VolumeThread& volume, const CoordinatorOptions& options, base::Clock& clock,
                                std::stop_token stop) {
  const auto taken = std::make_shared<Claim>();  // the operation may outlive this function
  const auto take = [taken, claims = Claims(options.checkpoint_root), term = options.term, address = options.address,
                     instance = options.instance]() -> absl::Status {
    MEDLEY_ASSIGN_OR_RETURN(*taken, claims.Take(term, address, instance));
    return absl::OkStatus();
  };
  MEDLEY_RETURN_IF_ERROR(
      AwaitRoom(clock, stop, [&] { return volume.Run("claiming the job", options.journal_timeout, stop, take); }));
  return *taken;
}

}  // namespace

absl::Status AwaitRoom(base::Clock& clock, std::stop_token stop, const std::function<absl::Status()>& write) {
  constexpr base::nanoseconds kInterval = base::seconds(1);
  bool logged = false;
  for (;;) {
    absl::Status status = write();
    if (!absl::IsResourceExhausted(status)) return status;
    if (!logged)
      base::log::Warn("waits for room on the job's volume before it leads", {{"error", base::Message(status)}});
    logged = true;
    if (!clock.SleepFor(kInterval, stop)) return base::Cancelled("stopped while the job's volume had no room");
  }
}

absl::StatusOr<Lead> TakeLead(VolumeThread& volume, const CoordinatorOptions& options, base::Clock& clock,
                              std::stop_token stop) {
  MEDLEY_ASSIGN_OR_RETURN(const Claim before, NewestClaim(volume, options, stop));
  if (before.term > options.term) return Superseded(Claim{.term = options.term}, before);
  if (options.term == 0) return Lead();  // it claims nothing, and leads as long as nobody does
  // Nobody can tell when the one before has no claim. A process in the same pod, and hence at the same address, has
  // ended.
  Lead lead{.former_may_run = before.term != options.term || before.address != options.address};
  if (before.term > 0 && before.term < options.term) {
    const absl::Status handed_over = AskToHandOver(before, options, stop);
    if (stop.stop_requested()) return base::Cancelled("stopped before this coordinator led the job");
    if (absl::IsFailedPrecondition(handed_over)) return handed_over;
    lead.handed_over = handed_over.ok();
    lead.former_may_run = !lead.handed_over;
    if (lead.former_may_run) {
      base::log::Warn("takes the job over without its coordinator", {{"error", base::ToString(handed_over)}});
    }
  }
  MEDLEY_ASSIGN_OR_RETURN(lead.claim, TakeClaim(volume, options, clock, std::move(stop)));
  return lead;
}

}  // namespace medley::worker
