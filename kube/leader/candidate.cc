#include "kube/leader/candidate.h"

#include <algorithm>

#include "common/base/backoff.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "kube/errors.h"
#include "kube/resource_version.h"

namespace medley::kube {
namespace {

constexpr int64_t kHighestRaise = int64_t{1} << 30;  // leaves room for as many later transitions in an int32

}  // namespace

Candidate::Candidate(Client& client, base::Clock& clock, Options options)
    : client_(client), clock_(clock), options_(std::move(options)) {}

bool Candidate::IsLeader() const {
  base::MutexLock lock(mutex_);
  return observed_.holder == options_.identity;
}

LeaderRecord Candidate::record() const {
  base::MutexLock lock(mutex_);
  return observed_;
}

bool Candidate::seen() const {
  base::MutexLock lock(mutex_);
  return seen_;
}

base::SteadyTime Candidate::valid_until() const {
  base::MutexLock lock(mutex_);
  return observed_at_ + observed_.duration();
}

base::SteadyTime Candidate::renewed_at() const {
  base::MutexLock lock(mutex_);
  return renewed_at_;
}

void Candidate::RaiseTerm(int64_t term) {
  base::MutexLock lock(mutex_);
  if (term <= kHighestRaise) least_term_ = std::max(least_term_, term);
}

bool Candidate::ValidLocked() const { return clock_.Steady() < observed_at_ + observed_.duration(); }

int64_t Candidate::held_term() const {
  base::MutexLock lock(mutex_);
  return held_term_;
}

void Candidate::SetObserved(LeaderRecord record, std::string version) {
  base::MutexLock lock(mutex_);
  if (record.holder == options_.identity) held_term_ = record.transitions;
  if (!seen_ || !(record == observed_)) {
    seen_ = true;
    observed_ = std::move(record);
    observed_at_ = clock_.Steady();
  }
  version_ = std::move(version);
}

void Candidate::Observe(const Object& lease) {
  {
    base::MutexLock lock(mutex_);
    const auto order = CompareResourceVersion(lease.resource_version(), version_);
    if (order && *order != std::strong_ordering::greater) return;
  }
  SetObserved(ReadLeaderRecord(lease), lease.resource_version());
}

absl::Status Candidate::Write(const LeaderRecord& record, bool create) {
  const base::SteadyTime began = clock_.Steady();
  Object lease = create ? Object(resources::Leases(), options_.lease) : lease_;
  WriteLeaderRecord(record, lease);
  auto stored = create ? client_.Create(resources::Leases(), lease) : client_.Update(resources::Leases(), lease);
  if (!stored.ok()) return stored.status();
  lease_ = *std::move(stored);
  // Observe it as the server stored it: a time may come back in another format, which must not look like a change.
  SetObserved(ReadLeaderRecord(lease_), lease_.resource_version());
  if (!record.holder.empty()) {
    base::MutexLock lock(mutex_);
    renewed_at_ = began;
  }
  return absl::OkStatus();
}

bool Candidate::TryAcquireOrRenew() {
  LeaderRecord wanted;
  wanted.holder = options_.identity;
  wanted.lease_seconds = std::chrono::duration_cast<base::seconds>(options_.lease_duration).count();
  wanted.acquire_time = wanted.renew_time = base::FormatTimeMicro(clock_.Now());
  bool fast = false;
  {
    base::MutexLock lock(mutex_);
    fast = observed_.holder == options_.identity && ValidLocked();
    wanted.transitions = least_term_;
  }
  if (fast && Renew(wanted)) return true;
  auto lease = client_.Get(resources::Leases(), options_.lease);
  if (IsNotFound(lease.status())) return CreateLease(std::move(wanted));
  if (!lease.ok()) {
    base::log::Warn("reading the lease failed",
                    {{"lease", options_.lease.ToString()}, {"error", base::ToString(lease.status())}});
    return false;
  }
  lease_ = *std::move(lease);
  SetObserved(ReadLeaderRecord(lease_), lease_.resource_version());
  return TakeOrKeep(std::move(wanted));
}

// The fast path of the leader: writes without a read, because no other process should have written.
bool Candidate::Renew(LeaderRecord wanted) {
  const LeaderRecord before = record();
  wanted.acquire_time = before.acquire_time;
  wanted.transitions = std::max(wanted.transitions, before.transitions);
  const absl::Status written = Write(wanted, false);
  if (written.ok()) return true;
  base::log::Warn("renewing the lease failed; reading it again",
                  {{"lease", options_.lease.ToString()}, {"error", base::ToString(written)}});
  return false;
}

bool Candidate::CreateLease(LeaderRecord wanted) {
  const absl::Status made = Write(wanted, true);
  if (!made.ok() && !IsAlreadyExists(made)) {
    base::log::Warn("creating the lease failed",
                    {{"lease", options_.lease.ToString()}, {"error", base::ToString(made)}});
  }
  return made.ok();
}

bool Candidate::TakeOrKeep(LeaderRecord wanted) {
  LeaderRecord before;
  {
    base::MutexLock lock(mutex_);
    before = observed_;
    const bool mine = before.holder == options_.identity;
    if (!before.holder.empty() && !mine && ValidLocked()) return false;
    if (mine) wanted.acquire_time = before.acquire_time;
    wanted.transitions = std::max(wanted.transitions, before.transitions + (mine ? 0 : 1));
  }
  const absl::Status written = Write(wanted, false);
  if (!written.ok() && !IsConflict(written)) {
    base::log::Warn("writing the lease failed",
                    {{"lease", options_.lease.ToString()}, {"error", base::ToString(written)}});
  }
  return written.ok();
}

bool Candidate::Release(base::nanoseconds patience, std::stop_token stop) {
  const base::SteadyTime deadline = clock_.Steady() + patience;
  base::Backoff backoff({.first = base::milliseconds(10), .max = base::seconds(1)}, base::Hash64(options_.identity));
  while (true) {
    auto lease = client_.Get(resources::Leases(), options_.lease);
    if (IsNotFound(lease.status())) return false;
    absl::Status status = lease.status();
    if (lease.ok()) {
      lease_ = *std::move(lease);
      SetObserved(ReadLeaderRecord(lease_), lease_.resource_version());
      LeaderRecord given_up = record();
      if (given_up.holder != options_.identity) return true;
      given_up.holder.clear();
      given_up.lease_seconds = 1;
      given_up.acquire_time = given_up.renew_time = base::FormatTimeMicro(clock_.Now());
      status = Write(given_up, false);
      if (status.ok()) return true;
    }
    const base::nanoseconds wait = backoff.Next();
    if (clock_.Steady() + wait >= deadline || !clock_.SleepFor(wait, stop)) {
      base::log::Warn("releasing the lease failed",
                      {{"lease", options_.lease.ToString()}, {"error", base::ToString(status)}});
      return false;
    }
  }
}

}  // namespace medley::kube
