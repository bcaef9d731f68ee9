#include "worker/ps/replay_pushes.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>

#include "common/base/status.h"
#include "common/rpc/channel.h"
#include "common/rpc/context.h"
#include "common/rpc/status.h"
#include "medley/job/v1/parameter_server.grpc.pb.h"

namespace medley::worker {
namespace {

namespace pb = ::medley::job::v1;

constexpr base::nanoseconds kMostTime = base::seconds(120);

bool WritePush(const PushLog::Kept& kept, pb::ReplayRequest& request, grpc::ClientWriter<pb::ReplayRequest>& stream) {
  request.set_trainers(kept.trainers);
  return request.mutable_push()->ParseFromArray(kept.push.data(), static_cast<int>(kept.push.size())) &&
         stream.Write(request);
}

}  // namespace

absl::Status ReplayPushes(const ReplayTarget& target, const std::vector<PushLog::Kept>& pushes,
                          const base::Clock& clock, const WaitLimit& limit) {
  if (pushes.empty()) return absl::OkStatus();
  const base::nanoseconds left = std::min<base::nanoseconds>(kMostTime, limit.deadline - clock.Steady());
  const auto stub = pb::ParameterServerService::NewStub(rpc::MakeChannel(target.address, {.mutual_tls = target.tls}));
  grpc::ClientContext context;
  rpc::Prepare(context, {.token = target.token,
                         .timeout = std::max<base::nanoseconds>(left, base::milliseconds(1)),
                         .wait_for_ready = true});
  rpc::StopCancelsCall guard(context, limit.stop);
  pb::ReplayResponse response;
  const auto stream = stub->Replay(&context, &response);
  pb::ReplayRequest request;
  request.set_generation(target.generation);
  const bool sent = std::ranges::all_of(pushes, [&](const auto& kept) { return WritePush(kept, request, *stream); });
  if (sent) stream->WritesDone();
  const grpc::Status end = stream->Finish();  // says why a write failed
  if (limit.stop.stop_requested()) return base::Cancelled("sending pushes again was stopped");
  return rpc::FromGrpc(end,
                       fmt::format("sending {} pushes again to parameter server {}", pushes.size(), target.address));
}

}  // namespace medley::worker
