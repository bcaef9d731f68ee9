// Bounds the calls that a server has at the same time, those included that their clients have abandoned: the server
// keeps an abandoned call until one of its threads has looked at it, so clients that open and cancel calls make it keep
// any number of them.
//
// A call is abandoned when its client cancels it or closes the connection, or when the server refuses its stream as
// invalid. The budget forgets abandoned calls at a fixed rate, which every server reaches.
// Thread-safe.
#pragma once

#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace medley::http2_front {

class CallBudget {
 public:
  struct Options {
    int max_calls = 4096;               // open and abandoned calls of all connections
    double forgotten_per_second = 500;  // abandoned calls
    // What every connection may have whatever the others have: open calls, as long as it has abandoned few.
    int own_calls = 16;
    double own_abandoned = 4;
    double own_forgotten_per_second = 1;
    // For a server that answers each call in a thread of its own; 0: any number of calls may wait in it. Without a free
    // thread it refuses calls, whoever makes them. So while half of them may be in use, a connection may have only
    // `own_scarce` calls open, and only if it abandons few; the rest is left to others.
    int threads = 0;
    int own_scarce = 4;
  };
  explicit CallBudget(const Options& options) : options_(options) {}

  // Whether a connection that has so many calls may open one more, which then counts. Connections share half of the
  // budget, so that the other half is left to new ones.
  bool Open(int open, double abandoned, base::SteadyTime now);
  void End(int calls);
  void Abandon(int calls, base::SteadyTime now);
  // Whether there is room for a new connection.
  bool HasRoom(base::SteadyTime now);
  // What still counts of `abandoned` calls of one connection after `time`.
  double ForgetOwn(double abandoned, base::nanoseconds time) const;
  double calls(base::SteadyTime now);  // open and abandoned

 private:
  double Used(base::SteadyTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  base::Mutex mutex_;
  int open_ ABSL_GUARDED_BY(mutex_) = 0;
  double abandoned_ ABSL_GUARDED_BY(mutex_) = 0;
  base::SteadyTime looked_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::http2_front
