// Decides when `medley run` ends a job that can never be planned. Nothing but the job itself changes in its cluster, so
// a refusal stays. Pure.
#pragma once

#include <string>

#include "cli/run/snapshot.h"

namespace medley::cli {

class HopelessWatch {
 public:
  // Call it with every snapshot, in order of time. Returns the sentence that ends the run: at once for a job that the
  // operator refuses as it is written, and after `kPatience` for one without a plan, because profilers hold units while
  // they measure, and for one without pools, because the operator may see the job before them. "": the run goes on. A
  // job that has had a plan is never hopeless.
  std::string Look(const Snapshot& view, double seconds);

  static constexpr double kPatience = 5;  // seconds

 private:
  std::string reason_;  // of the refusal, since `since_`
  double since_ = 0;
};

}  // namespace medley::cli
