#include "common/http2_front/call_budget.h"

#include <algorithm>

namespace medley::http2_front {

namespace {

double Less(double abandoned, double per_second, base::nanoseconds time) {
  return std::max(0.0, abandoned - per_second * std::max(0.0, base::ToSeconds(time)));
}

}  // namespace

double CallBudget::ForgetOwn(double abandoned, base::nanoseconds time) const {
  return Less(abandoned, options_.own_forgotten_per_second, time);
}

double CallBudget::Used(base::SteadyTime now) {
  if (now > looked_) {
    abandoned_ = Less(abandoned_, options_.forgotten_per_second, now - looked_);
    looked_ = now;
  }
  return open_ + abandoned_;
}

bool CallBudget::Open(int open, double abandoned, base::SteadyTime now) {
  base::MutexLock lock(mutex_);
  const bool own = open < options_.own_calls && abandoned < options_.own_abandoned;
  const bool scarce = options_.threads > 0 && Used(now) >= options_.threads / 2.0;
  if (scarce && (open >= options_.own_scarce || abandoned >= options_.own_abandoned)) return false;
  if (!own && Used(now) >= options_.max_calls / 2.0) return false;
  ++open_;
  return true;
}

void CallBudget::End(int calls) {
  base::MutexLock lock(mutex_);
  open_ -= calls;
}

void CallBudget::Abandon(int calls, base::SteadyTime now) {
  base::MutexLock lock(mutex_);
  Used(now);
  open_ -= calls;
  abandoned_ += calls;
}

bool CallBudget::HasRoom(base::SteadyTime now) {
  base::MutexLock lock(mutex_);
  return Used(now) < options_.max_calls;
}

double CallBudget::calls(base::SteadyTime now) {
  base::MutexLock lock(mutex_);
  return Used(now);
}

}  // namespace medley::http2_front
