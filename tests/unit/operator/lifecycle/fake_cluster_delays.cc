// What others do to the pods of the job, and answers that take long.
#include <algorithm>
#include <iterator>

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

void FakeCluster::FailPod(const std::string& name, int code) {
  const kube::Json ended = {
      {"phase", code == 0 ? "Succeeded" : "Failed"},
      {"containerStatuses",
       kube::Json::array({{{"name", "worker"}, {"state", {{"terminated", {{"exitCode", code}}}}}}})}};
  SetPodStatus(name, ended);
}

void FakeCluster::SetPodStatus(const std::string& name, const kube::Json& status) {
  if (pods_.contains(name)) kube::MergePatch(pods_[name].mutable_json()["status"], status);
}

void FakeCluster::DeletePod(const std::string& name) { pods_.erase(name); }

void FakeCluster::CopyPod(const std::string& name) {
  kube::Json& pod = pods_.at(name).mutable_json();
  pod["metadata"]["uid"] = NewUid();
  pod["spec"].erase("nodeName");
  pod["status"] = {{"phase", "Pending"}};
  copies.insert(pod["metadata"]["uid"]);
}

void FakeCluster::TerminatePod(const std::string& name, base::nanoseconds grace) {
  if (!pods_.contains(name)) return;
  kube::Json& metadata = pods_[name].mutable_json()["metadata"];
  metadata["deletionTimestamp"] = base::FormatTime(now() + std::chrono::duration_cast<base::WallTime::duration>(grace));
  metadata["deletionGracePeriodSeconds"] = base::ToSeconds(grace);
}

std::optional<Answer> FakeCluster::Delayed(const Action& action) {
  const std::string what = Describe(action);
  const auto delay =
      std::find_if(delays.begin(), delays.end(), [&](const auto& each) { return what.starts_with(each.first); });
  if (delay == delays.end()) return std::nullopt;
  const auto* plan = std::get_if<AskForPlan>(&action);
  const std::shared_ptr<const void> request = plan == nullptr ? nullptr : plan->request;
  Call& call = calls_[delay->first];
  if (call.question != what || call.request != request) call = {what, request, elapsed_ + delay->second, false};
  if (elapsed_ < call.due) return std::visit(NotYet(), action);
  calls_.erase(delay->first);
  return std::nullopt;
}

void FakeCluster::DropUnwanted() {
  for (auto call = calls_.begin(); call != calls_.end();) {
    const bool drop = call->second.due <= elapsed_ && call->second.was_offered;
    if (call->second.due <= elapsed_) call->second.was_offered = true;
    call = drop ? calls_.erase(call) : std::next(call);
  }
}

}  // namespace medley::ops::lifecycle
