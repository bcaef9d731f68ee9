#include "worker/coordinator/core/switches.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "worker/coordinator/core/state.h"

namespace medley::worker::switches {
namespace {

constexpr size_t kMaxSwitches = 32;

void SetTime(base::WallTime at, google::protobuf::Timestamp* out) {
  const int64_t nanos = std::chrono::duration_cast<base::nanoseconds>(at.time_since_epoch()).count();
  out->set_seconds(nanos / 1'000'000'000);
  out->set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
}

void Publish(SwitchesState& own, job::v1::SwitchRecord record) {
  own.complete.push_back(std::move(record));
  if (own.complete.size() > kMaxSwitches) own.complete.erase(own.complete.begin());
}

}  // namespace

void Record(SwitchesState& own, const CoreState& view, Instant now) {
  const GenerationInfo& next = *view.generations.next;
  if (view.generations.from == 0 || next.restored_step > 0) return;
  base::SteadyTime stood_from = view.training.committed_at;
  int64_t reached = view.training.max_applied;
  if (own.open) {  // the generation before has made no step, and what is lost is lost by this switch
    own.open->set_lost_steps(0);
    Complete(own, now.steady);
    stood_from = now.steady;
    reached = std::max(reached, own.reached);
  }
  job::v1::SwitchRecord record;
  record.set_from_generation(view.generations.from);
  record.set_to_generation(next.generation);
  record.set_reason(next.cause.text);
  record.set_cause(next.cause.kind);
  record.set_member(next.cause.member);
  record.set_pause_seconds(base::ToSeconds(now.steady - stood_from));
  record.set_at_step(next.step);
  record.set_recovery(next.recovery);
  record.set_lost_steps(std::max<int64_t>(0, reached - next.step));
  SetTime(now.wall, record.mutable_at());
  if (!view.options.is_program) return Publish(own, std::move(record));
  own.open = std::move(record);
  own.stood_from = stood_from;
  own.in_force_at = now.steady;
  own.reached = reached;
}

void ResumedFrom(SwitchesState& own, int64_t step) {
  if (own.open) own.open->set_lost_steps(std::max<int64_t>(0, own.reached - step));
}

void Complete(SwitchesState& own, base::SteadyTime now) {
  if (!own.open) return;
  own.open->set_pause_seconds(base::ToSeconds(now - own.stood_from));
  own.open->set_start_seconds(base::ToSeconds(now - own.in_force_at));
  Publish(own, *std::move(own.open));
  own.open.reset();
}

void Restore(SwitchesState& own, const job::v1::CoordinatorState& journal) {
  own.complete.assign(journal.switches().begin(), journal.switches().end());
}

}  // namespace medley::worker::switches
