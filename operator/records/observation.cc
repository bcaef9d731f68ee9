#include "operator/records/observation.h"

#include <cmath>

namespace medley::ops {
namespace {

constexpr double kSteady = 0.2;  // relative change of a throughput that counts as normal variation

// A copy without the fields that change with normal progress.
Observation WithoutProgress(Observation seen) {
  seen.step = 0;
  seen.samples_done = 0;
  seen.throughput = 0;
  seen.loss = 0;
  seen.epoch = 0;
  seen.metrics.clear();
  seen.evaluations.clear();
  seen.best.reset();
  seen.stages.clear();
  seen.units = {};
  seen.usd_spent = 0;
  seen.usd_first_plan = 0;
  seen.bad_rows = 0;
  seen.last_checkpoint_step = 0;
  seen.agreement.reset();
  seen.embedding_rows.reset();
  if (seen.device_tables) {
    seen.device_tables = DeviceTables{.place = seen.device_tables->place, .instead = seen.device_tables->instead};
  }
  return seen;
}

}  // namespace

bool IsNews(const Observation* before, const Observation& now) {
  if (before == nullptr) return true;
  if (std::abs(now.throughput - before->throughput) > kSteady * before->throughput) return true;
  return WithoutProgress(*before) != WithoutProgress(now);
}

}  // namespace medley::ops
