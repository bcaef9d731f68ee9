// Tests the items of section F of docs/design/kube-client.md.
#include "operator/runtime/expectations.h"

#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"

namespace medley::ops {
namespace {

const kube::Key kJob{"ns", "j"};

kube::Object Child(const std::string& uid, bool deleting = false) {
  kube::Object pod(kube::resources::Pods(), {"ns", "p"});
  pod.mutable_json()["metadata"]["uid"] = uid;
  if (deleting) pod.mutable_json()["metadata"]["deletionTimestamp"] = "2026-11-21T07:15:00Z";
  return pod;
}

class ExpectationsTest : public testing::Test {
 protected:
  base::FakeClock clock_;
  Expectations expectations_{clock_};
};

TEST_F(ExpectationsTest, F1_CreationsAndFailedCreatesLower) {
  EXPECT_TRUE(expectations_.Satisfied(kJob));
  expectations_.ExpectCreations(kJob, 3);
  EXPECT_FALSE(expectations_.Satisfied(kJob));
  expectations_.ObserveAdd(kJob, Child("1"));
  expectations_.ObserveAdd(kJob, Child("2"));
  EXPECT_FALSE(expectations_.Satisfied(kJob));
  expectations_.CreationObserved(kJob);  // the third creation failed
  EXPECT_TRUE(expectations_.Satisfied(kJob));
  expectations_.CreationObserved(kJob);  // below zero stays zero
  expectations_.ExpectCreations(kJob, 1);
  EXPECT_FALSE(expectations_.Satisfied(kJob));
}

TEST_F(ExpectationsTest, F1_ExpireAfterFiveMinutesAndGoWithTheParent) {
  expectations_.ExpectCreations(kJob, 1);
  clock_.Advance(std::chrono::minutes(5));
  EXPECT_FALSE(expectations_.Satisfied(kJob));
  clock_.Advance(base::seconds(1));
  EXPECT_TRUE(expectations_.Satisfied(kJob));
  expectations_.ExpectCreations(kJob, 1);
  EXPECT_FALSE(expectations_.Satisfied(kJob));
  expectations_.Forget(kJob);
  EXPECT_TRUE(expectations_.Satisfied(kJob));
}

TEST_F(ExpectationsTest, F2_AChildFirstSeenTerminatingIsNotACreation) {
  expectations_.ExpectCreations(kJob, 1);
  expectations_.ObserveAdd(kJob, Child("1", true));
  EXPECT_FALSE(expectations_.Satisfied(kJob));
  expectations_.ObserveAdd(kJob, Child("2"));
  EXPECT_TRUE(expectations_.Satisfied(kJob));
}

TEST(SlowStartTest, F3_BatchesDoubleAndStopAtTheFirstThatFails) {
  std::vector<int> tried;
  const auto result = SlowStart(20, [&](int i) -> absl::Status {
    tried.push_back(i);
    if (i == 4) return base::ResourceExhausted("quota");
    return absl::OkStatus();
  });
  EXPECT_EQ(tried.size(), 7u);  // 1 + 2 + 4
  EXPECT_EQ(result.tried, 7);
  EXPECT_EQ(result.succeeded, 6);
  EXPECT_THAT(result.status, base::StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(SlowStartTest, F3_AllWhenNoneFailsUpToTheBurst) {
  EXPECT_EQ(SlowStart(20, [](int) { return absl::OkStatus(); }).succeeded, 20);
  EXPECT_EQ(SlowStart(1000, [](int) { return absl::OkStatus(); }).succeeded, 500);
  EXPECT_EQ(SlowStart(0, [](int) { return absl::OkStatus(); }).tried, 0);
}

}  // namespace
}  // namespace medley::ops
