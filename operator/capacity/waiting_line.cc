#include "operator/capacity/waiting_line.h"

#include <algorithm>
#include <tuple>

namespace medley::ops {

bool WaitingLine::Place::operator<(const Place& other) const {
  return std::tie(other.priority, created, key) < std::tie(priority, other.created, other.key);
}

std::optional<kube::Key> WaitingLine::Next() const {
  for (const auto& [place, state] : line_) {
    if (state.tried < turn_) return place.key;
  }
  return std::nullopt;
}

base::nanoseconds WaitingLine::DelayLocked() const {
  return std::max(base::nanoseconds(0), base::nanoseconds(earliest_ - clock_.Steady()));
}

void WaitingLine::UnitsFreed() {
  std::optional<kube::Key> next;
  base::nanoseconds delay{};
  {
    base::MutexLock lock(mutex_);
    if (line_.empty()) return;
    ++turn_;
    begun_ = clock_.Steady();
    if (earliest_ <= begun_) earliest_ = std::max(begun_, earliest_ + kShortestTurn);
    next = Next();
    delay = DelayLocked();
  }
  if (next) wake_(*next, delay);
}

WaitingLine::State& WaitingLine::Enter(const Job& job) {
  const Place place{job.priority, job.created, job.key};
  State state;
  if (const auto known = places_.find(job.key); known != places_.end()) {
    const auto old = line_.find(known->second);
    state = old->second;
    line_.erase(old);  // its priority may have changed
  }
  places_[job.key] = place;
  return line_[place] = state;
}

WaitingLine::Turn WaitingLine::Take(const Job& job) {
  base::MutexLock lock(mutex_);
  Enter(job);
  Turn turn{turn_, std::nullopt};
  if (clock_.Steady() - begun_ >= kPatience) return turn;
  const Place place = places_.at(job.key);
  for (const auto& [before, state] : line_) {
    if (!(before < place)) break;
    if (!state.waits || state.tried >= turn_) continue;
    turn.ahead = before.key;
    break;
  }
  return turn;
}

void WaitingLine::Join(const Job& job) {
  base::MutexLock lock(mutex_);
  Enter(job).waits = true;
  begun_ = clock_.Steady();
}

void WaitingLine::Wait(const kube::Key& job, int64_t number) {
  std::optional<kube::Key> next;
  base::nanoseconds delay{};
  {
    base::MutexLock lock(mutex_);
    const auto place = places_.find(job);
    if (place == places_.end()) return;
    State& state = line_[place->second];
    state.tried = std::max(state.tried, number);
    state.waits = true;
    next = Next();
    delay = DelayLocked();
  }
  if (next) wake_(*next, delay);
}

void WaitingLine::Leave(const kube::Key& job) {
  std::optional<kube::Key> next;
  base::nanoseconds delay{};
  {
    base::MutexLock lock(mutex_);
    const auto place = places_.find(job);
    if (place == places_.end()) return;
    line_.erase(place->second);
    places_.erase(place);
    next = Next();
    delay = DelayLocked();
  }
  if (next) wake_(*next, delay);
}

}  // namespace medley::ops
