#include "worker/coordinator/core/meter.h"

#include <algorithm>

namespace medley::worker {
namespace {

constexpr double kMeasuredSeconds = 1.0;  // seconds of training before a measured throughput is used
constexpr size_t kMaxPoints = 4096;

}  // namespace

void ThroughputMeter::Add(base::SteadyTime now, int64_t samples) {
  total_ += samples;
  points_.push_back({now, total_});
  while (points_.size() > 2 && (now - points_[1].at >= window_ || points_.size() > kMaxPoints)) points_.pop_front();
}

void ThroughputMeter::Reset(base::SteadyTime now) {
  points_.clear();
  points_.push_back({now, total_});
}

double ThroughputMeter::Rate(base::SteadyTime now) const {
  if (points_.size() < 2) return 0;
  // The last commit ends the measured interval. When no commit follows for a whole window, the rate falls towards 0.
  const base::SteadyTime end = now - points_.back().at > window_ ? now : points_.back().at;
  const double seconds = base::ToSeconds(end - points_.front().at);
  if (seconds <= 0) return 0;
  return static_cast<double>(points_.back().samples - points_.front().samples) / seconds;
}

void RecentMean::Add(double value) {
  ++count_;
  value_ += (value - value_) / static_cast<double>(std::min<int64_t>(count_, 20));
  if (count_ == 1) value_ = value;
}

void StageMeter::Add(const job::v1::MemberSlot& slot, const job::v1::Progress& progress) {
  Times& times = stages_[slot.device().empty() ? Part(slot.stage(), "") : Part(0, slot.pool())];
  times.compute.Add(progress.compute_seconds());
  times.comm.Add(progress.comm_seconds());
  data_wait_seconds_ += std::max(0.0, progress.data_seconds());
  if (progress.processor_seconds() > 0) times.processor.Add(progress.processor_seconds());
}

double StageMeter::CommSeconds(int stage, const std::string& pool) const {
  for (const Part& part : {Part(stage, ""), Part(0, pool)}) {
    const auto found = stages_.find(part);
    if (found != stages_.end() && !found->second.comm.empty()) return found->second.comm.value();
  }
  return 0;
}
void StageMeter::FillPart(const Part& part, double samples_per_step, job::v1::StageObservation& out) const {
  const auto found = stages_.find(part);
  if (found == stages_.end()) return;
  const double compute = found->second.compute.value();
  out.set_compute_seconds(compute);
  out.set_comm_seconds(found->second.comm.value());
  out.set_processor_seconds(found->second.processor.value());
  if (compute > 0) out.set_throughput(samples_per_step / compute);
}

void StageMeter::Fill(const plan::v1::ExecutionPlan& plan, double samples_per_step, job::v1::Observation& out) const {
  for (int s = 0; s < plan.stages_size(); ++s) {
    job::v1::StageObservation& stage = *out.add_stages();
    stage.set_stage(s);
    std::string pools;
    for (const plan::v1::Group& group : plan.stages(s).groups()) {
      stage.set_units(stage.units() + group.units());
      pools += (pools.empty() ? "" : ",") + group.pool();
    }
    stage.set_pool(pools);
    FillPart({s, ""}, samples_per_step, stage);
  }
  std::map<std::string, int> numbers;  // by pool
  for (const plan::v1::Device& device : plan.devices()) {
    const auto [pool, is_new] = numbers.emplace(device.pool(), static_cast<int>(numbers.size()));
    if (is_new) {
      job::v1::StageObservation& stage = *out.add_stages();
      stage.set_stage(pool->second);
      stage.set_pool(device.pool());
      FillPart({0, device.pool()}, samples_per_step, stage);
    }
    job::v1::StageObservation& stage = *out.mutable_stages(pool->second);
    stage.set_units(stage.units() + 1);
  }
}

void RowTierMeter::Add(const std::string& member, const job::v1::RowTiers& tiers) {
  any_ = true;
  kept_[member] = tiers;
  const auto more = [](int64_t count, int64_t by) { return count + std::max<int64_t>(0, by); };
  counted_.set_pulled_rows(more(counted_.pulled_rows(), tiers.pulled_rows()));
  counted_.set_loaded_rows(more(counted_.loaded_rows(), tiers.loaded_rows()));
  counted_.set_ahead_rows(more(counted_.ahead_rows(), tiers.ahead_rows()));
  counted_.set_left_rows(more(counted_.left_rows(), tiers.left_rows()));
  counted_.set_wait_seconds(counted_.wait_seconds() + std::max(0.0, tiers.wait_seconds()));
}

job::v1::RowTiers RowTierMeter::Sum() const {
  job::v1::RowTiers sum = counted_;
  for (const auto& [member, kept] : kept_) {
    sum.set_memory_rows(sum.memory_rows() + kept.memory_rows());
    sum.set_disk_rows(sum.disk_rows() + kept.disk_rows());
    sum.set_memory_bytes(sum.memory_bytes() + kept.memory_bytes());
    sum.set_disk_bytes(sum.disk_bytes() + kept.disk_bytes());
  }
  return sum;
}

void DeviceTableMeter::Add(const std::string& member, const job::v1::DeviceTables& tables) {
  any_ = true;
  places_[member] = tables;
  const auto more = [](int64_t count, int64_t by) { return count + std::max<int64_t>(0, by); };
  counted_.set_used_rows(more(counted_.used_rows(), tables.used_rows()));
  counted_.set_found_rows(more(counted_.found_rows(), tables.found_rows()));
  counted_.set_bytes_in(more(counted_.bytes_in(), tables.bytes_in()));
  counted_.set_bytes_out(more(counted_.bytes_out(), tables.bytes_out()));
}

job::v1::DeviceTables DeviceTableMeter::Sum() const {
  job::v1::DeviceTables sum = counted_;
  for (const auto& [member, tables] : places_) {
    if (sum.place() == plan::v1::TABLE_PLACE_UNSPECIFIED) sum.set_place(tables.place());
    if (sum.instead().empty()) sum.set_instead(tables.instead());
  }
  return sum;
}

void CostMeter::Restore(double usd, double usd_first, double first_throughput, int64_t paid_samples) {
  usd_ = usd;
  usd_first_ = usd_first;
  restored_throughput_ = first_throughput;
  paid_samples_ = paid_samples;
}

void CostMeter::Hold(base::SteadyTime now, const std::map<std::string, int>& units) {
  if (started_ && now > held_until_) {
    const double hours = base::ToSeconds(now - held_until_) / 3600;
    for (const auto& [pool, count] : units) {
      const auto price = prices_.find(pool);
      if (price != prices_.end()) usd_ += hours * count * price->second;
    }
  }
  held_until_ = started_ ? std::max(held_until_, now) : now;
  started_ = true;
}

void CostMeter::SetPrices(const google::protobuf::Map<std::string, double>& usd_per_unit_hour) {
  for (const auto& [pool, usd] : usd_per_unit_hour) prices_[pool] = usd;
}

void CostMeter::SetFirstPlan(const plan::v1::ExecutionPlan& plan) { first_plan_ = plan; }

void CostMeter::Committed(base::SteadyTime now, int64_t samples, bool first_plan_in_force) {
  const int64_t fresh = samples - paid_samples_;
  if (fresh <= 0) return;
  if (first_plan_in_force && measuring_) {
    first_seconds_ += base::ToSeconds(now - measured_at_);
    first_samples_ += fresh;
  }
  measuring_ = true;
  measured_at_ = now;
  paid_samples_ = samples;
  usd_first_ += static_cast<double>(fresh) * FirstPlanUsdPerSample();
}

double CostMeter::first_throughput() const {
  if (first_seconds_ >= kMeasuredSeconds) return static_cast<double>(first_samples_) / first_seconds_;
  return restored_throughput_;
}

double CostMeter::FirstPlanUsdPerSample() const {
  const double measured = first_throughput();
  const double throughput = measured > 0 ? measured : first_plan_.estimate().throughput();
  if (throughput <= 0) return 0;
  double usd_per_hour = 0;
  const auto add = [&](const std::string& pool, int units) {
    const auto price = prices_.find(pool);
    if (price != prices_.end()) usd_per_hour += price->second * units;
  };
  for (const plan::v1::Stage& stage : first_plan_.stages()) {
    for (const plan::v1::Group& group : stage.groups()) add(group.pool(), group.units());
  }
  for (const plan::v1::Device& device : first_plan_.devices()) add(device.pool(), 1);
  add(first_plan_.servers().pool(), first_plan_.servers().units());  // in trainers: of no pool
  return usd_per_hour / 3600 / throughput;
}

}  // namespace medley::worker
