#include "scheduler-service/handlers/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <thread>
#include <vector>

#include "common/base/testing/status_matchers.h"

namespace medley::sched {
namespace {

class AdmissionTest : public testing::Test {
 protected:
  template <typename Condition>
  void WaitFor(Condition condition) {
    const base::SteadyTime deadline = clock_.Steady() + base::seconds(60);
    while (!condition() && clock_.Steady() < deadline) clock_.SleepFor(base::milliseconds(1), {});
    ASSERT_TRUE(condition());
  }
  static constexpr base::SteadyTime kNever = base::SteadyTime::max();

  base::SystemClock clock_;
  metrics::Registry metrics_;
};

TEST_F(AdmissionTest, FirstComeFirstServed) {
  Admission admission({.max_running = 1, .max_waiting = 8, .max_wait = base::seconds(60)}, &metrics_, clock_);
  auto first = admission.Enter(CostClass::kExpensive, {}, kNever);
  ASSERT_THAT(first, base::IsOk());
  std::optional<Admission::Permit> held(*std::move(first));
  base::Mutex mutex;
  std::vector<int> order;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 5; ++i) {
    threads.emplace_back([&, i] {
      const auto permit = admission.Enter(CostClass::kExpensive, {}, kNever);
      EXPECT_THAT(permit, base::IsOk());
      base::MutexLock lock(mutex);
      order.push_back(i);
    });
    WaitFor([&] { return admission.waiting() == i + 1; });
  }
  held.reset();
  threads.clear();
  EXPECT_THAT(order, testing::ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(admission.running(), 0);
}

TEST_F(AdmissionTest, RejectsWhenTheQueueIsFullOrTheTimeIsUp) {
  Admission admission({.max_running = 1, .max_waiting = 1, .max_wait = base::milliseconds(20)}, &metrics_, clock_);
  const auto held = admission.Enter(CostClass::kExpensive, {}, kNever);
  EXPECT_THAT(admission.Enter(CostClass::kExpensive, {}, kNever),
              base::StatusIs(absl::StatusCode::kResourceExhausted, testing::HasSubstr("0.02 s")));
  EXPECT_THAT(admission.Enter(CostClass::kExpensive, {}, clock_.Steady() + base::milliseconds(5)),
              base::StatusIs(absl::StatusCode::kDeadlineExceeded));
  Admission narrow({.max_running = 0, .max_waiting = 0, .max_wait = base::seconds(60)}, &metrics_, clock_);
  EXPECT_THAT(narrow.Enter(CostClass::kExpensive, {}, kNever), base::StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST_F(AdmissionTest, TheStopTokenEndsWaiting) {
  Admission admission({.max_running = 0, .max_waiting = 2, .max_wait = base::seconds(600)}, &metrics_, clock_);
  std::stop_source stop;
  std::jthread waiting([&] {
    EXPECT_THAT(admission.Enter(CostClass::kExpensive, stop.get_token(), kNever),
                base::StatusIs(absl::StatusCode::kCancelled));
  });
  WaitFor([&] { return admission.waiting() == 1; });
  stop.request_stop();
  waiting.join();
  EXPECT_EQ(admission.waiting(), 0);
}

TEST_F(AdmissionTest, CloseRejectsNewAndWaitingRequests) {
  Admission admission({.max_running = 1, .max_waiting = 2, .max_wait = base::seconds(600)}, &metrics_, clock_);
  auto first = admission.Enter(CostClass::kExpensive, {}, kNever);
  std::optional<Admission::Permit> held(*std::move(first));
  std::jthread waiting([&] {
    EXPECT_THAT(admission.Enter(CostClass::kExpensive, {}, kNever), base::StatusIs(absl::StatusCode::kUnavailable));
  });
  WaitFor([&] { return admission.waiting() == 1; });
  admission.Close();
  waiting.join();
  EXPECT_THAT(admission.Enter(CostClass::kExpensive, {}, kNever), base::StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_FALSE(admission.WaitIdle(base::milliseconds(5)));
  held.reset();
  EXPECT_TRUE(admission.WaitIdle(base::milliseconds(5)));
}

}  // namespace
}  // namespace medley::sched
