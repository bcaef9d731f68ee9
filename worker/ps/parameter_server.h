// The ParameterServerService of one process: finds the shard of the requested generation and converts messages.
//
// Thread-safe. Any number of pulls may wait: they occupy no threads. A pull ends at its caller's deadline, or when the
// shard's generation is closed. Holds the shards of a few generations: the one being prepared, the one in force, and
// the one before, whose rows other servers may still copy.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "worker/ps/push_replay.h"
#include "worker/ps/shard_generation.h"

namespace grpc {
class Service;
}  // namespace grpc

namespace medley::worker {

class ParameterServer {
 public:
  // Refuses calls without `token`.
  ParameterServer(std::string token, const base::Clock& clock);
  ~ParameterServer();

  grpc::Service& service();
  // Directs calls for shard->generation() to `shard`. Closes an earlier shard of the same generation.
  void Install(std::shared_ptr<ShardGeneration> shard);
  // Returns the shard of a generation, or null when none is installed.
  std::shared_ptr<ShardGeneration> Find(int64_t generation) const;
  // Closes and removes the shards of all generations outside [first, last].
  void Retain(int64_t first, int64_t last);
  // Directs what trainers send again for `generation`, which is being prepared, to `replay`. Null ends it. Stops the
  // one before.
  void SetReplay(int64_t generation, std::shared_ptr<PushReplay> replay);

 private:
  class Service;
  const std::unique_ptr<Service> service_;
};

}  // namespace medley::worker
