#include "operator/controllers/pod_creation.h"

#include "tests/unit/operator/controllers/controllers_test.h"

namespace medley::ops {
namespace {

class PodCreationTest : public ControllersTest {
 protected:
  PodCreationTest() {
    client_.on_create = [this](const kube::Object& object) {
      stored_ = object;
      stored_.mutable_json()["metadata"]["uid"] = "uid-" + std::to_string(++created_);
      stored_.mutable_json()["metadata"]["creationTimestamp"] = base::FormatTime(clock_.Now() + ahead_);
      return stored_;
    };
    client_.on_delete = [this](const kube::Key& key) {
      deleted_.push_back(key.name);
      return absl::OkStatus();
    };
  }
  static kube::Object Pod() {
    return kube::Object(kube::Json{{"kind", "Pod"},
                                   {"metadata", {{"name", "p"}, {"namespace", "ns"}}},
                                   {"spec", {{"containers", {{{"name", "worker"}}}}}}});
  }
  kube::Object stored_;
  std::vector<std::string> deleted_;
  std::chrono::seconds ahead_{0};
  int created_ = 0;
};

TEST_F(PodCreationTest, WhatItCreatesIsBelieved) {
  EXPECT_THAT(CreateSignedPod(Deps(), Pod()), base::IsOk());
  EXPECT_EQ(signed_pods_.OriginOf(stored_), PodOrigin::kOwn);
  kube::Object copy = stored_;
  copy.mutable_json()["metadata"]["uid"] = "another";
  EXPECT_EQ(signed_pods_.OriginOf(copy), PodOrigin::kCopy);
  EXPECT_TRUE(deleted_.empty());
}

TEST_F(PodCreationTest, ClocksThatDifferCostOneAttempt) {
  ahead_ = std::chrono::hours(1);
  EXPECT_THAT(CreateSignedPod(Deps(), Pod()),
              base::StatusIs(absl::StatusCode::kAborted, testing::HasSubstr("set the clocks")));
  EXPECT_EQ(deleted_, std::vector<std::string>{"p"});
  EXPECT_THAT(CreateSignedPod(Deps(), Pod()), base::IsOk());
  EXPECT_EQ(signed_pods_.OriginOf(stored_), PodOrigin::kOwn);
  EXPECT_EQ(deleted_.size(), 1u);
}

TEST_F(PodCreationTest, ARefusedPodIsNotSpent) {
  client_.on_create = [](const kube::Object&) { return base::AlreadyExists("p"); };
  EXPECT_THAT(CreateSignedPod(Deps(), Pod()), base::StatusIs(absl::StatusCode::kAlreadyExists, "p"));
  EXPECT_EQ(signed_pods_.size(), 0u);
}

}  // namespace
}  // namespace medley::ops
