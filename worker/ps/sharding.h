// Computes the parameter-server shard of a row. Pure.
#pragma once

#include <cstdint>

#include "common/base/rng.h"

namespace medley::worker {

// Returns a shard in [0, shards); shards > 0. proto/medley/job/v1/parameter_server.proto specifies this function.
inline int ShardOf(int table, uint64_t key, int shards) {
  return static_cast<int>(base::Mix64(base::Mix64(static_cast<uint64_t>(table)) ^ key) % static_cast<uint64_t>(shards));
}

}  // namespace medley::worker
