#include "operator/capacity/signed_pods.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "common/base/testing/fake_clock.h"

namespace medley::ops {
namespace {

using kube::Json;

// Two operators with the same keys, and the API server's part: it gives a UID and a time to each pod.
class SignedPodsTest : public testing::Test {
 protected:
  kube::Object Member(const std::string& name = "adult-0-cpu-0") {
    return kube::Object(Json{{"kind", "Pod"},
                             {"metadata",
                              {{"name", name},
                               {"namespace", "ns"},
                               {"ownerReferences",
                                {{{"apiVersion", "medley.dev/v1alpha1"},
                                  {"kind", "TrainingJob"},
                                  {"name", "adult"},
                                  {"uid", "job-1"},
                                  {"controller", true}}}}}},
                             {"spec", {{"containers", {{{"name", "worker"}, {"args", {"--role=trainer"}}}}}}}});
  }
  kube::Object Stored(kube::Object pod) {
    pod.mutable_json()["metadata"]["uid"] = "uid-" + std::to_string(++uids_);
    pod.mutable_json()["metadata"]["creationTimestamp"] = base::FormatTime(clock_.Now() + server_ahead_);
    return pod;
  }
  kube::Object Signed(SignedPods& by) {
    kube::Object pod = Member();
    by.Sign(pod);
    return pod;
  }
  SignedPods NewOperator() { return SignedPods(keys_, clock_); }

