// Starts the parts of a program in order and stops them in the reverse order (controller-runtime's Manager).
// It owns no part. Add, Elect, Start, Run, Wait and Stop from one thread; the rest from any.
//
// Order of start: servers (health, metrics), caches (each until synced), other parts, leader election, controllers.
//
//   without Elect:  Start: +servers +caches +others +controllers
//   with Elect:     Start: +servers +caches +others, and the election begins; this process is ready as a standby.
//                   elected: +controllers     Stop: -controllers, Lease given up, -others -caches -servers
//                   lead lost: Wait returns at once, nothing is stopped: the program should exit, non-zero
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
  // Before Start: controllers then run only while this process leads. `client` is borrowed and the election's alone.
  // Adds health check "leader election". Errors: those of LeaderElector::Create.
  absl::Status Elect(kube::Client& client, kube::LeaderElector::Options options);
  // Any time. A later check of the same name replaces the earlier.
  void AddHealthCheck(const std::string& name, Check check);
  void AddReadyCheck(const std::string& name, Check check);

  // Starts all, but controllers of a manager with an election; when one fails, stops those that run and returns its
  // error.
  absl::Status Start(std::stop_token stop);
  // Between Start and Stop: blocks until `stop` (OK), or until the lead is lost (Aborted) or a controller could not be
  // started after the election (its error).
  absl::Status Wait(std::stop_token stop);
  // Stops in reverse order. DeadlineExceeded when it took longer than the grace: the caller should exit.
  absl::Status Stop();
  // Start, Wait, Stop. After an error of Wait nothing is stopped: no grace for one who lost the lead.
  absl::Status Run(std::stop_token stop);

  // Whether the controllers may write: OK without an election. See LeaderElector::Guard.
  absl::Status Guard() const;
  bool leading() const;
  int64_t term() const;            // of this process's lead; 0 without an election
  void HeardOfTerm(int64_t term);  // see LeaderElector

  // The first failing check, "NAME: why". Ready also needs Start to have finished; a standby is ready.
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
  std::vector<const Part*> controllers_;          // those that run; of the thread that leads, when there is an election
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
  absl::Status ended_ ABSL_GUARDED_BY(mutex_);  // an error ends Wait
};

}  // namespace medley::ops
