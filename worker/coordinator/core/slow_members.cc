#include "worker/coordinator/core/slow_members.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include "common/model/synchronisation.h"

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

bool SlowMembers::IsSlow(const TrainerPlace& place) const { return SlowedDown(place) && Faster(place, 0); }

bool SlowMembers::Faster(const TrainerPlace& place, double without) const {
  double slowest = 0;  // of the others, without those that slowed down too: they are left out as well, or next
  for (const TrainerPlace& other : places_) {
    if (other.stage != place.stage || other.member == place.member) continue;
    const SlownessDetector& of_other = *histories_.at(other.member).detector;
    if (of_other.recent() <= 0) return false;  // it is not known yet how fast the stage is without the trainer
    if (!SlowedDown(other)) slowest = std::max(slowest, of_other.recent());
  }
  if (slowest == 0 || without + place.share >= 1) return false;
  const double before = histories_.at(place.member).detector->recent() / (1 - without);
  const double afterwards = slowest / (1 - without - place.share);
  return before >= kLeastGain * afterwards;
}

std::vector<const TrainerPlace*> SlowMembers::Due(base::SteadyTime now) const {
  std::vector<const TrainerPlace*> due;
  std::optional<base::SteadyTime> first;
  const auto since = [&](const TrainerPlace& place) -> std::optional<base::SteadyTime> {
    const auto found = slow_since_.find(place.member);
    return found == slow_since_.end() ? std::nullopt : std::optional(found->second);
  };
  for (const TrainerPlace& place : places_) {
    const std::optional<base::SteadyTime> began = since(place);
    if (!began || now - *began < slow_for_) continue;
    due.push_back(&place);
    if (!first || *began < *first) first = *began;
  }
  if (!first) return due;
  const base::SteadyTime gathered = *first + std::chrono::duration_cast<base::nanoseconds>(slow_for_ * kGather);
  const bool waits = std::ranges::any_of(places_, [&](const TrainerPlace& place) {
    const std::optional<base::SteadyTime> began = since(place);
    return began && now - *began < slow_for_ && *began <= gathered;
  });
  if (waits) return {};
  std::ranges::stable_sort(due, std::greater(), [&](const TrainerPlace* place) { return Slowdown(place->member); });
  return due;
}

std::vector<SlowTrainer> SlowMembers::ToLeaveOut(const std::map<int, int>& standing_by, base::SteadyTime now) const {
  struct Stage {
    int training = 0;
    int out = 0;
    double without = 0;  // of the batch: the shares of those that this call leaves out
  };
  std::map<int, Stage> stages;
  for (const TrainerPlace& place : places_) ++stages[place.stage].training;
  for (const auto& [stage, waiting] : standing_by) stages[stage].out = waiting;
  std::vector<SlowTrainer> slow;
  for (const TrainerPlace* place : Due(now)) {
    Stage& stage = stages[place->stage];
    if (stage.training < 2 || 2 * (stage.out + 1) > stage.training + stage.out) continue;
    if (!Faster(*place, stage.without)) continue;
    --stage.training;
    ++stage.out;
    stage.without += place->share;
    const SlownessDetector& detector = *histories_.at(place->member).detector;
    slow.push_back({place->member, detector.recent(), detector.usual()});
  }
  return slow;
}

}  // namespace medley::worker
