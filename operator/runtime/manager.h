// Starts the parts of a program in order and stops them in the reverse order (controller-runtime's Manager).
// It owns no part. Add, Start, Run and Stop from one thread; the checks from any.
//
// Order of start: servers (health, metrics), caches (each until synced), other parts, controllers.
#pragma once

#include <absl/status/status.h>

#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace medley::ops {

class Manager {
 public:
  enum class Phase { kServers, kCaches, kOthers, kControllers };
  struct Part {
    Phase phase = Phase::kOthers;
    std::string name;
    std::function<absl::Status(std::stop_token)> start;  // returns when the part runs
    std::function<void()> stop;                          // idempotent; joins
  };
  using Check = std::function<absl::Status()>;

  explicit Manager(base::Clock& clock, base::nanoseconds grace = base::seconds(30));
  ~Manager();

  // Before Start.
  void Add(Part part);
  // Any time. A later check of the same name replaces the earlier.
  void AddHealthCheck(const std::string& name, Check check);
  void AddReadyCheck(const std::string& name, Check check);

  // Starts all; when one fails, stops those that run and returns its error.
  absl::Status Start(std::stop_token stop);
  // Stops in reverse order. DeadlineExceeded when it took longer than the grace: the caller should exit.
  absl::Status Stop();
  // Blocks until `stop`, between Start and Stop.
  absl::Status Run(std::stop_token stop);

  // The first failing check, "NAME: why". Ready also needs Start to have finished.
  absl::Status Healthy() const;
  absl::Status Ready() const;

 private:
  base::Clock& clock_;
  const base::nanoseconds grace_;
  std::vector<Part> parts_;
  std::vector<const Part*> running_;  // in the order of start
  mutable base::Mutex mutex_;
  std::map<std::string, Check> health_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Check> ready_ ABSL_GUARDED_BY(mutex_);
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace medley::ops
