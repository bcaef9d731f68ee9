// A client of the scheduling service: requests plans, and watches the price catalog in the background. Thread-safe.
//
// Its only state is the last catalog. When the service is unavailable, calls fail at once with an error that
// IsSchedulerAway recognises; callers retry when `on_change` reports that the service is connected again.
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
#include "common/model/forward.h"
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
    base::nanoseconds plan_slack = base::seconds(5);  // added to the planner's time budget
    base::nanoseconds observe_timeout = base::seconds(5);
    uint64_t seed = 1;
    std::string token;                  // bearer token, sent with every call; empty: none
    std::optional<rpc::ClientTls> tls;  // absent: plain text
  };
  SchedulerClient(Options options, base::Clock& clock);
  ~SchedulerClient();

  // Watches the catalog until Stop. Calls `on_change` from its own thread after each new catalog, and after the
  // connection was lost or established.
  void Start(std::function<void()> on_change);
  void Stop();  // idempotent; joins

  // Errors, as returned by the service: Unavailable, InvalidArgument (the request), NotFound (an unknown planner).
  // `tenant`: the namespace of the job, whose measurements correct the profiles; empty: none.
  absl::StatusOr<model::PlanResult> Plan(const model::PlanRequest& request, const std::string& tenant,
                                         std::stop_token stop);
  // Reports a job's measurements; the response says how accurate the predictions for its model are. Errors: as Plan.
  absl::StatusOr<model::Prediction> Observe(const model::JobObservation& observation, const std::string& tenant,
                                            std::stop_token stop);
  // The last catalog received; null before the first.
  std::shared_ptr<const PriceCatalog> catalog() const;
  bool connected() const;

 private:
  void Follow(std::stop_token stop);
  bool FollowOnce(std::stop_token stop);  // true: a catalog was received
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

// True when the scheduling service did not respond, or has too much to do; false when it refused the request.
bool IsSchedulerAway(const absl::Status& status);

}  // namespace medley::ops
