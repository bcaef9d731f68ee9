// One run of Decide: the arguments, and what the concerns share while they decide. Not thread-safe; lives for one call.
#pragma once

#include <absl/status/status.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "operator/lifecycle/actions.h"
#include "operator/lifecycle/effects.h"
#include "operator/lifecycle/memory.h"
#include "operator/lifecycle/options.h"
#include "operator/lifecycle/pause.h"
#include "operator/lifecycle/world.h"

namespace medley::ops::lifecycle {

// The answer of an action, or an error: there is none. For MEDLEY_ASSIGN_OR_RETURN.
template <typename T>
class Asked {
 public:
  explicit Asked(T answer) : answer_(std::move(answer)) {}
  static Asked Missing(absl::Status why) {
    Asked asked;
    asked.missing_ = std::move(why);
    return asked;
  }
  bool ok() const { return answer_.has_value(); }
  const absl::Status& status() const { return missing_; }
  T value() && { return *std::move(answer_); }

 private:
  Asked() = default;
  std::optional<T> answer_;
  absl::Status missing_;
};

constexpr bool IsSourceOf(std::string_view concern, std::string_view file) {
  file.remove_prefix(file.rfind('/') + 1);  // npos + 1 is 0
  return file.size() == concern.size() + 3 && file.starts_with(concern) && file.ends_with(".cc");
}

// A caller that may change a concern's state: State::kOwner names its source. The compiler makes one at each call of
// Pass::Own, where the default argument gives the file of the caller, also when files are compiled in batches.
template <typename State>
struct Owner {
  consteval Owner(const char* file = __builtin_FILE()) {
    if (!IsSourceOf(State::kOwner, file)) throw "only the source of the concern may change its state";
  }
};

class Pass {
  Memory memory_;  // before the references to it

 public:
  // The arguments must outlive the pass. A memory of another job is dropped.
  Pass(const kube::Object& object, const World& world, Memory memory,
       const std::function<std::optional<Answer>(const Action&)>& respond, const JobOptions& options);

  // Returns the action's answer. An error means that there is none: the pass must end at once, and what it decides
  // after that is dropped. A failure of the action itself is part of the answer.
  template <typename A>
  Asked<typename A::Answer> Ask(A action) {
    using Result = Asked<typename A::Answer>;
    std::optional<Answer> answer = AnswerOf(std::move(action));
    if (!answer) return Result::Missing(NotAnswered());
    auto* value = std::get_if<typename A::Answer>(&*answer);
    if (value == nullptr) return Result::Missing(base::Internal("an action got the answer of another kind of action"));
    return Result(std::move(*value));
  }
  // The first action without an answer.
  const std::optional<Action>& unanswered() const { return unanswered_; }

  void Publish(Effect effect) { effects_.push_back(std::move(effect)); }
  void Event(std::string_view reason, std::string_view message);
  void Event(Reason reason, std::string_view message) { Event(ToString(reason), message); }
  void Warning(std::string_view reason, std::string_view message);
  void Warning(Reason reason, std::string_view message) { Warning(ToString(reason), message); }
  // The job gets another pass after the shortest of all delays that were asked for.
  void RequeueAfter(base::nanoseconds delay);
  // A pause of this length that begins now.
  Pause PauseFor(base::nanoseconds length);
  // True while the pause lasts; the job gets a pass when it ends.
  bool Lasts(const Pause& pause);

  // The job's pod of this name; null if it does not exist.
  kube::ObjectPtr Pod(const std::string& name) const;
  // The job's object of this kind (World::objects); null if the cache does not hold it.
  kube::ObjectPtr Cached(const kube::Resource& resource) const;
  // True when the pod is terminating. This operator's own deletions count before the cache shows them.
  bool IsTerminating(const kube::Object& pod) const;

  std::vector<Effect> TakeEffects() { return std::move(effects_); }
  std::optional<base::nanoseconds> requeue_after() const { return requeue_after_; }

  const kube::Object& object;  // the TrainingJob as read; concerns that need its spec take the parsed job as well
  const World& world;
  const JobOptions& options;
  const Memory& memory;  // what every concern remembers, for all to read
  // The status that this operator wants, in which every concern reports; StatusState::current.
  JobStatus& report;
  std::string profile_hash;  // of the job's model; empty: the model is invalid
  // False: the spec is invalid now; a job that has a plan continues with it.
  bool spec_is_valid = true;
  LinePlace line = LinePlace::kNone;
  std::optional<int64_t> turn;                  // in which the units were counted, of a job without a plan
  std::shared_ptr<const Observation> observed;  // the coordinator's latest; null before the first
  std::string coordinator;                      // the address to which this pass is connected; empty: none

  // The part of the memory that belongs to a concern. It compiles in the concern's own source alone (Owner); others
  // read `memory`, and call the concern's functions.
  template <typename State>
  State& Own(State Memory::*part, Owner<State> = {}) {
    return memory_.*part;
  }
  Memory TakeMemory() { return std::move(memory_); }

 private:
  // nullopt from the first action without an answer on.
  std::optional<Answer> AnswerOf(Action action);
  static absl::Status NotAnswered();

  const std::function<std::optional<Answer>(const Action&)>& respond_;
  std::optional<Action> unanswered_;
  std::vector<Effect> effects_;
  std::optional<base::nanoseconds> requeue_after_;
};

}  // namespace medley::ops::lifecycle
