#include "scheduler-service/serve_rest/network_thread.h"

#include <utility>  // Boost 1.74 uses std::exchange without it

#include <pplx/threadpool.h>

#include "common/base/mutex.h"

namespace medley::sched {
namespace {

struct Park {
  base::Mutex mutex;
  base::CondVar changed;
  int open ABSL_GUARDED_BY(mutex) = 0;     // number of open servers
  int closing ABSL_GUARDED_BY(mutex) = 0;  // how many of them are closing
  bool taken ABSL_GUARDED_BY(mutex) = false;

  bool Wanted() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { return open > 0 && closing == 0; }
};

Park& ThePark() {
  static Park& park = *[] {
    crossplat::threadpool::initialize_with_threads(2);
    return new Park;  // the pool's threads may outlive static objects
  }();
  return park;
}

// Blocks the thread of the pool that runs it, while it must be parked.
void StayParked() {
  Park& park = ThePark();
  base::MutexLock lock(park.mutex);
  park.changed.Wait(park.mutex, {}, [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !park.Wanted(); });
  park.taken = false;
}

void Update(int open, int closing) {
  Park& park = ThePark();
  base::MutexLock lock(park.mutex);
  park.open += open;
  park.closing += closing;
  park.changed.NotifyAll();
  if (!park.Wanted() || park.taken) return;
  park.taken = true;
  crossplat::threadpool::shared_instance().service().post(&StayParked);
}

}  // namespace

NetworkThread::NetworkThread() { Update(1, 0); }

NetworkThread::~NetworkThread() { Update(-1, closing_ ? -1 : 0); }

void NetworkThread::BeginClosing() {
  closing_ = true;
  Update(0, 1);
}

}  // namespace medley::sched
