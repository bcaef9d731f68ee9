// Sends a shard that is rebuilt the pushes that this trainer has kept. Thread-safe.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "worker/pipeline/wait_limit.h"
#include "worker/ps/push_log.h"

namespace medley::rpc {
class MutualTls;
}

namespace medley::worker {

struct ReplayTarget {
  std::string address;  // "ip:port" of the server
  std::string token;
  std::shared_ptr<const rpc::MutualTls> tls = nullptr;  // null: plain text
  int64_t generation = 0;                               // that is being prepared
};

// Returns when the server has taken all of `pushes`, which are in the order of steps and parts. Errors: Unavailable
// (the server is lost), Cancelled, DeadlineExceeded, and why the server refuses a push.
absl::Status ReplayPushes(const ReplayTarget& target, const std::vector<PushLog::Kept>& pushes,
                          const base::Clock& clock, const WaitLimit& limit);

}  // namespace medley::worker
