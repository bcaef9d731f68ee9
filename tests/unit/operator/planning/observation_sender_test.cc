#include "operator/planning/observation_sender.h"

#include <gmock/gmock.h>

#include <chrono>

#include "common/base/testing/status_matchers.h"
#include "common/model/observation.h"

namespace medley::ops {
namespace {

using base::IsOk;
using base::StatusIs;

constexpr std::chrono::seconds kSenderPatience(60);

model::JobObservation Of(const std::string& job, int64_t generation) {
  model::JobObservation o;
  o.job_uid = job;
  o.generation = generation;
  return o;
}

// A service that responds only when the test lets it, and records what it received.
class Service {
 public:
  ObservationSender::Send Sending() {
    return [this](const model::JobObservation& o, const std::string& tenant,
                  std::stop_token stop) -> absl::StatusOr<model::Prediction> {
      EXPECT_EQ(tenant, "namespace of " + o.job_uid);
      base::MutexLock lock(mutex_);
      heard_.emplace_back(o.job_uid, o.generation);
      changed_.NotifyAll();
      if (!changed_.WaitFor(mutex_, stop, kSenderPatience, [this] { return open_; })) return base::Unavailable("away");
      return model::Prediction{.observations = 1};
    };
  }
  ObservationSender::OnAnswer Answers() {
    return [this](const absl::StatusOr<model::Prediction>& answer) {
      base::MutexLock lock(mutex_);
      answers_.push_back(answer.status());
      changed_.NotifyAll();
    };
  }
  void Open() {
    base::MutexLock lock(mutex_);
    open_ = true;
    changed_.NotifyAll();
  }
  std::vector<std::pair<std::string, int64_t>> Heard(size_t count) {
    base::MutexLock lock(mutex_);
    changed_.WaitFor(mutex_, {}, kSenderPatience, [&] { return heard_.size() >= count; });
    return heard_;
  }
  std::vector<absl::Status> AnswersHeard(size_t count) {
    base::MutexLock lock(mutex_);
    changed_.WaitFor(mutex_, {}, kSenderPatience, [&] { return answers_.size() >= count; });
    return answers_;
  }

 private:
  base::Mutex mutex_;
  base::CondVar changed_;
  bool open_ = false;
  std::vector<std::pair<std::string, int64_t>> heard_;
  std::vector<absl::Status> answers_;
};

TEST(ObservationSenderTest, KeepsTheNewestOfEachJobAndDropsTheRest) {
  Service service;
  ObservationSender sender({.capacity = 2}, service.Sending(), service.Answers());
  sender.Start();
  sender.Offer(std::make_shared<model::JobObservation>(Of("a", 1)), "namespace of a");
  service.Heard(1);  // being sent; Offer did not wait for it
  sender.Offer(std::make_shared<model::JobObservation>(Of("b", 1)), "namespace of b");
  sender.Offer(std::make_shared<model::JobObservation>(Of("b", 2)), "namespace of b");
  sender.Offer(std::make_shared<model::JobObservation>(Of("c", 1)), "namespace of c");
  sender.Offer(std::make_shared<model::JobObservation>(Of("d", 1)),
               "namespace of d");  // dropped: two jobs are waiting already
  service.Open();
  EXPECT_EQ(service.Heard(3), (std::vector<std::pair<std::string, int64_t>>{{"a", 1}, {"b", 2}, {"c", 1}}));
  const std::vector<absl::Status> answers = service.AnswersHeard(4);
  ASSERT_EQ(answers.size(), 4u);
  EXPECT_THAT(answers[0], IsOk());
  EXPECT_THAT(answers[1], StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(answers[2], IsOk());
}

TEST(ObservationSenderTest, StopDoesNotWaitForTheService) {
  Service service;
  ObservationSender sender({}, service.Sending(), service.Answers());
  sender.Start();
  sender.Offer(std::make_shared<model::JobObservation>(Of("a", 1)), "namespace of a");
  service.Heard(1);
  sender.Offer(std::make_shared<model::JobObservation>(Of("b", 1)), "namespace of b");
  sender.Stop();
  sender.Stop();
  EXPECT_EQ(service.Heard(1).size(), 1u);
  EXPECT_THAT(service.AnswersHeard(1).at(0), StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace medley::ops
