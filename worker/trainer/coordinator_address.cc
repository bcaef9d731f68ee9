#include "worker/trainer/coordinator_address.h"

#include <utility>

#include "common/base/log.h"
#include "common/base/status.h"

namespace medley::worker {
namespace {

constexpr base::nanoseconds kLookTimeout = base::seconds(2);
constexpr base::nanoseconds kGrace = base::milliseconds(100);

}  // namespace

CoordinatorAddress::CoordinatorAddress(std::string address, const Volume& checkpoint_root)
    : claims_(checkpoint_root.empty() ? std::nullopt : std::optional<Claims>(checkpoint_root)),
      volume_(claims_ ? std::make_unique<VolumeThread>(VolumeThread::Options{.grace = kGrace, .max_queue = 4})
                      : nullptr),
      current_{0, std::move(address)} {}

Claim CoordinatorAddress::current() const {
  base::MutexLock lock(mutex_);
  return current_;
}

void CoordinatorAddress::Hint(const Claim& successor) {
  base::MutexLock lock(mutex_);
  if (successor.term <= current_.term) return;
  hinted_term_ = successor.term;
  current_.address = successor.address;
}

void CoordinatorAddress::DropHint() {
  base::MutexLock lock(mutex_);
  hinted_term_ = 0;
}

bool CoordinatorAddress::hinted() const {
  base::MutexLock lock(mutex_);
  return hinted_term_ > 0;
}

bool CoordinatorAddress::Welcome(int64_t term) {
  base::MutexLock lock(mutex_);
  if (term < current_.term) return false;
  current_.term = term;
  if (term >= hinted_term_) hinted_term_ = 0;
  return true;
}

base::nanoseconds CoordinatorAddress::interval() const { return claims_ ? claims_->interval() : base::seconds(1); }

Claim CoordinatorAddress::seen() const {
  base::MutexLock lock(mutex_);
  return seen_;
}

bool CoordinatorAddress::LookAtClaims(std::stop_token stop) {
  if (!claims_) return false;
  const auto newest = std::make_shared<Claim>();  // the operation may outlive this object
  const auto look = [newest, claims = *claims_, known = seen()]() -> absl::Status {
    MEDLEY_ASSIGN_OR_RETURN(*newest, claims.Newest(known));
    return absl::OkStatus();
  };
  const absl::Status status = volume_->Run("reading the claims", kLookTimeout, std::move(stop), look);
  if (!status.ok()) {
    base::log::Debug("cannot read the coordinators' claims", {{"error", base::ToString(status)}});
    return false;
  }
  base::MutexLock lock(mutex_);
  seen_ = *newest;
  if (newest->term < hinted_term_) return false;
  hinted_term_ = 0;
  if (newest->term < current_.term || newest->address.empty() || newest->address == current_.address) return false;
  current_ = *newest;
  return true;
}

}  // namespace medley::worker
