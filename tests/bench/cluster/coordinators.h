// The coordinators of a thousand jobs behind one port, for a bench of the operator: a plan is in
// force as soon as it arrives, and nothing is trained. Jobs are told apart by their tokens.
// Thread-safe.
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
  // The name of the first member of the plan (a pod), the plan's generation, and when it came.
  using OnPlan = std::function<void(const std::string& member, int64_t generation, base::SteadyTime at)>;

  // On `host`:`port`. Errors: Unavailable (the port is in use).
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
