#include "localcluster/apiserver/faults.h"

namespace medley::localcluster::apiserver {

void FaultScript::Add(Fault fault) {
  base::MutexLock lock(mutex_);
  faults_.push_back(std::move(fault));
}

void FaultScript::Clear() {
  base::MutexLock lock(mutex_);
  faults_.clear();
}

size_t FaultScript::left() const {
  base::MutexLock lock(mutex_);
  size_t n = 0;
  for (const Fault& fault : faults_) n += static_cast<size_t>(fault.times);
  return n;
}

size_t FaultScript::taken() const {
  base::MutexLock lock(mutex_);
  return taken_;
}

std::optional<Fault> FaultScript::Take(std::string_view verb, std::string_view plural) {
  base::MutexLock lock(mutex_);
  for (auto it = faults_.begin(); it != faults_.end(); ++it) {
    if (!it->verb.empty() && it->verb != verb) continue;
    if (!it->plural.empty() && it->plural != plural) continue;
    const Fault fault = *it;
    if (--it->times <= 0) faults_.erase(it);
    ++taken_;
    return fault;
  }
  return std::nullopt;
}

}  // namespace medley::localcluster::apiserver
