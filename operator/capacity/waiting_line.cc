#include "operator/capacity/waiting_line.h"

#include <algorithm>
#include <tuple>

namespace medley::ops {

bool WaitingLine::Place::operator<(const Place& other) const {
  return std::tie(other.priority, created, key) < std::tie(priority, other.created, other.key);
}

WaitingLine::State* WaitingLine::Find(const kube::Key& job) {
  const auto place = places_.find(job);
  return place == places_.end() ? nullptr : &line_.at(place->second);
}

WaitingLine::State& WaitingLine::Enter(const Job& job) {
  const Place place{job.priority, job.created, job.key};
  State state;
  if (const State* known = Find(job.key); known != nullptr) {
    state = *known;
    line_.erase(places_.at(job.key));  // its priority may have changed
  }
  places_[job.key] = place;
  return line_[place] = state;
}

std::optional<WaitingLine::Woken> WaitingLine::Advance() {
  const base::SteadyTime now = clock_.Steady();
  const auto first = [&] {
    return std::find_if(line_.begin(), line_.end(),
                        [&](const auto& entry) { return entry.second.waits && entry.second.tried < turn_; });
  };
  auto next = first();
  if (next != line_.end() && head_ && next->first.key == head_->key && now - head_since_ >= kPatience) {
    next->second.tried = turn_;  // the line goes on without it
    next = first();
  }
  const bool is_over = next == line_.end();
  if (now < begun_ && !tried_ && !is_over) freed_ = false;  // the turn has not begun
  if (freed_ && (is_over || now - round_begun_ < kPatience)) {
    freed_ = false;
    ++turn_;
    tried_ = false;
    if (is_over) round_begun_ = now;
    begun_ = std::max(now, std::min(begun_, now) + kShortestTurn);
    head_.reset();
    next = first();
  }
  if (next == line_.end()) {
    head_.reset();
    return std::nullopt;
  }
  if (head_ && head_->key == next->first.key) return std::nullopt;
  head_ = next->first;
  head_since_ = std::max(now, begun_);
  return Woken{head_->key, head_since_ - now};
}

void WaitingLine::WakeUp(const std::optional<Woken>& woken) const {
  if (woken) wake_(woken->job, woken->delay);
}

void WaitingLine::UnitsFreed() {
  std::optional<Woken> woken;
  {
    base::MutexLock lock(mutex_);
    if (line_.empty()) return;
    freed_ = true;
    woken = Advance();
  }
  WakeUp(woken);
}

int64_t WaitingLine::turn() const {
  base::MutexLock lock(mutex_);
  return turn_;
}

std::optional<kube::Key> WaitingLine::Take(const Job& job) {
  std::optional<kube::Key> ahead;
  std::optional<Woken> woken;
  {
    base::MutexLock lock(mutex_);
    State& state = Enter(job);
    woken = Advance();
    const Place& place = places_.at(job.key);
    if (head_ && *head_ < place) ahead = head_->key;
    state.blocked = ahead.has_value();
    state.waits = state.waits || state.blocked;
    tried_ = tried_ || !state.blocked;
  }
  WakeUp(woken);
  return ahead;
}

std::optional<kube::Key> WaitingLine::Ahead(const kube::Key& job, int64_t turn) const {
  base::MutexLock lock(mutex_);
  const auto place = places_.find(job);
  if (turn == turn_ || place == places_.end() || !head_ || !(*head_ < place->second)) return std::nullopt;
  return head_->key;
}

void WaitingLine::Wait(const kube::Key& job, int64_t turn) {
  std::optional<Woken> woken;
  {
    base::MutexLock lock(mutex_);
    State* state = Find(job);
    if (state == nullptr) return;
    state->waits = true;
    if (!state->blocked) state->tried = std::max(state->tried, turn);
    state->blocked = false;
    woken = Advance();
  }
  WakeUp(woken);
}

void WaitingLine::Leave(const kube::Key& job) {
  std::optional<Woken> woken;
  {
    base::MutexLock lock(mutex_);
    const auto place = places_.find(job);
    if (place == places_.end()) return;
    line_.erase(place->second);
    places_.erase(place);
    woken = Advance();
  }
  WakeUp(woken);
}

void WaitingLine::Join(const Job& job) {
  std::optional<Woken> woken;
  {
    base::MutexLock lock(mutex_);
    Enter(job).waits = true;
    woken = Advance();
  }
  WakeUp(woken);
}

}  // namespace medley::ops
