#include "operator/runtime/manager.h"

#include <algorithm>

#include "common/base/log.h"
#include "common/base/status.h"

namespace medley::ops {
namespace {

absl::Status RunChecks(const std::map<std::string, Manager::Check>& checks) {
  for (const auto& [name, check] : checks) {
    const absl::Status status = check();
    if (!status.ok()) return base::Annotate(status, name);
  }
  return absl::OkStatus();
}

}  // namespace

Manager::Manager(base::Clock& clock, base::nanoseconds grace) : clock_(clock), grace_(grace) {}

Manager::~Manager() { (void)Stop(); }

void Manager::Add(Part part) { parts_.push_back(std::move(part)); }

void Manager::AddHealthCheck(const std::string& name, Check check) {
  base::MutexLock lock(mutex_);
  health_[name] = std::move(check);
}

void Manager::AddReadyCheck(const std::string& name, Check check) {
  base::MutexLock lock(mutex_);
  ready_[name] = std::move(check);
}

absl::Status Manager::Start(std::stop_token stop) {
  std::stable_sort(parts_.begin(), parts_.end(),
                   [](const Part& a, const Part& b) { return a.phase < b.phase; });
  for (const Part& part : parts_) {
    absl::Status status = stop.stop_requested() ? base::Cancelled("stopped") : part.start(stop);
    if (!status.ok()) {
      const absl::Status ended = Stop();
      if (!ended.ok()) log::Warn("stop after a failed start", {{"error", base::ToString(ended)}});
      return base::Annotate(status, "start " + part.name);
    }
    running_.push_back(&part);
  }
  base::MutexLock lock(mutex_);
  started_ = true;
  return absl::OkStatus();
}

absl::Status Manager::Stop() {
  {
    base::MutexLock lock(mutex_);
    started_ = false;
  }
  const base::SteadyTime began = clock_.Steady();
  std::string slowest;
  base::nanoseconds longest{0};
  while (!running_.empty()) {
    const Part* part = running_.back();
    running_.pop_back();
    const base::SteadyTime before = clock_.Steady();
    part->stop();
    if (clock_.Steady() - before >= longest) {
      longest = clock_.Steady() - before;
      slowest = part->name;
    }
  }
  const base::nanoseconds took = clock_.Steady() - began;
  if (took <= grace_) return absl::OkStatus();
  return base::DeadlineExceeded("stopping took {} s, more than the grace of {} s; longest: {}",
                                base::ToSeconds(took), base::ToSeconds(grace_), slowest);
}

absl::Status Manager::Run(std::stop_token stop) {
  MEDLEY_RETURN_IF_ERROR(Start(stop));
  {
    base::Mutex mutex;
    base::CondVar never;
    base::MutexLock lock(mutex);
    never.Wait(mutex, stop, [] { return false; });
  }
  return Stop();
}

absl::Status Manager::Healthy() const {
  std::map<std::string, Check> checks;
  {
    base::MutexLock lock(mutex_);
    checks = health_;
  }
  return RunChecks(checks);
}

absl::Status Manager::Ready() const {
  std::map<std::string, Check> checks;
  {
    base::MutexLock lock(mutex_);
    if (!started_) return base::Unavailable("not all parts have started");
    checks = ready_;
  }
  return RunChecks(checks);
}

}  // namespace medley::ops