  base::FakeClock clock_;
  const RecordKeys keys_;
  std::chrono::seconds server_ahead_{0};
  int uids_ = 0;
};

TEST_F(SignedPodsTest, ACopyIsNotThePodThatWasSigned) {
  struct History {
    const char* what;
    bool created;    // the answer of the creation arrived
    bool seen;       // the pod was seen before the copy
    bool restarted;  // another operator judges, which has seen neither
    base::nanoseconds later;
    PodOrigin copy;
  };
  const base::nanoseconds now{0};
  const base::nanoseconds hour = std::chrono::hours(1);
  const History histories[] = {
      {"at once", true, true, false, now, PodOrigin::kCopy},
      {"at once, the original was never seen", true, false, false, now, PodOrigin::kCopy},
      {"at once, the answer of the creation was lost", false, true, false, now, PodOrigin::kCopy},
      {"an hour later", true, true, false, hour, PodOrigin::kCopy},
      {"an hour later, the answer was lost and the original never seen", false, false, false, hour, PodOrigin::kCopy},
      {"three minutes later, while no operator ran", false, false, true, std::chrono::minutes(3), PodOrigin::kCopy},
      {"an hour later, while no operator ran", false, false, true, hour, PodOrigin::kCopy},
  };
  for (const History& history : histories) {
    SCOPED_TRACE(history.what);
    SignedPods first = NewOperator(), second = NewOperator();
    const kube::Object sent = Signed(first);
    const kube::Object pod = Stored(sent);
    if (history.created) {
      EXPECT_TRUE(first.Created(pod));
    }
    if (history.seen) {
      EXPECT_EQ(first.OriginOf(pod), PodOrigin::kOwn);
      first.Erased(pod.key(), pod.uid());
    }
    clock_.Advance(history.later);
    const kube::Object copy = Stored(sent);
    SignedPods& judge = history.restarted ? second : first;
    EXPECT_EQ(judge.OriginOf(copy), history.copy);
    judge.Erased(pod.key(), pod.uid());  // the deletion of the original is heard of late
    clock_.Advance(hour);
    EXPECT_EQ(judge.OriginOf(copy), history.copy) << "for as long as it exists";
    SignedPods third = NewOperator();
    if (history.later > kSignedFor) {
      EXPECT_EQ(third.OriginOf(copy), history.copy) << "whoever looks at it";
    }
  }
}

TEST_F(SignedPodsTest, APodOfTheOperatorStaysItsOwn) {
  SignedPods first = NewOperator();
  const kube::Object pod = Stored(Signed(first));
  // It crashes before the answer; then others lead, hours later too.
  for (const base::nanoseconds later : {base::nanoseconds(0), base::nanoseconds(std::chrono::hours(9))}) {
    clock_.Advance(later);
    SignedPods next = NewOperator();
    EXPECT_EQ(next.OriginOf(pod), PodOrigin::kOwn);
    clock_.Advance(std::chrono::hours(1));
    kube::Object changed = pod;
    changed.mutable_json()["status"]["phase"] = "Running";
    EXPECT_EQ(next.OriginOf(changed), PodOrigin::kOwn);
  }
}

TEST_F(SignedPodsTest, AReplacementOfTheSameNameIsItsOwn) {
  SignedPods pods = NewOperator();
  const kube::Object first = Stored(Signed(pods));
  EXPECT_EQ(pods.OriginOf(first), PodOrigin::kOwn);
  clock_.Advance(base::seconds(1));
  const kube::Object sent = Signed(pods);
  const kube::Object second = Stored(sent);
  EXPECT_EQ(pods.OriginOf(second), PodOrigin::kOwn) << "seen before the answer of the creation";
  EXPECT_TRUE(pods.Created(second));
  EXPECT_EQ(pods.OriginOf(second), PodOrigin::kOwn);
  pods.Erased(first.key(), first.uid());
  // A copy of the pod before it, whose signature is still in time.
  EXPECT_EQ(pods.OriginOf(Stored(first)), PodOrigin::kCopy);
  EXPECT_EQ(pods.OriginOf(Stored(sent)), PodOrigin::kCopy);
}

TEST_F(SignedPodsTest, UnsignedPodsAreNotCopies) {
  SignedPods pods = NewOperator();
  EXPECT_EQ(pods.OriginOf(Stored(Member())), PodOrigin::kUnsigned);
  kube::Object foreign = Member();
  SignPod(RecordKeys({std::string(32, 'x')}), clock_.Now(), foreign);
  EXPECT_EQ(pods.OriginOf(Stored(foreign)), PodOrigin::kUnsigned);
  EXPECT_EQ(pods.size(), 0u);
}

// The first pod of an operator whose clock differs is not believed; it knows the API server's time from then on.
TEST_F(SignedPodsTest, ClocksThatDifferAreFoundByTheFirstCreation) {
  for (const std::chrono::seconds ahead : {std::chrono::hours(2), -std::chrono::hours(2)}) {
    server_ahead_ = ahead;
    SignedPods pods = NewOperator();
    const kube::Object refused = Stored(Signed(pods));
    EXPECT_FALSE(pods.Created(refused));
    EXPECT_EQ(pods.OriginOf(refused), PodOrigin::kCopy) << "so it must be deleted";
    const kube::Object again = Stored(Signed(pods));
    EXPECT_TRUE(pods.Created(again));
    EXPECT_EQ(pods.OriginOf(again), PodOrigin::kOwn);
    SignedPods next = NewOperator();
    EXPECT_EQ(next.OriginOf(again), PodOrigin::kOwn) << "only the API server's clock counts";
  }
}

TEST_F(SignedPodsTest, DifferencesOfSecondsAreAllowed) {
  for (const std::chrono::seconds ahead : {std::chrono::seconds(-30), std::chrono::seconds(30)}) {
    server_ahead_ = ahead;
    SignedPods pods = NewOperator();
    EXPECT_TRUE(pods.Created(Stored(Signed(pods))));
  }
}

TEST_F(SignedPodsTest, DeletedPodsAreForgotten) {
  SignedPods pods = NewOperator();
  for (int i = 0; i < 500; ++i) {
    kube::Object pod = Member("adult-" + std::to_string(i) + "-cpu-0");
    pods.Sign(pod);
    pod = Stored(pod);
    EXPECT_TRUE(pods.Created(pod));
    EXPECT_EQ(pods.OriginOf(pod), PodOrigin::kOwn);
    pods.Erased(pod.key(), pod.uid());
    clock_.Advance(base::seconds(10));
  }
  EXPECT_LT(pods.size(), 60u);
}

}  // namespace
}  // namespace medley::ops
