// The values of parameters after the last steps: who overwrites which, and how far an undo reaches.
//
// A ring: an update reads the newest values and writes where the oldest are, so an undo copies nothing, and an open
// step of an asynchronous schedule reads the values that it began with. `Values` are the weights and optimizer state
// after a step, in whatever memory. Not thread-safe.
#pragma once

#include <absl/status/status.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "common/base/status.h"

namespace medley::worker {

template <typename Values>
class VersionRing {
 public:
  // `kept_updates` >= 0: how many updates can be undone. With 0 an update overwrites the values.
  explicit VersionRing(int kept_updates) : versions_(static_cast<size_t>(kept_updates) + 1) {}

  std::vector<Values>& versions() { return versions_; }
  const Values& At(int64_t step) const { return versions_[static_cast<size_t>(step) % versions_.size()]; }
  const Values& Latest() const { return At(step_); }
  const Values& Next() const { return At(step_ + 1); }  // those that an update writes
  bool Has(int64_t step) const { return step >= oldest_ && step <= step_; }

  int64_t step() const { return step_; }
  // Those of Next() have been written.
  void Advance() {
    ++step_;
    oldest_ = std::max(oldest_, step_ + 1 - static_cast<int64_t>(versions_.size()));
  }

  int64_t undo_limit() const { return agreed_.empty() ? oldest_ : agreed_.front().step; }
  int64_t agreed_step() const { return agreed_.empty() ? step_ : agreed_.back().step; }
  void ForgetAgreed() { agreed_.clear(); }
  // `copy(from, to)` gives `to` memory, if it has none, and the values of `from`; its error leaves the ring as it was.
  template <typename Copy>
  absl::Status KeepAgreed(const Copy& copy) {
    if (!agreed_.empty() && agreed_.back().step == step_) return absl::OkStatus();
    Agreed next;
    if (agreed_.size() == 2) {  // its memory is used again
      next = std::move(agreed_.front());
      agreed_.pop_front();
    }
    next.step = step_;
    MEDLEY_RETURN_IF_ERROR(copy(Latest(), next.values));
    agreed_.push_back(std::move(next));
    return absl::OkStatus();
  }
  // FailedPrecondition beyond undo_limit(), unless there are no values.
  template <typename Copy>
  absl::Status UndoTo(int64_t step, bool has_values, const Copy& copy) {
    std::erase_if(agreed_, [&](const Agreed& agreed) { return agreed.step > step; });
    if (!agreed_.empty() && agreed_.back().step == step && step != step_) {
      MEDLEY_RETURN_IF_ERROR(copy(agreed_.back().values, versions_[static_cast<size_t>(step) % versions_.size()]));
      step_ = oldest_ = step;
      return absl::OkStatus();
    }
    if (step > step_ || (step < oldest_ && has_values)) {
      return base::FailedPrecondition("the parameters are at step {} and can roll back to step {}, not to step {}",
                                      step_, has_values ? undo_limit() : 0, step);
    }
    step_ = step;
    return absl::OkStatus();
  }
  // The newest values were written from outside and contain `step`.
  void SetStep(int64_t step) {
    agreed_.clear();
    if (const size_t from = static_cast<size_t>(step_) % versions_.size(),
        to = static_cast<size_t>(step) % versions_.size();
        from != to) {
      std::swap(versions_[from], versions_[to]);  // the values stay the newest
    }
    step_ = oldest_ = step;
  }

 private:
  struct Agreed {
    int64_t step = 0;
    Values values;
  };
  std::vector<Values> versions_;  // by step, modulo their number
  std::deque<Agreed> agreed_;     // at most two, the newest last
  int64_t step_ = 0;
  int64_t oldest_ = 0;
};

}  // namespace medley::worker
