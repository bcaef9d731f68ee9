// The coordinators of a thousand jobs behind one port, for a benchmark of the operator. A plan is in force as soon as
// it arrives, and nothing is trained. The token of a request identifies the job. Thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/rpc/server.h"

namespace medley::bench {

class Coordinators {
 public:
  // The name of the plan's first member (a pod), the plan's generation, and its time of arrival.
  using OnPlan = std::function<void(const std::string& member, int64_t generation, base::SteadyTime at)>;

  // Listens on `host`:`port`. Errors: Unavailable (the port is in use).
  static absl::StatusOr<std::unique_ptr<Coordinators>> Start(const std::string& host, int port, base::Clock& clock,
                                                             OnPlan on_plan);
  ~Coordinators();

 private:
  class Service;
  Coordinators();
  std::unique_ptr<Service> service_;
  std::unique_ptr<rpc::Server> server_;
};

}  // namespace medley::bench
