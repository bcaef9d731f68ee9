#include "worker/coordinator/core/standbys.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace medley::worker {
namespace {

constexpr int kMostDoublings = 6;
constexpr int kForgiven = 4;  // times the last hold
constexpr size_t kMostPast = 4096;

}  // namespace

base::nanoseconds Standbys::HoldOf(int times) const {
  return options_.hold * (int64_t{1} << std::clamp(times - 1, 0, kMostDoublings));
}

void Standbys::Add(job::v1::StandbyRecord record, base::SteadyTime now) {
  if (past_.size() >= kMostPast && !past_.contains(record.member())) past_.clear();
  Past& past = past_[record.member()];
  if (past.instance != record.instance() || now - past.returned >= kForgiven * past.hold) past.times = 0;
  past.instance = record.instance();
  past.hold = HoldOf(++past.times);
  record.set_times(past.times);
  const base::SteadyTime until = now + past.hold;
  const std::string member = record.member();
  all_[member] = {.record = std::move(record), .hold_until = until, .probe_at = until};
}

void Standbys::Restore(const job::v1::CoordinatorState& journal, base::SteadyTime now) {
  for (const job::v1::StandbyRecord& record : journal.standbys()) {
    const base::nanoseconds hold = HoldOf(record.times());
    past_[record.member()] = {record.instance(), record.times(), hold, now};
    all_[record.member()] = {.record = record, .hold_until = now + hold, .probe_at = now + hold};
  }
}

void Standbys::Remove(const std::string& member, base::SteadyTime now) {
  if (all_.erase(member) > 0) past_[member].returned = now;
}

const Standby* Standbys::Find(const std::string& member) const {
  const auto found = all_.find(member);
  return found == all_.end() ? nullptr : &found->second;
}

bool Standbys::Has(const std::string& member, const std::string& instance) const {
  const Standby* standby = Find(member);
  return standby != nullptr && standby->record.instance() == instance;
}

std::vector<DueProbe> Standbys::Due(const std::map<std::string, std::string>& connected, base::SteadyTime now) {
  std::vector<DueProbe> due;
  for (auto& [member, standby] : all_) {
    const auto found = connected.find(member);
    if (found == connected.end() || found->second != standby.record.instance()) continue;
    if (standby.deadline) {
      if (now >= *standby.deadline) standby.slowness.clear();
      continue;
    }
    if (standby.may_return || now < standby.probe_at) continue;
    standby.probe = ++last_probe_;
    standby.deadline = now + options_.timeout;
    due.push_back({member, standby.record.instance(), standby.probe});
  }
  return due;
}

void Standbys::OnSession(const std::string& member) {
  const auto found = all_.find(member);
  if (found != all_.end()) found->second.deadline.reset();
}

void Standbys::OnProbed(const std::string& member, const job::v1::Probed& answer, double slowness,
                        base::SteadyTime now) {
  const auto found = all_.find(member);
  if (found == all_.end() || !found->second.deadline || answer.id() != found->second.probe) return;
  Standby& standby = found->second;
  const bool late = now >= *standby.deadline;
  const bool measured = answer.error().empty() && std::isfinite(answer.seconds()) && answer.seconds() > 0;
  standby.deadline.reset();
  standby.probe_at = now + options_.interval;
  standby.seconds = measured ? answer.seconds() : 0;
  if (!measured || late) return standby.slowness.clear();
  standby.slowness.push_back(answer.seconds() / (slowness * standby.record.usual_seconds()));
  if (std::ssize(standby.slowness) > kProbes) standby.slowness.pop_front();
  const double sum = std::accumulate(standby.slowness.begin(), standby.slowness.end(), 0.0);
  standby.may_return = std::ssize(standby.slowness) == kProbes && sum <= kProbes * kReturnSlowness;
}

}  // namespace medley::worker
