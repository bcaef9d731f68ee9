#include "operator/runtime/manager.h"

#include <algorithm>

#include "common/base/log.h"
#include "common/base/status.h"

namespace medley::ops {
namespace {

// A leader that has not renewed its Lease is unhealthy when the Lease expired this long ago.
constexpr base::nanoseconds kTolerance = base::seconds(20);

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

absl::Status Manager::Elect(kube::Client& client, kube::LeaderElector::Options options) {
  kube::LeaderElector::Callbacks callbacks;
  callbacks.on_started_leading = [this](std::stop_token stop) { Lead(std::move(stop)); };
  callbacks.on_stopped_leading = [this] {
    if (!election_stop_.stop_requested()) End(base::Aborted("the lead was lost"));
  };
  callbacks.on_new_leader = [](const std::string& holder) { base::log::Info("new leader", {{"identity", holder}}); };
  MEDLEY_ASSIGN_OR_RETURN(elector_,
                          kube::LeaderElector::Create(client, clock_, std::move(options), std::move(callbacks)));
  AddHealthCheck("leader election", [this] { return elector_->Check(kTolerance); });
  return absl::OkStatus();
}

absl::Status Manager::StartPart(const Part& part, std::vector<const Part*>& running, std::stop_token stop) {
  const absl::Status status = stop.stop_requested() ? base::Cancelled("stopped") : part.start(stop);
  if (!status.ok()) return base::Annotate(status, "start " + part.name);
  running.push_back(&part);
  return absl::OkStatus();
}

absl::Status Manager::StartControllers(std::stop_token stop) {
  for (const Part& part : parts_) {
    if (part.phase == Phase::kControllers) MEDLEY_RETURN_IF_ERROR(StartPart(part, controllers_, stop));
  }
  return absl::OkStatus();
}

absl::Status Manager::Start(std::stop_token stop) {
  std::stable_sort(parts_.begin(), parts_.end(), [](const Part& a, const Part& b) { return a.phase < b.phase; });
  absl::Status status;
  for (const Part& part : parts_) {
    if (status.ok() && part.phase != Phase::kControllers) status = StartPart(part, running_, stop);
  }
  if (status.ok() && elector_ == nullptr) status = StartControllers(stop);
  if (!status.ok()) {
    const absl::Status ended = Stop();
    if (!ended.ok()) base::log::Warn("stopping after a failed start", {{"error", base::ToString(ended)}});
    return status;
  }
  if (elector_ != nullptr) {
    election_ = std::jthread([this] {
      const absl::Status led = elector_->Run(election_stop_.get_token());
      if (!led.ok()) base::log::Error("the leader election ended", {{"error", base::ToString(led)}});
    });
  }
  base::MutexLock lock(mutex_);
  started_ = true;
  return absl::OkStatus();
}

// Runs while this process leads: starts the controllers, waits for `stop` and stops them.
void Manager::Lead(std::stop_token stop) {
  const absl::Status started = StartControllers(stop);
  if (started.ok()) {
    base::Mutex mutex;
    base::CondVar never;
    base::MutexLock lock(mutex);
    never.Wait(mutex, stop, [] { return false; });
  } else if (!stop.stop_requested()) {
    End(started);
  }
  StopParts(controllers_);
}

void Manager::End(absl::Status why) {
  base::MutexLock lock(mutex_);
  if (ended_.ok()) ended_ = std::move(why);
  changed_.NotifyAll();
}

void Manager::StopParts(std::vector<const Part*>& running) {
  while (!running.empty()) {
    const Part* part = running.back();
    running.pop_back();
    const base::SteadyTime before = clock_.Steady();
    part->stop();
    const base::nanoseconds took = clock_.Steady() - before;
    base::MutexLock lock(mutex_);
    if (took >= longest_stop_) {
      longest_stop_ = took;
      slowest_ = part->name;
    }
  }
}

absl::Status Manager::Stop() {
  {
    base::MutexLock lock(mutex_);
    started_ = false;
  }
  const base::SteadyTime began = clock_.Steady();
  election_stop_.request_stop();
  if (election_.joinable()) election_.join();
  StopParts(controllers_);
  StopParts(running_);
  const base::nanoseconds took = clock_.Steady() - began;
  if (took <= grace_) return absl::OkStatus();
  base::MutexLock lock(mutex_);
  return base::DeadlineExceeded("stopping took {} s, more than the grace period of {} s; the slowest part was {}",
                                base::ToSeconds(took), base::ToSeconds(grace_), slowest_);
}

absl::Status Manager::Wait(std::stop_token stop) {
  base::MutexLock lock(mutex_);
  changed_.Wait(mutex_, stop, [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !ended_.ok(); });
  return ended_;
}

absl::Status Manager::Run(std::stop_token stop) {
  MEDLEY_RETURN_IF_ERROR(Start(stop));
  MEDLEY_RETURN_IF_ERROR(Wait(stop));
  return Stop();
}

absl::Status Manager::Guard() const { return elector_ == nullptr ? absl::OkStatus() : elector_->Guard(); }

bool Manager::leading() const { return elector_ == nullptr || elector_->leading(); }

int64_t Manager::term() const { return elector_ == nullptr ? 0 : elector_->term(); }

void Manager::HeardOfTerm(int64_t term) {
  if (elector_ != nullptr) elector_->HeardOfTerm(term);
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
    if (!started_) return base::Unavailable("some parts have not started yet");
    checks = ready_;
  }
  return RunChecks(checks);
}

}  // namespace medley::ops
