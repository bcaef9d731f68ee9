#include "kube/leader/elector.h"

#include <algorithm>
#include <thread>

#include "common/base/backoff.h"
#include "common/base/log.h"
#include "common/base/status.h"

namespace medley::kube {
namespace {

constexpr double kJitter = 1.2;        // as in client-go: waits are in [1, 1 + kJitter) retry periods
constexpr double kExpiryJitter = 0.1;  // jitter in retry periods after the Lease has expired
constexpr base::nanoseconds kReleasePatience = base::seconds(10);

}  // namespace

base::nanoseconds RequestTimeout(base::nanoseconds renew_deadline) {
  return std::max<base::nanoseconds>(base::seconds(1), renew_deadline / 2);
}

std::string LeaderIdentity(const std::string& host, uint64_t random_high, uint64_t random_low) {
  // A version 4 UUID (RFC 4122).
  const uint64_t high = (random_high & ~0xf000ULL) | 0x4000ULL;
  const uint64_t low = (random_low & ~(0xc000ULL << 48)) | (0x8000ULL << 48);
  return fmt::format("{}_{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", host, high >> 32, (high >> 16) & 0xffff, high & 0xffff,
                     low >> 48, low & 0xffffffffffffULL);
}

absl::StatusOr<std::unique_ptr<LeaderElector>> LeaderElector::Create(Client& client, base::Clock& clock,
                                                                     Options options, Callbacks callbacks) {
  const double lease = base::ToSeconds(options.lease_duration);
  const double renew = base::ToSeconds(options.renew_deadline);
  const double retry = base::ToSeconds(options.retry_period);
  if (retry <= 0) return base::InvalidArgument("leader election: the retry period must be above 0 s, is {} s", retry);
  if (lease <= renew) {
    return base::InvalidArgument("leader election: the lease ({} s) must be longer than the renew deadline ({} s)",
                                 lease, renew);
  }
  if (renew <= retry * kJitter) {
    return base::InvalidArgument(
        "leader election: the renew deadline ({} s) must be longer than {} x the retry period "
        "({} s)",
        renew, kJitter, retry);
  }
  if (options.lease_duration % base::seconds(1) != base::nanoseconds(0)) {
    return base::InvalidArgument("leader election: the lease duration ({} s) must be whole seconds", lease);
  }
  if (options.lease.ns.empty() || options.lease.name.empty() || options.identity.empty()) {
    return base::InvalidArgument("leader election: the lease '{}' and the identity '{}' must not be empty",
                                 options.lease.ToString(), options.identity);
  }
  return std::unique_ptr<LeaderElector>(new LeaderElector(client, clock, std::move(options), std::move(callbacks)));
}

LeaderElector::LeaderElector(Client& client, base::Clock& clock, Options options, Callbacks callbacks)
    : client_(client),
      clock_(clock),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      candidate_(client, clock, {options_.lease, options_.identity, options_.lease_duration}),
      rng_(options_.seed) {}

absl::Status LeaderElector::Guard() const {
  if (!leading_) return base::FailedPrecondition("this process does not lead");
  const base::nanoseconds since = clock_.Steady() - candidate_.renewed_at();
  if (since < options_.renew_deadline) return absl::OkStatus();
  return base::FailedPrecondition("this process may no longer act as leader: it last renewed its lease {:.1f} s ago",
                                  base::ToSeconds(since));
}

absl::Status LeaderElector::Check(base::nanoseconds tolerance) const {
  if (!working_) return absl::OkStatus();
  const base::nanoseconds since = clock_.Steady() - candidate_.renewed_at();
  if (since <= options_.lease_duration + tolerance) return absl::OkStatus();
  return base::DeadlineExceeded("lease {} was last renewed {:.1f} s ago", options_.lease.ToString(),
                                base::ToSeconds(since));
}

absl::Status LeaderElector::Run(std::stop_token stop) {
  absl::Status ended = absl::OkStatus();
  if (Acquire(stop)) {
    working_ = true;
    ended = Lead(stop);  // calls on_stopped_leading
    working_ = false;
  } else {
    callbacks_.on_stopped_leading();
  }
  return ended;
}

void LeaderElector::ReportHolder() {
  if (!candidate_.seen()) return;
  const std::string holder = candidate_.record().holder;
  if (holder == reported_) return;
  reported_ = holder;
  if (callbacks_.on_new_leader) callbacks_.on_new_leader(holder);
}

bool LeaderElector::Acquire(std::stop_token stop) {
  base::log::Info("waiting for the lease", {{"lease", options_.lease.ToString()}, {"identity", options_.identity}});
  std::jthread watcher([this](std::stop_token done) { Watch(done); });
  while (!stop.stop_requested()) {
    {
      base::MutexLock lock(mutex_);
      wake_ = std::stop_source();  // changes seen from here on end the next wait
    }
    const bool won = candidate_.TryAcquireOrRenew();
    ReportHolder();
    if (won) return true;
    WaitToTry(stop);
  }
  return false;
}

// Waits for the next attempt: 1 to 2.2 retry periods, or less if the Lease expires or is released before that.
void LeaderElector::WaitToTry(std::stop_token stop) {
  base::SteadyTime until =
      clock_.Steady() + base::FromSeconds(base::ToSeconds(options_.retry_period) * (1 + kJitter * rng_.Uniform()));
  std::stop_source wake;
  {
    base::MutexLock lock(mutex_);
    wake = wake_;
  }
  const std::stop_callback on_stop(stop, [&wake] { wake.request_stop(); });
  if (const LeaderRecord record = candidate_.record(); !record.holder.empty()) {
    const double little = base::ToSeconds(options_.retry_period) * kExpiryJitter * rng_.Uniform();
    const base::SteadyTime expires = candidate_.valid_until() + base::FromSeconds(little) + base::milliseconds(1);
    if (expires > clock_.Steady()) until = std::min(until, expires);
  }
  clock_.SleepUntil(until, wake.get_token());
}

void LeaderElector::WakeAcquire() {
  base::MutexLock lock(mutex_);
  wake_.request_stop();
}

// Only shortens the wait: if the watch misses a change, the next attempt of Acquire reads it.
void LeaderElector::Watch(std::stop_token stop) {
  base::Backoff backoff({.first = base::seconds(1), .max = base::seconds(30)}, options_.seed + 1);
  while (!stop.stop_requested()) {
    WatchOptions options;
    options.ns = options_.lease.ns;
    options.field_selector = "metadata.name=" + options_.lease.name;
    options.timeout_seconds = 300;
    const absl::Status ended = client_.Watch(resources::Leases(), options, stop, [&](WatchEvent event) {
      using Type = WatchEvent::Type;
      if (event.type == Type::kDeleted) WakeAcquire();
      if (event.type != Type::kAdded && event.type != Type::kModified) return event.type != Type::kError;
      if (event.object.key().name != options_.lease.name) return true;
      candidate_.Observe(event.object);
      if (candidate_.record().holder.empty()) WakeAcquire();
      backoff.Reset();
      return true;
    });
    base::log::Debug("watch of the lease ended", {{"status", base::ToString(ended)}});
    clock_.SleepFor(backoff.Next(), stop);
  }
}

// Runs the guarded work. One thread renews the Lease and this one watches the deadline, so that a renewal that hangs
// cannot hide that the deadline has passed.
absl::Status LeaderElector::Lead(std::stop_token stop) {
  leading_ = true;
  base::log::Info("this process leads", {{"lease", options_.lease.ToString()}, {"term", std::to_string(term())}});
  std::stop_source over;  // requested when the work has ended or another process holds the Lease
  std::atomic<bool> ended = false;
  std::jthread renewer([&](std::stop_token done) { Renew(done, over); });
  std::jthread work([&](std::stop_token done) {
    callbacks_.on_started_leading(done);
    ended = true;
    over.request_stop();
  });
  bool held = false;
  {
    const std::stop_callback on_stop(stop, [&work] { work.request_stop(); });
    held = RenewUntil(over.get_token());
  }
  const bool lost = !held || !ended;
  if (lost) {
    leading_ = false;
    work.request_stop();
    renewer.request_stop();
    base::log::Error("leadership lost", {{"lease", options_.lease.ToString()}, {"leader", leader()}});
    callbacks_.on_stopped_leading();
    return base::Aborted(
        "leader election: lease {} was lost: it was not renewed within {} s and its last known holder is '{}'",
        options_.lease.ToString(), base::ToSeconds(options_.renew_deadline), leader());
  }
  renewer.request_stop();
  renewer.join();
  leading_ = false;
  // Use a new stop token: this process's own is already stopped.
  if (options_.release_on_cancel) candidate_.Release(kReleasePatience, std::stop_token());
  callbacks_.on_stopped_leading();
  return absl::OkStatus();
}

// Returns true if `over` was requested, false if the renew deadline passed.
bool LeaderElector::RenewUntil(std::stop_token over) {
  while (!over.stop_requested()) {
    const base::SteadyTime deadline = candidate_.renewed_at() + options_.renew_deadline;
    if (clock_.Steady() >= deadline) return false;
    clock_.SleepUntil(deadline, over);
  }
  return true;
}

void LeaderElector::Renew(std::stop_token stop, std::stop_source& over) {
  while (clock_.SleepFor(options_.retry_period, stop)) {
    if (candidate_.TryAcquireOrRenew()) continue;
    const std::string holder = candidate_.record().holder;
    ReportHolder();
    if (!holder.empty() && holder != options_.identity) {
      over.request_stop();
      return;
    }
  }
}

}  // namespace medley::kube
