// Answers that take long.
#include <algorithm>

#include "common/base/status.h"
#include "tests/unit/operator/lifecycle/fake_cluster.h"

namespace medley::ops::lifecycle {
namespace {

// The answer of an action that may take long.
struct NotYet {
  template <typename A>
  Answer operator()(const A&) const {
    if constexpr (std::is_constructible_v<typename A::Answer, std::nullopt_t>) {
      return typename A::Answer(std::nullopt);
    } else {
      MEDLEY_CHECK(false, "this action is answered at once");
    }
  }
};

}  // namespace

std::optional<Answer> FakeCluster::Delayed(const Action& action) {
  const std::string what = Describe(action);
  const auto delay =
      std::find_if(delays.begin(), delays.end(), [&](const auto& each) { return what.starts_with(each.first); });
  if (delay == delays.end()) return std::nullopt;
  const auto* plan = std::get_if<AskForPlan>(&action);
  const std::shared_ptr<const void> request = plan == nullptr ? nullptr : plan->request;
  Call& call = calls_[delay->first];
  if (call.question != what || call.request != request) call = {what, request, elapsed_ + delay->second};
  if (elapsed_ < call.due) return std::visit(NotYet(), action);
  calls_.erase(delay->first);
  return std::nullopt;
}

}  // namespace medley::ops::lifecycle
