#include "worker/coordinator/core/slow_members.h"

#include <algorithm>
#include <utility>

namespace medley::worker {
namespace {

constexpr double kLeastGain = 1.1;  // the time of a step before, over that afterwards

// The lower one of two middle values: most of those that are compared are not slower.
double LowerMedian(std::vector<double> values) {
  if (values.empty()) return 1;
  const auto middle = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

bool SlowMembers::InGeneration(const std::vector<TrainerPlace>& places, const std::string& member) {
  return std::ranges::any_of(places, [&](const TrainerPlace& place) { return place.member == member; });
}

void SlowMembers::Begin(const AnomalyPolicy& policy, std::vector<TrainerPlace> places) {
  if (!(policy == policy_)) histories_.clear();
  policy_ = policy;
  places_ = std::move(places);
  slow_since_.clear();
  if (policy_.detector == model::AnomalyDetector::kOff) return histories_.clear();
  for (const TrainerPlace& place : places_) {
    History& history = histories_[place.member];
    const TrainerPlace& before = history.place;
    const bool same = history.detector != nullptr && before.instance == place.instance &&
                      before.operations == place.operations && before.share > 0;
    if (same) history.detector->Restart(place.share / before.share);
    if (!same) history.detector = MakeDetector(policy_);
    history.place = place;
  }
}

void SlowMembers::Restore(const AnomalyPolicy& policy, const TrainerPlace& place, double usual) {
  if (policy.detector == model::AnomalyDetector::kOff) return;
  policy_ = policy;
  History& history = histories_[place.member];
  history = {place, MakeDetector(policy)};
  history.detector->Restore(usual);
}

void SlowMembers::Add(const std::string& member, double seconds, base::SteadyTime now) {
  const auto found = histories_.find(member);
  if (found == histories_.end()) return;
  found->second.detector->Add(seconds);
  if (!IsSlow(found->second.place)) {
    slow_since_.erase(member);
  } else {
    slow_since_.try_emplace(member, now);
  }
}

std::optional<double> SlowMembers::Slowdown(const std::string& member) const {
  const auto found = histories_.find(member);
  if (found == histories_.end()) return std::nullopt;
  const double usual = found->second.detector->usual(), recent = found->second.detector->recent();
  if (usual <= 0 || recent <= 0) return std::nullopt;
  return recent / usual;
}

double SlowMembers::Reference(int stage, const std::string& pool, const std::string& except) const {
  std::vector<double> all, same_pool;
  for (const TrainerPlace& place : places_) {
    if (place.stage != stage || place.member == except) continue;
    const std::optional<double> slowdown = Slowdown(place.member);
    if (!slowdown) continue;
    all.push_back(*slowdown);
    if (place.pool == pool) same_pool.push_back(*slowdown);
  }
  return std::max({1.0, LowerMedian(std::move(all)), LowerMedian(std::move(same_pool))});
}

bool SlowMembers::SlowedDown(const TrainerPlace& place) const {
  return histories_.at(place.member).detector->slow() &&
         Slowdown(place.member).value_or(0) >= kLeastSlowness * Reference(place.stage, place.pool, place.member);
}

bool SlowMembers::IsSlow(const TrainerPlace& place) const {
  if (!SlowedDown(place)) return false;
  double slowest = 0;  // of the others, without those that slowed down too: they are left out next
  for (const TrainerPlace& other : places_) {
    if (other.stage != place.stage || other.member == place.member) continue;
    const SlownessDetector& of_other = *histories_.at(other.member).detector;
    if (of_other.recent() <= 0) return false;  // it is not known yet how fast the stage is without the trainer
    if (!SlowedDown(other)) slowest = std::max(slowest, of_other.recent());
  }
  if (slowest == 0 || place.share >= 1) return false;
  const double afterwards = slowest / (1 - place.share);
  return histories_.at(place.member).detector->recent() >= kLeastGain * afterwards;
}

std::optional<SlowTrainer> SlowMembers::Worst(const std::map<int, int>& standing_by, base::SteadyTime now) const {
  std::map<int, int> training;  // by stage
  for (const TrainerPlace& place : places_) ++training[place.stage];
  std::optional<SlowTrainer> worst;
  double most = 0;
  for (const TrainerPlace& place : places_) {
    const auto since = slow_since_.find(place.member);
    if (since == slow_since_.end() || now - since->second < slow_for_) continue;
    const auto waiting = standing_by.find(place.stage);
    const int out = 1 + (waiting == standing_by.end() ? 0 : waiting->second);
    const int all = training[place.stage] + out - 1;
    if (training[place.stage] < 2 || 2 * out > all) continue;
    const SlownessDetector& detector = *histories_.at(place.member).detector;
    if (detector.recent() <= most * detector.usual()) continue;
    most = detector.recent() / detector.usual();
    worst = SlowTrainer{place.member, detector.recent(), detector.usual()};
  }
  return worst;
}

}  // namespace medley::worker
