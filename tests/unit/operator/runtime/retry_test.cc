#include "operator/runtime/retry.h"

#include "common/base/testing/status_matchers.h"
#include "kube/client/testing/fake_client.h"
#include "kube/errors.h"

namespace medley::ops {
namespace {

const kube::Key kKey{"ns", "p"};

absl::Status Conflict() {
  return kube::ErrorFromHttp(409, R"({"kind":"Status","reason":"Conflict","message":"m"})", "test");
}

kube::Object Versioned(int version) {
  kube::Object pod(kube::resources::Pods(), kKey);
  pod.mutable_json()["metadata"]["resourceVersion"] = std::to_string(version);
  return pod;
}

TEST(RetryTest, E3_FiveTriesOnConflictOnly) {
  base::SystemClock clock;  // real: the pauses are 10 ms
  int calls = 0;
  EXPECT_TRUE(kube::IsConflict(RetryOnConflict(clock, 1, {}, [&] {
    ++calls;
    return Conflict();
  })));
  EXPECT_EQ(calls, 5);
  calls = 0;
  EXPECT_THAT(RetryOnConflict(clock, 1, {}, [&] { return ++calls < 3 ? Conflict() : absl::OkStatus(); }), base::IsOk());
  EXPECT_EQ(calls, 3);
  calls = 0;
  EXPECT_THAT(RetryOnConflict(clock, 1, {},
                              [&]() -> absl::Status {
                                ++calls;
                                return base::NotFound("x");
                              }),
              base::StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(calls, 1);
}

// A clock that records sleeps and does not wait.
class LeapingClock final : public base::Clock {
 public:
  base::WallTime Now() const override { return {}; }
  base::SteadyTime Steady() const override { return now_; }
  bool SleepUntil(base::SteadyTime deadline, std::stop_token stop) override {
    sleeps.push_back(base::ToSeconds(deadline - now_));
    now_ = deadline;
    return !stop.stop_requested();
  }
  std::vector<double> sleeps;

 private:
  base::SteadyTime now_{base::seconds(1000)};
};

TEST(RetryTest, E3_TenMillisecondsBetweenTriesGiveOrTakeATenth) {
  LeapingClock clock;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_TRUE(kube::IsConflict(RetryOnConflict(clock, seed, {}, [] { return Conflict(); })));
  }
  ASSERT_EQ(clock.sleeps.size(), 80u);
  for (const double sleep : clock.sleeps) {
    EXPECT_GE(sleep, 0.009);
    EXPECT_LE(sleep, 0.011);
  }
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THAT(RetryOnConflict(clock, 1, stop.get_token(), [] { return Conflict(); }),
              base::StatusIs(absl::StatusCode::kCancelled));
}

TEST(RetryTest, E3_ReadsAnewEachTimeAndWritesWithTheVersionRead) {
  base::SystemClock clock;
  kube::FakeClient client;
  int version = 1;
  std::vector<std::string> written;
  client.on_get = [&](const kube::Key&) { return Versioned(version++); };
  client.on_update = [&](const kube::Object& object, std::string_view sub) -> absl::StatusOr<kube::Object> {
    EXPECT_EQ(sub, "status");
    written.push_back(object.resource_version());
    if (written.size() < 3) return Conflict();
    return object;
  };
  const auto change = [](kube::Object& object) {
    object.mutable_json()["status"]["x"] = 1;
    return absl::OkStatus();
  };
  const auto stored = UpdateWithRetry(client, kube::resources::Pods(), kKey, "status", clock, 1, {}, change);
  ASSERT_THAT(stored, base::IsOk());
  EXPECT_EQ(written, (std::vector<std::string>{"1", "2", "3"}));
}

TEST(RetryTest, NoWriteWhenNothingChanged) {
  base::SystemClock clock;
  kube::FakeClient client;
  client.on_get = [&](const kube::Key&) { return Versioned(1); };
  const auto stored = UpdateWithRetry(client, kube::resources::Pods(), kKey, "", clock, 1, {},
                                      [](kube::Object&) { return absl::OkStatus(); });
  EXPECT_THAT(stored, base::IsOk());  // the fake would have refused an update
}

}  // namespace
}  // namespace medley::ops
