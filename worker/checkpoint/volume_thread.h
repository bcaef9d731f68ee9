// Runs file operations in a thread of its own, one at a time and in order, so that a volume that does not answer blocks
// neither the caller nor the end of the process.
//
// Thread-safe. Stop, or the destructor, waits for at most `grace` for the running operation. After that it abandons the
// thread, which a system call may hold in the kernel without end: the thread ends by itself when the call returns, and
// nothing that it does afterwards is reported. An operation must therefore own everything that it uses.
//
//   VolumeThread volume;
//   MEDLEY_RETURN_IF_ERROR(volume.Run("reading the journal", base::seconds(60), stop, [path] { ... }));
#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include "common/base/clock.h"

namespace medley::worker {

class VolumeThread {
 public:
  struct Options {
    base::nanoseconds grace{base::seconds(5)};
    size_t max_queue = 64;  // operations that wait for the running one
  };
  VolumeThread() : VolumeThread(Options()) {}
  explicit VolumeThread(Options options);
  ~VolumeThread();  // Stop
  VolumeThread(const VolumeThread&) = delete;
  VolumeThread& operator=(const VolumeThread&) = delete;

  // Delivers the result of an operation. It may use objects of the owner: it never runs after Stop has returned.
  using Deliver = std::function<void()>;
  // Queues an operation. Returns false when the queue is full or Stop was called.
  bool Post(std::function<Deliver()> work);
  // Runs an operation and waits for it. Errors: those of `work`; DeadlineExceeded or Cancelled when the wait ended
  // first, which abandons the operation; Unavailable when the queue is full.
  absl::Status Run(const std::string& what, base::nanoseconds timeout, std::stop_token stop,
                   std::function<absl::Status()> work);
  // Lets the queue drain within `grace`. Idempotent. Not to be called by an operation or a Deliver.
  void Stop();

 private:
  struct State;
  static void Loop(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace medley::worker
