// Starts the parts of a program in order and stops them in the reverse order (as controller-runtime's Manager).
// Does not own the parts. Call Add, Elect, Start, Run, Wait and Stop from one thread; the other functions are
// thread-safe.
//
// Order of start: servers (health, metrics), caches (each until synced), other parts, leader election, controllers.
//
//   without Elect:  Start: +servers +caches +others +controllers
//   with Elect:     Start: +servers +caches +others, and the election begins; this process is ready as a standby.
//                   elected: +controllers     Stop: -controllers, release of the Lease, -others -caches -servers
//                   leadership lost: Wait returns at once and stops nothing; the program must exit with an error
#pragma once

#include <absl/status/status.h>

#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "kube/leader/elector.h"

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
  // Before Start. Controllers then run only while this process leads. Borrows `client`, which must be used by nothing
  // else. Adds the health check "leader election". Errors: those of LeaderElector::Create.
  absl::Status Elect(kube::Client& client, kube::LeaderElector::Options options);
  // At any time. A check replaces an earlier one of the same name.
  void AddHealthCheck(const std::string& name, Check check);
  void AddReadyCheck(const std::string& name, Check check);

  // Starts all parts; with an election all except the controllers. When a part fails to start, stops the running parts
  // and returns the error.
  absl::Status Start(std::stop_token stop);
  // Between Start and Stop: blocks until `stop` (OK), until this process no longer leads (Aborted), or until a
  // controller failed to start after the election (its error).
  absl::Status Wait(std::stop_token stop);
  // Stops all parts in reverse order. DeadlineExceeded: it took longer than `grace`; the caller must exit.
  absl::Status Stop();
  // Start, Wait, Stop. After an error of Wait nothing is stopped, because a former leader must exit at once.
  absl::Status Run(std::stop_token stop);

  // OK when the controllers may write: this process leads, or there is no election. See LeaderElector::Guard.
  absl::Status Guard() const;
  bool leading() const;
  int64_t term() const;            // with which this process leads or led last; 0 without an election
  void HeardOfTerm(int64_t term);  // see LeaderElector::HeardOfTerm

  // OK, or the error of the first failing check as "NAME: error". Ready also requires that Start has finished; a
  // standby is ready.
  absl::Status Healthy() const;
  absl::Status Ready() const;

 private:
  absl::Status StartPart(const Part& part, std::vector<const Part*>& running, std::stop_token stop);
  absl::Status StartControllers(std::stop_token stop);
  void StopParts(std::vector<const Part*>& running);
  void Lead(std::stop_token stop);
  void End(absl::Status why);

  base::Clock& clock_;
  const base::nanoseconds grace_;
  std::vector<Part> parts_;
  std::vector<const Part*> running_;              // in the order of start
  std::vector<const Part*> controllers_;          // those that run; with an election used by its thread only
  std::unique_ptr<kube::LeaderElector> elector_;  // null: no election
  std::stop_source election_stop_;
  std::jthread election_;
  mutable base::Mutex mutex_;
  std::map<std::string, Check> health_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Check> ready_ ABSL_GUARDED_BY(mutex_);
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  base::nanoseconds longest_stop_ ABSL_GUARDED_BY(mutex_){0};
  std::string slowest_ ABSL_GUARDED_BY(mutex_);  // the part whose stop took the longest
  base::CondVar changed_;
  absl::Status ended_ ABSL_GUARDED_BY(mutex_);  // an error makes Wait return it
};

}  // namespace medley::ops
