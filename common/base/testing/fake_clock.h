// A clock that moves only when the test advances it. Thread-safe; sleepers wake when it passes their deadlines.
#pragma once

#include <iterator>
#include <set>

#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace medley::base {

class FakeClock final : public Clock {
 public:
  explicit FakeClock(WallTime start = WallTime(seconds(1'700'000'000))) : start_(start) {}

  WallTime Now() const override {
    MutexLock lock(mutex_);
    return start_ + std::chrono::duration_cast<WallTime::duration>(elapsed_);
  }
  SteadyTime Steady() const override {
    MutexLock lock(mutex_);
    return SteadyTime(elapsed_);
  }
  bool SleepUntil(SteadyTime deadline, std::stop_token stop) override {
    MutexLock lock(mutex_);
    const auto mine = deadlines_.insert(deadline);
    changed_.NotifyAll();
    const bool reached = changed_.Wait(mutex_, stop, [&] { return SteadyTime(elapsed_) >= deadline; });
    deadlines_.erase(mine);
    return reached;
  }

  void Advance(nanoseconds by) {
    MutexLock lock(mutex_);
    elapsed_ += by;
    changed_.NotifyAll();
  }
  // Waits until `n` threads sleep on this clock, for at most a minute of real time. Threads whose deadline has passed
  // do not count, although they may not have run since.
  bool WaitForSleepers(int n) {
    MutexLock lock(mutex_);
    return changed_.WaitFor(mutex_, std::stop_token(), kPatience,
                            [&] { return std::distance(Next(), deadlines_.end()) >= n; });
  }
  // Waits, for at most a minute of real time, until some thread's sleep ends within `within`; then advances to that
  // deadline. So the clock does not move while the code under test runs, however slow the machine is.
  bool WakeSleeper(nanoseconds within) {
    MutexLock lock(mutex_);
    if (!changed_.WaitFor(mutex_, std::stop_token(), kPatience,
                          [&] { return Next() != deadlines_.end() && *Next() <= SteadyTime(elapsed_ + within); })) {
      return false;
    }
    elapsed_ = Next()->time_since_epoch();
    changed_.NotifyAll();
    return true;
  }

 private:
  static constexpr seconds kPatience{60};

  // The first sleep that has not ended.
  std::multiset<SteadyTime>::iterator Next() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return deadlines_.upper_bound(SteadyTime(elapsed_));
  }

  const WallTime start_;
  mutable Mutex mutex_;
  CondVar changed_;
  nanoseconds elapsed_ ABSL_GUARDED_BY(mutex_) = seconds(1000);
  std::multiset<SteadyTime> deadlines_ ABSL_GUARDED_BY(mutex_);  // of sleeping threads
};

}  // namespace medley::base
