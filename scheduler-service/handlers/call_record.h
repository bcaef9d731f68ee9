// What is known of every answered call afterwards: a log line and metrics. Thread-safe.
#pragma once

#include <absl/status/status.h>

#include <string_view>

#include "common/metrics/metrics.h"
#include "common/model/planning.h"
#include "scheduler-service/handlers/call.h"

namespace medley::sched {

class CallRecord {
 public:
  explicit CallRecord(metrics::Registry& metrics) : metrics_(metrics) {}

  // Any call. Work is logged at level info, answers that were kept and plain reads at debug, refusals at warn.
  void Answered(std::string_view method, const Call& call, const absl::Status& status, double seconds) const;
  // A planning question that was really worked on: time by planner, gap, what made it infeasible.
  void Planned(const model::PlanResult& result) const;
  void Infeasible(const std::vector<model::Reason>& reasons) const;

 private:
  metrics::Registry& metrics_;
};

}  // namespace medley::sched
