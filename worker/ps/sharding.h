// Which shard of the parameter servers a row lives on. Pure.
#pragma once

#include <cstdint>

#include "common/base/rng.h"

namespace medley::worker {

// In [0, shards); shards > 0. Part of the contract of proto/medley/job/v1/parameter_server.proto.
inline int ShardOf(int table, uint64_t key, int shards) {
  return static_cast<int>(base::Mix64(base::Mix64(static_cast<uint64_t>(table)) ^ key) % static_cast<uint64_t>(shards));
}

}  // namespace medley::worker
