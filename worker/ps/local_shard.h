// A shard in this process, without messages: what a call of the service would do. Waits are bounded by the caller's
// limit.
//
// Thread-safe, as ShardGeneration is.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/base/clock.h"
#include "worker/pipeline/sparse_parameters.h"
#include "worker/ps/half_floats.h"
#include "worker/ps/parameter_server.h"

namespace medley::worker {

// Some keys of a table: those at these places of table->keys, ascending. Borrowed.
struct KeysAt {
  const TableKeys* table = nullptr;
  std::span<const uint32_t> places;
};

class LocalShard {
 public:
  // `server` has the shard as soon as the generation is in force; it must outlive this.
  LocalShard(ParameterServer& server, int64_t generation) : server_(server), generation_(generation) {}

  // Waits for the step before and copies the rows to their places: those of part i to rows[i], which has room for all
  // keys of its table. Errors: those of ShardGeneration::Pull and RowStore::Read; FailedPrecondition (no shard of the
  // generation), Cancelled.
  absl::Status Pull(int64_t step, std::span<const KeysAt> parts, std::span<float* const> rows, const base::Clock& clock,
                    const WaitLimit& limit) const;
  // Copies the gradients of these keys out of those of all keys, rounded to the format. Errors: those of
  // ShardGeneration::Push.
  absl::Status Push(int64_t step, int trainer, std::span<const KeysAt> parts,
                    std::span<const std::span<const float>> gradients, int64_t samples,
                    WireFormat format = WireFormat::kFloat32) const;

 private:
  absl::StatusOr<std::shared_ptr<ShardGeneration>> Shard() const;
  // `parts`: what will be read then.
  absl::Status AwaitStep(ShardGeneration& shard, int64_t step, std::span<const KeysAt> parts, const base::Clock& clock,
                         const WaitLimit& limit) const;

  ParameterServer& server_;
  const int64_t generation_;
};

}  // namespace medley::worker
