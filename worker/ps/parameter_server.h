// ParameterServerService of one process: finds the shard of the asked generation and speaks the wire format.
//
// Thread-safe. Holds the shards of at most a few generations: the one in force, the one before (its rows may still be asked
// for by the next one's shards) and the one being prepared.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "worker/ps/shard_generation.h"

namespace grpc {
class Service;
}  // namespace grpc

namespace medley::worker {

class ParameterServer {
 public:
  // Calls without `token` are refused.
  ParameterServer(std::string token, const base::Clock& clock);
  ~ParameterServer();

  grpc::Service& service();
  // From now on calls of shard->generation() reach it; an earlier shard of the same generation is closed.
  void Install(std::shared_ptr<ShardGeneration> shard);
  // Null when there is none.
  std::shared_ptr<ShardGeneration> Find(int64_t generation) const;
  // Closes and forgets every generation but those in [first, last].
  void Retain(int64_t first, int64_t last);

 private:
  class Service;
  const std::unique_ptr<Service> service_;
};

}  // namespace medley::worker
