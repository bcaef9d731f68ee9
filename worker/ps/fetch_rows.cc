// The copy of rows between shards.
#include <grpcpp/grpcpp.h>

#include <algorithm>

#include "common/base/status.h"
#include "common/rpc/channel.h"
#include "common/rpc/context.h"
#include "common/rpc/status.h"
#include "medley/job/v1/parameter_server.grpc.pb.h"
#include "worker/ps/client.h"
#include "worker/ps/wire.h"

namespace medley::worker {

namespace pb = ::medley::job::v1;

absl::StatusOr<RowsCopied> FetchRows(const RowsQuery& query, RowStore& store, const base::Clock& clock,
                                     const WaitLimit& limit) {
  const base::nanoseconds left = std::min<base::nanoseconds>(base::seconds(120), limit.deadline - clock.Steady());
  const auto stub = pb::ParameterServerService::NewStub(rpc::MakeChannel(query.address, {.mutual_tls = query.tls}));
  grpc::ClientContext context;
  rpc::Prepare(context, {.token = query.token,
                         .timeout = std::max(left, base::nanoseconds(base::milliseconds(1))),
                         .wait_for_ready = true});
  rpc::StopCancelsCall guard(context, limit.stop);
  pb::ExportRowsRequest request;
  request.set_source_generation(query.source_generation);
  request.set_since_step(query.since_step);
  request.set_shard(query.shard);
  request.set_shards(query.shards);
  const auto stream = stub->ExportRows(&context);
  stream->WriteLast(request, {});  // Finish reports a failure
  RowsCopied copied{.first_step = -1};
  absl::Status status;
  pb::ExportRowsResponse piece;
  while (status.ok() && stream->Read(&piece)) {
    if (copied.first_step < 0) copied.first_step = piece.at_step();
    copied.last_step = piece.at_step();
    copied.state_samples = piece.state_samples();
    const auto keys = ViewRaw<uint64_t>(piece.keys(), "keys");
    const auto values = ViewRaw<float>(piece.values(), "values");
    status = !keys.ok() ? keys.status() : !values.ok() ? values.status() : absl::OkStatus();
    if (status.ok() && !keys->empty()) status = store.Import(piece.table(), *keys, *values);
    if (status.ok()) copied.rows += static_cast<int64_t>(keys->size());
    if (!status.ok()) context.TryCancel();
  }
  const grpc::Status end = stream->Finish();
  MEDLEY_RETURN_IF_ERROR(status);
  MEDLEY_RETURN_IF_ERROR(rpc::FromGrpc(end, fmt::format("copying rows from parameter server {}", query.address)));
  return copied;
}

}  // namespace medley::worker
