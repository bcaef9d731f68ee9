// Records every answered call: a log line and metrics. Thread-safe.
#pragma once

#include <absl/status/status.h>

#include <string_view>

#include "common/metrics/metrics.h"
#include "common/model/forward.h"
#include "scheduler-service/handlers/call.h"

namespace medley::sched {

class CallRecord {
 public:
  explicit CallRecord(metrics::Registry& metrics) : metrics_(metrics) {}

  // Records any call. Computed responses are logged at level info, cached responses and plain reads at debug, errors at
  // warn.
  void Answered(std::string_view method, const Call& call, const absl::Status& status, double seconds) const;
  // Records a planning request that was computed, not cached: time by planner, gap, reasons for infeasibility.
  void Planned(const model::PlanResult& result) const;
  void Infeasible(const std::vector<model::Reason>& reasons) const;

 private:
  metrics::Registry& metrics_;
};

}  // namespace medley::sched
