// A scheduling service that forwards every call to another one, and lets each plan take as long as the benchmark says.
// Thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/rpc/server.h"

namespace medley::bench {

class SlowPlanner {
 public:
  // Listens on 127.0.0.1:`port` and forwards to `address` (host:port). Errors: Unavailable (the port is in use).
  static absl::StatusOr<std::unique_ptr<SlowPlanner>> Start(int port, const std::string& address, base::Clock& clock);
  ~SlowPlanner();

  // From now on each plan is held for this long before it is forwarded. 0 lets those go that are held.
  void SetDelay(base::nanoseconds delay);
  // Plans that are held now.
  int held() const;

 private:
  class Service;
  SlowPlanner();
  std::unique_ptr<Service> service_;
  std::unique_ptr<rpc::Server> server_;
};

}  // namespace medley::bench
