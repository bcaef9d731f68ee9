// Threads that share the computation of one caller. They sleep between calls and never spin, because spinning uses up
// a container's CPU limit.
//
// A call divides rows among the threads. Each row is computed by one thread, so results do not depend on their number
// as long as the work on a row does not depend on the other rows of its range. One thread calls ForEach at a time. The
// destructor joins the threads.
#pragma once

#include <absl/functional/function_ref.h>

#include <cstdint>
#include <memory>

namespace medley::worker {

class ComputeThreads {
 public:
  using Work = absl::FunctionRef<void(int64_t first, int64_t end)>;

  // `threads` >= 1 includes the calling thread.
  explicit ComputeThreads(int threads);
  ~ComputeThreads();

  int size() const;
  // Calls `work` for disjoint ranges that cover [0, rows), and returns when all have ended. Rethrows the first
  // exception. `operations`: arithmetic operations for one row; little work is not divided. All ranges but the last
  // have a multiple of `together` rows.
  void ForEach(int64_t rows, int64_t operations, Work work, int64_t together = kRowsTogether);
  static constexpr int64_t kRowsTogether = 16;  // so that matrix kernels run without remainders

 private:
  class Rep;
  const std::unique_ptr<Rep> rep_;
};

}  // namespace medley::worker
