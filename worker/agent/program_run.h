// One run of a program on one unit: its processes, what they report, and whether they hang. The agent starts one for
// each generation, and the profiler one.
//
// Thread-safe. The run ends with the thread that has started it.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "common/base/clock.h"
#include "common/model/job_spec.h"
#include "worker/agent/ranks.h"

namespace medley::worker {

// What is measured of a run.
struct RunMeasure {
  int64_t steps = 0;  // that the median is of
  double median_seconds = 0;
  double spread = 0;
};

class ProgramRun {
 public:
  // Starts the processes. `own`: the environment of this process, "NAME=value". `failed` is called once by a thread of
  // its own when a process fails before Stop, with the error that WaitFor returns. Errors: those of
  // ProgramProcesses::Start and ProgressPort::Open; InvalidArgument (the pattern).
  static absl::StatusOr<std::unique_ptr<ProgramRun>> Start(const model::ProgramSpec& program, const ProgramPlace& place,
                                                           const std::vector<std::string>& own, base::Clock& clock,
                                                           std::function<void(const absl::Status&)> failed = {});
  ~ProgramRun();  // ends the processes at once

  // Waits until the program has reported `step` or a later one; `step` == program.steps: until all processes of the
  // unit have ended with 0. With `follows`, where other units report, only the last step and failures are waited for.
  // Errors: Cancelled (`cancelled` returns true), InvalidArgument (the program has ended too early), Internal (a
  // process has failed, or the program hangs); they say which rank, and its last words.
  absl::Status WaitFor(int64_t step, bool follows, const std::function<bool()>& cancelled);
  void Began();  // it was held until now: it does not hang since it was started
  void Wake();   // WaitFor looks at `cancelled` soon

  // Lets the program save its state: signals it, and waits until the file that says so has changed. With `follows`, it
  // only signals. Errors: FailedPrecondition (no process handles the signal, as while it starts), DeadlineExceeded,
  // Cancelled (the program has ended, or `cancelled`).
  absl::Status Save(bool follows, const std::function<bool()>& cancelled);
  // After Save: the program of this unit stands still until Stop, so that it trains nothing that it has not saved.
  void Freeze();
  bool frozen() const;
  void Stop(base::nanoseconds grace);

  int64_t reached() const;                                   // the last step that was reported
  int64_t widest() const;                                    // RunProgress documents it
  std::optional<int64_t> ResumedFrom(int64_t widest) const;  // likewise
  std::optional<double> TakeLoss(int64_t step);
  RunMeasure Measure() const;

 private:
  class Rep;
  explicit ProgramRun(std::unique_ptr<Rep> rep);
  const std::unique_ptr<Rep> rep_;
};

// A port that no process uses at the moment. Errors: ResourceExhausted.
absl::StatusOr<int> FreePort();

}  // namespace medley::worker
