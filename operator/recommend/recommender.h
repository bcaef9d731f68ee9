// Answers jobs of other controllers that ask for a recommendation: chooses pool and nodes, writes both, resumes the
// job. One controller for each kind that the API server has; a kind that is installed later is found within a minute.
//
// Units that were given and units of Medley's own jobs come from one supply: a pool's free units less what jobs of
// other controllers have got and do not use yet. A job for which there is nothing is looked at again when a pool, a
// price or another job changes. Thread-safe, but for Start and Stop, which one thread calls.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "kube/cache/informer.h"
#include "kube/client.h"
#include "operator/recommend/choice.h"
#include "operator/recommend/given_units.h"
#include "operator/records/record_keys.h"
#include "operator/runtime/event_recorder.h"

namespace medley::ops::recommend {

class Recommender {
 public:
  struct Options {
    std::string ns;  // jobs of this namespace; empty: of all
    uint64_t seed = 1;
    RecordKeys keys;
    base::nanoseconds look_again = base::seconds(60);  // for kinds that the API server has not
  };
  // Everything is borrowed. `reads` fills caches and `writes` patches jobs; `pools` is started by its owner.
  Recommender(kube::Client& reads, kube::Client& writes, kube::Informer& pools, EventRecorder& events,
              base::Clock& clock, Options options);
  ~Recommender();

  // Returns at once; kinds are looked for and started by a thread of their own.
  absl::Status Start();
  void Stop();  // idempotent; joins

 private:
  class Kind;
  struct Unfinished {
    GivenUnits given;
    bool runs = false;  // its pods are ready, so the pool's status counts them
  };
  void FindKinds(std::stop_token stop);
  bool IsServed(const kube::Resource& resource) const;
  void EnqueueAll();
  void Forget(const std::string& uid);  // the job exists no more
  std::vector<NodeOffer> Offers(const std::string& ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::map<std::string, Unfinished> AllGiven() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  kube::Client& reads_;
  kube::Client& writes_;
  kube::Informer& pools_;
  EventRecorder& events_;
  base::Clock& clock_;
  const Options options_;
  base::Mutex mutex_;
  base::CondVar wake_;
  std::vector<std::unique_ptr<Kind>> kinds_;  // constant after the constructor
  // By UID: answers that the caches may not show yet.
  std::map<std::string, GivenUnits> pending_ ABSL_GUARDED_BY(mutex_);
  kube::HandlerId pool_handler_ = 0;
  std::jthread finder_;
};

}  // namespace medley::ops::recommend
