#include "operator/runtime/event_recorder.h"

#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "kube/client/testing/fake_client.h"
#include "kube/errors.h"

namespace medley::ops {
namespace {

using Type = EventRecorder::Type;

class EventRecorderTest : public testing::Test {
 protected:
  EventRecorderTest() : job_(kube::Resource{"medley.dev", "v1", "jobs", "Job"}, {"ns", "j"}) {
    job_.mutable_json()["metadata"]["uid"] = "u1";
    client_.on_create = [this](const kube::Object& object) -> absl::StatusOr<kube::Object> {
      created_.push_back(object);
      return object;
    };
    client_.on_patch = [this](const kube::Key& key, const kube::Json& patch) -> absl::StatusOr<kube::Object> {
      if (forgotten_) return kube::ErrorFromHttp(404, "", "patch");
      patched_.emplace_back(key, patch);
      return kube::Object();
    };
  }
  void Flush(EventRecorder& recorder) { ASSERT_TRUE(recorder.Flush(base::seconds(60))); }

  base::FakeClock clock_;
  kube::FakeClient client_;
  kube::Object job_;
  // Written by the recorder's thread; the test reads it after Flush.
  std::vector<kube::Object> created_;
  std::vector<std::pair<kube::Key, kube::Json>> patched_;
  bool forgotten_ = false;
};

TEST_F(EventRecorderTest, WritesTheFieldsOfAnEvent) {
  EventRecorder recorder(client_, clock_, {});
  recorder.Record(job_, Type::kWarning, "Infeasible", "no pool has enough units");
  Flush(recorder);
  ASSERT_EQ(created_.size(), 1u);
  const kube::Object& event = created_[0];
  EXPECT_EQ(event.key().ns, "ns");
  EXPECT_TRUE(event.key().name.starts_with("j."));
  EXPECT_EQ(event.String("/involvedObject/kind"), "Job");
  EXPECT_EQ(event.String("/involvedObject/uid"), "u1");
  EXPECT_EQ(event.String("/type"), "Warning");
  EXPECT_EQ(event.String("/reason"), "Infeasible");
  EXPECT_EQ(event.String("/message"), "no pool has enough units");
  EXPECT_EQ(event.String("/source/component"), "medley-operator");
  EXPECT_EQ(event.At("/count"), 1);
}

TEST_F(EventRecorderTest, TheSameEventCountsUp) {
  EventRecorder recorder(client_, clock_, {});
  for (int i = 0; i < 3; ++i) recorder.Record(job_, Type::kNormal, "Planned", "m");
  recorder.Record(job_, Type::kNormal, "Planned", "another");
  Flush(recorder);
  EXPECT_EQ(created_.size(), 2u);
  ASSERT_EQ(patched_.size(), 2u);
  EXPECT_EQ(patched_[1].first, created_[0].key());
  EXPECT_EQ(patched_[1].second["count"], 3);
}

TEST_F(EventRecorderTest, AfterTheWindowOrWhenForgottenItIsCreatedAnew) {
  EventRecorder recorder(client_, clock_, {});
  recorder.Record(job_, Type::kNormal, "Planned", "m");
  Flush(recorder);
  forgotten_ = true;
  recorder.Record(job_, Type::kNormal, "Planned", "m");
  Flush(recorder);
  EXPECT_EQ(created_.size(), 2u);
  clock_.Advance(std::chrono::minutes(11));
  recorder.Record(job_, Type::kNormal, "Planned", "m");
  Flush(recorder);
  EXPECT_EQ(created_.size(), 3u);
  EXPECT_NE(created_[0].key(), created_[1].key());
}

TEST_F(EventRecorderTest, TheRateOfOneObjectIsBounded) {
  EventRecorder recorder(client_, clock_, {.burst = 5, .per_second = 1});
  for (int i = 0; i < 20; ++i) recorder.Record(job_, Type::kNormal, "R", std::to_string(i));
  Flush(recorder);
  EXPECT_EQ(created_.size(), 5u);
  EXPECT_EQ(recorder.dropped(), 15);
  clock_.Advance(base::seconds(1));
  recorder.Record(job_, Type::kNormal, "R", "later");
  Flush(recorder);
  EXPECT_EQ(created_.size(), 6u);
}

TEST_F(EventRecorderTest, NeverFailsItsCaller) {
  client_.on_create = [](const kube::Object&) -> absl::StatusOr<kube::Object> {
    return kube::ErrorFromHttp(403, "", "create");
  };
  EventRecorder recorder(client_, clock_, {});
  recorder.Record(job_, Type::kNormal, "R", std::string(5000, 'x'));
  Flush(recorder);
  EXPECT_EQ(recorder.dropped(), 1);
}

TEST_F(EventRecorderTest, TheDestructorDropsQueuedEvents) {
  client_.on_create = [](const kube::Object&) -> absl::StatusOr<kube::Object> { return base::Unavailable("down"); };
  EventRecorder recorder(client_, clock_, {});
  recorder.Record(job_, Type::kNormal, "R", "m");
  ASSERT_TRUE(clock_.WaitForSleepers(1));  // between two attempts
}

}  // namespace
}  // namespace medley::ops
