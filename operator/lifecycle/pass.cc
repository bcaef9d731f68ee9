#include "operator/lifecycle/pass.h"

#include <algorithm>

namespace medley::ops::lifecycle {

Pass::Pass(const kube::Object& job, const World& seen, const Memory& remembered, const std::vector<Answer>& answers,
           const JobOptions& settings)
    : object(job),
      world(seen),
      options(settings),
      memory(remembered.uid == job.uid() ? remembered : Memory()),
      observed(seen.observed),
      answers_(answers) {
  memory.uid = object.uid();
}

const Answer* Pass::NextAnswer(Action action) {
  if (open_) return nullptr;
  if (used_ < answers_.size()) return &answers_[used_++];
  open_ = std::move(action);
  return nullptr;
}

absl::Status Pass::NotAnsweredYet() { return base::Cancelled("the pass waits for the answer of an action"); }

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

kube::ObjectPtr Pass::Pod(const std::string& name) const {
  const auto pod = world.pods.find(name);
  return pod == world.pods.end() ? nullptr : pod->second;
}

bool Pass::IsTerminating(const kube::Object& pod) const {
  return pod.deleting() || memory.members.deleted.contains(pod.uid());
}

}  // namespace medley::ops::lifecycle
