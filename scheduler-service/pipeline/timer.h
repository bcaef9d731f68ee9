// Times pipelines by a judge, each of them once. Not thread-safe.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scheduler-service/devices/plans.h"
#include "scheduler-service/planning/judge.h"
#include "scheduler-service/planning/planner.h"

namespace medley::sched {

class PipelineTimer {
 public:
  // Both must outlive it. The judge is of a question about devices.
  PipelineTimer(Judge& judge, const Budget& limits)
      : problem_(judge.question().devices()), judge_(judge), limits_(limits), before_(judge.judged()) {}

  // kForever for a pipeline that does not fit or was cancelled; `why` says the last reason.
  double Seconds(const std::vector<PipelineStage>& stages);

  // How often the judge was asked.
  int64_t calls() const { return judge_.judged() - before_; }
  const std::vector<PipelineStage>& best() const { return best_; }
  double best_seconds() const { return best_figures_.seconds; }
  const std::string& why() const { return why_; }
  // The best so far, with its seconds in closed form.
  Candidate Best() const;

 private:
  const DeviceProblem& problem_;
  Judge& judge_;
  const Budget& limits_;
  const int64_t before_;
  std::map<std::vector<int>, double> known_;  // by stages, flattened
  std::vector<PipelineStage> best_;
  Figures best_figures_{.seconds = kForever};
  std::string why_;
};

}  // namespace medley::sched
