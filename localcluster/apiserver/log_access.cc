#include "localcluster/apiserver/log_access.h"

#include <utility>

#include "common/base/status.h"

namespace medley::localcluster::apiserver {

void LogAccess::Set(LogReader* reader) {
  auto next = std::make_shared<Term>();
  next->reader = reader;
  std::shared_ptr<Term> before;
  {
    base::MutexLock lock(mutex_);
    before = std::exchange(term_, std::move(next));
  }
  before->over.request_stop();
  base::MutexLock lock(mutex_);
  left_.Wait(mutex_, {}, [&] { return before->readers == 0; });
}

bool LogAccess::serving() const {
  base::MutexLock lock(mutex_);
  return term_->reader != nullptr;
}

absl::Status LogAccess::Read(const kube::Key& pod, const LogOptions& options, const std::stop_token& stop,
                             const std::function<bool(std::string_view)>& sink) {
  std::shared_ptr<Term> term;
  {
    base::MutexLock lock(mutex_);
    term = term_;
    if (term->reader == nullptr) return base::Unavailable("no node serves the logs of pod {}", pod.ToString());
    ++term->readers;
  }
  std::stop_source either;
  const std::stop_callback caller(stop, [&either] { either.request_stop(); });
  const std::stop_callback over(term->over.get_token(), [&either] { either.request_stop(); });
  absl::Status status = term->reader->ReadLog(pod, options, either.get_token(), sink);
  base::MutexLock lock(mutex_);
  --term->readers;
  left_.NotifyAll();
  return status;
}

}  // namespace medley::localcluster::apiserver
