// The scheduling service over gRPC: plans, and the price catalog followed in the background.
// Thread-safe.
//
// Stateless but for the last catalog. A service that is away is an error of code Unavailable
// (IsSchedulerAway), never a wait: callers try again when they are told that the catalog came back.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/model/observation.h"
#include "common/model/planning.h"
#include "common/rpc/channel.h"
#include "operator/planning/pool_prices.h"

namespace grpc {
class Channel;
}

namespace medley::ops {

class SchedulerClient {
 public:
  struct Options {
    std::string address;                              // host:port
    base::nanoseconds plan_slack = base::seconds(5);  // beyond the planner's own time budget
    base::nanoseconds observe_timeout = base::seconds(5);
    uint64_t seed = 1;
    std::string token;                  // shown with every call; empty: none
    std::optional<rpc::ClientTls> tls;  // none: plain text
  };
  SchedulerClient(Options options, base::Clock& clock);
  ~SchedulerClient();

  // Follows the catalog until Stop; `on_change` is called from the follower's thread after each new
  // catalog, and after the service went away or came back.
  void Start(std::function<void()> on_change);
  void Stop();  // idempotent; joins

  // Errors: Unavailable (away), InvalidArgument (the request), NotFound (planner), as the service
  // says.
  absl::StatusOr<model::PlanResult> Plan(const model::PlanRequest& request, std::stop_token stop);
  // Tells what a job measured; the answer says how good predictions of its model are. Errors: as Plan.
  absl::StatusOr<model::Prediction> Observe(const model::JobObservation& observation, std::stop_token stop);
  // The last one heard; null before the first.
  std::shared_ptr<const PriceCatalog> catalog() const;
  bool connected() const;

 private:
  void Follow(std::stop_token stop);
  bool FollowOnce(std::stop_token stop);  // true: something was heard
  void SetConnected(bool connected);

  const Options options_;
  base::Clock& clock_;
  const std::shared_ptr<grpc::Channel> channel_;
  std::function<void()> on_change_;
  mutable base::Mutex mutex_;
  std::shared_ptr<const PriceCatalog> catalog_ ABSL_GUARDED_BY(mutex_);
  bool connected_ ABSL_GUARDED_BY(mutex_) = false;
  std::jthread thread_;
};

// The scheduling service did not answer, as opposed to refusing.
bool IsSchedulerAway(const absl::Status& status);

}  // namespace medley::ops
