#include "operator/capacity/signed_pods.h"

#include <chrono>
#include <iterator>

namespace medley::ops {
namespace {

int64_t MillisecondsSince1970(base::WallTime time) {
  return std::chrono::duration_cast<base::milliseconds>(time.time_since_epoch()).count();
}

}  // namespace

void SignedPods::Sign(kube::Object& pod) const {
  base::MutexLock lock(mutex_);
  SignPod(keys_, Now(), pod);
}

bool SignedPods::Created(const kube::Object& pod) {
  const auto at = SignedAt(keys_, pod);
  const auto created = base::ParseTime(pod.String("/metadata/creationTimestamp"));
  // Where admission has replaced the signature, the pod counts if a plan has its name.
  if (!at || !created.ok()) return true;
  base::MutexLock lock(mutex_);
  if (!IsInTime(*at, pod)) {
    ahead_ = *created - clock_.Now();
    return false;
  }
  names_[pod.key()].spent[MillisecondsSince1970(*at)] = pod.uid();
  return true;
}

PodOrigin SignedPods::OriginOf(const kube::Object& pod) {
  const auto at = SignedAt(keys_, pod);
  if (!at) return PodOrigin::kUnsigned;
  if (!IsInTime(*at, pod)) return PodOrigin::kCopy;
  const Time time = MillisecondsSince1970(*at);
  base::MutexLock lock(mutex_);
  ForgetOld();
  Name& name = names_[pod.key()];
  name.present = pod.uid();
  name.present_time = time;
  return name.spent.emplace(time, pod.uid()).first->second == pod.uid() ? PodOrigin::kOwn : PodOrigin::kCopy;
}

void SignedPods::Erased(const kube::Key& pod, const std::string& uid) {
  base::MutexLock lock(mutex_);
  const auto name = names_.find(pod);
  if (name != names_.end() && name->second.present == uid) name->second.present.clear();
  ForgetOld();
}

// A signature that is older than kSignedFor makes no further pod believed, so it need not be remembered after its pod.
void SignedPods::ForgetOld() {
  const base::WallTime now = Now();
  if (now < forget_at_) return;
  forget_at_ = now + kSignedFor;
  const Time oldest = MillisecondsSince1970(now - kSignedFor - kSignedAhead);
  for (auto entry = names_.begin(); entry != names_.end();) {
    const Name& name = entry->second;
    std::erase_if(entry->second.spent, [&](const auto& spent) {
      return spent.first < oldest && (name.present.empty() || spent.first != name.present_time);
    });
    entry = name.spent.empty() ? names_.erase(entry) : std::next(entry);
  }
}

size_t SignedPods::size() const {
  base::MutexLock lock(mutex_);
  return names_.size();
}

}  // namespace medley::ops
