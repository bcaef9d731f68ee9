#include "worker/ps/pull_rows.h"

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/status.h"
#include "medley/job/v1/parameter_server.pb.h"
#include "worker/ps/half_floats.h"
#include "worker/ps/row_store.h"
#include "worker/ps/wire.h"

namespace medley::worker {

namespace pb = ::medley::job::v1;

namespace {

absl::Status AddChanged(const pb::PullRequest& request, const pb::TableKeys& table, WireFormat format,
                        const RowStore& store, pb::TableRows& out) {
  MEDLEY_ASSIGN_OR_RETURN(const auto keys, ViewRaw<uint64_t>(table.keys(), "tables.keys"));
  std::vector<uint32_t> places;
  std::vector<float> rows;
  MEDLEY_RETURN_IF_ERROR(store.ReadChanged(table.table(), keys, request.since(), places, rows));
  AppendRaw(std::span<const uint32_t>(places), *out.mutable_places());
  if (format != WireFormat::kFloat32) {
    EncodeFloats(format, WireValues::kWeights, rows, *out.mutable_rows());
  } else {
    AppendRaw(std::span<const float>(rows), *out.mutable_rows());
  }
  return absl::OkStatus();
}

absl::Status AddAll(const pb::TableKeys& table, WireFormat format, RowStore& store, pb::TableRows& out) {
  MEDLEY_ASSIGN_OR_RETURN(const auto keys, ViewRaw<uint64_t>(table.keys(), "tables.keys"));
  MEDLEY_ASSIGN_OR_RETURN(const size_t floats, store.ReadFloats(table.table(), keys.size()));
  if (format == WireFormat::kFloat32) {
    return store.Read(table.table(), keys, MakeRoom<float>(floats, *out.mutable_rows()));
  }
  std::vector<float> whole(floats);
  MEDLEY_RETURN_IF_ERROR(store.Read(table.table(), keys, whole));
  EncodeFloats(format, WireValues::kWeights, whole, *out.mutable_rows());
  return absl::OkStatus();
}

}  // namespace

absl::Status AnswerPull(const pb::PullRequest& request, RowStore& store, pb::PullResponse& response) {
  MEDLEY_ASSIGN_OR_RETURN(const WireFormat format, WireFormatOf(request.format()));
  for (const pb::TableKeys& table : request.tables()) {
    pb::TableRows& out = *response.add_tables();
    out.set_table(table.table());
    MEDLEY_RETURN_IF_ERROR(request.has_since() ? AddChanged(request, table, format, store, out)
                                               : AddAll(table, format, store, out));
  }
  return absl::OkStatus();
}

}  // namespace medley::worker
