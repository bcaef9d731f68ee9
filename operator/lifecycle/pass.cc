#include "operator/lifecycle/pass.h"

#include <algorithm>
#include <utility>

namespace medley::ops::lifecycle {

Pass::Pass(const kube::Object& job, const World& seen, Memory remembered,
           const std::function<std::optional<Answer>(const Action&)>& respond, const JobOptions& settings)
    : memory_(remembered.uid == job.uid() ? std::move(remembered) : Memory()),
      object(job),
      world(seen),
      options(settings),
      memory(memory_),
      report(memory_.status.current),
      observed(seen.observed),
      respond_(respond) {
  memory_.uid = object.uid();
}

std::optional<Answer> Pass::AnswerOf(Action action) {
  if (unanswered_) return std::nullopt;
  std::optional<Answer> answer = respond_(action);
  if (!answer) unanswered_ = std::move(action);
  return answer;
}

absl::Status Pass::NotAnswered() { return base::Cancelled("an action of the pass has no answer"); }

void Pass::Event(std::string_view reason, std::string_view message) {
  Publish(PublishEvent{false, std::string(reason), std::string(message)});
}

void Pass::Warning(std::string_view reason, std::string_view message) {
  Publish(PublishEvent{true, std::string(reason), std::string(message)});
}

void Pass::RequeueAfter(base::nanoseconds delay) {
  const base::nanoseconds at_least = std::max(delay, base::nanoseconds(base::milliseconds(1)));
  requeue_after_ = requeue_after_ ? std::min(*requeue_after_, at_least) : at_least;
}

Pause Pass::PauseFor(base::nanoseconds length) {
  RequeueAfter(length);
  return {world.steady + length, object.generation()};
}

bool Pass::Lasts(const Pause& pause) {
  const base::nanoseconds left = pause.until - world.steady;
  if (left <= base::nanoseconds(0) || pause.spec_generation != object.generation()) return false;
  RequeueAfter(left);
  return true;
}

kube::ObjectPtr Pass::Pod(const std::string& name) const {
  const auto pod = world.pods.find(name);
  return pod == world.pods.end() ? nullptr : pod->second;
}

kube::ObjectPtr Pass::Cached(const kube::Resource& resource) const {
  const auto found = world.objects.find(resource.kind);
  return found == world.objects.end() ? nullptr : found->second;
}

bool Pass::IsTerminating(const kube::Object& pod) const {
  return pod.deleting() || memory.pods.deleted.contains(pod.uid());
}

}  // namespace medley::ops::lifecycle
