#include "worker/trainer/coordinator_address.h"

#include <utility>

#include "common/base/log.h"
#include "common/base/status.h"

namespace medley::worker {

CoordinatorAddress::CoordinatorAddress(std::string address, const std::filesystem::path& checkpoint_root)
    : claims_(checkpoint_root.empty() ? std::nullopt : std::optional<Claims>(checkpoint_root)),
      current_{0, std::move(address)} {}

Claim CoordinatorAddress::current() const {
  base::MutexLock lock(mutex_);
  return current_;
}

void CoordinatorAddress::Learn(const Claim& claim) {
  base::MutexLock lock(mutex_);
  if (claim.term > current_.term) current_ = claim;
}

bool CoordinatorAddress::Welcome(int64_t term) {
  base::MutexLock lock(mutex_);
  if (term < current_.term) return false;
  current_.term = term;
  return true;
}

bool CoordinatorAddress::LookAtClaims() {
  if (!claims_) return false;
  const absl::StatusOr<Claim> newest = claims_->Newest();
  if (!newest.ok()) {
    log::Debug("cannot read the coordinators' claims", {{"error", base::ToString(newest.status())}});
    return false;
  }
  base::MutexLock lock(mutex_);
  if (newest->term < current_.term || newest->address.empty() || newest->address == current_.address) return false;
  current_ = *newest;
  return true;
}

}  // namespace medley::worker
