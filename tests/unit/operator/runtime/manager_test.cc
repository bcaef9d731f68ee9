#include "operator/runtime/manager.h"

#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"

namespace medley::ops {
namespace {

using Phase = Manager::Phase;

class ManagerTest : public testing::Test {
 protected:
  Manager::Part Part(Phase phase, const std::string& name, absl::Status status = absl::OkStatus()) {
    return {phase, name,
            [this, name, status](std::stop_token) {
              log_.push_back("+" + name);
              return status;
            },
            [this, name] { log_.push_back("-" + name); }};
  }
  std::vector<std::string> log_;
  base::FakeClock clock_;
  Manager manager_{clock_};
};

TEST_F(ManagerTest, E5_StartsInOrderAndStopsInReverse) {
  manager_.Add(Part(Phase::kControllers, "controller"));
  manager_.Add(Part(Phase::kOthers, "other"));
  manager_.Add(Part(Phase::kCaches, "cache"));
  manager_.Add(Part(Phase::kServers, "http"));
  EXPECT_THAT(manager_.Start({}), base::IsOk());
  EXPECT_THAT(manager_.Stop(), base::IsOk());
  EXPECT_THAT(manager_.Stop(), base::IsOk());
  EXPECT_EQ(log_, (std::vector<std::string>{"+http", "+cache", "+other", "+controller", "-controller",
                                            "-other", "-cache", "-http"}));
}

TEST_F(ManagerTest, E5_AFailedStartStopsWhatRuns) {
  manager_.Add(Part(Phase::kServers, "http"));
  manager_.Add(Part(Phase::kCaches, "cache", base::DeadlineExceeded("slow")));
  manager_.Add(Part(Phase::kControllers, "controller"));
  EXPECT_THAT(manager_.Start({}), base::StatusIs(absl::StatusCode::kDeadlineExceeded,
                                                 testing::HasSubstr("start cache: slow")));
  EXPECT_EQ(log_, (std::vector<std::string>{"+http", "+cache", "-http"}));
}

TEST_F(ManagerTest, E5_AStopLongerThanTheGraceIsAnError) {
  manager_.Add({Phase::kOthers, "sloth", [](std::stop_token) { return absl::OkStatus(); },
                [this] { clock_.Advance(base::seconds(31)); }});
  ASSERT_THAT(manager_.Start({}), base::IsOk());
  EXPECT_THAT(manager_.Stop(),
              base::StatusIs(absl::StatusCode::kDeadlineExceeded, testing::HasSubstr("sloth")));
}

TEST_F(ManagerTest, ChecksNameWhatFails) {
  bool sick = false;
  manager_.AddHealthCheck("ping", [&]() -> absl::Status {
    if (sick) return base::Unavailable("no pulse");
    return absl::OkStatus();
  });
  manager_.AddReadyCheck("caches", [] { return absl::OkStatus(); });
  EXPECT_THAT(manager_.Healthy(), base::IsOk());
  EXPECT_THAT(manager_.Ready(), base::StatusIs(absl::StatusCode::kUnavailable));
  ASSERT_THAT(manager_.Start({}), base::IsOk());
  EXPECT_THAT(manager_.Ready(), base::IsOk());
  sick = true;
  EXPECT_THAT(manager_.Healthy(),
              base::StatusIs(absl::StatusCode::kUnavailable, testing::HasSubstr("ping: no pulse")));
  EXPECT_THAT(manager_.Stop(), base::IsOk());
  EXPECT_THAT(manager_.Ready(), base::StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(ManagerTest, RunEndsWithItsStopToken) {
  std::stop_source stop;
  manager_.Add({Phase::kOthers, "stopper",
                [&](std::stop_token) {
                  stop.request_stop();
                  return absl::OkStatus();
                },
                [] {}});
  EXPECT_THAT(manager_.Run(stop.get_token()), base::IsOk());
}

}  // namespace
}  // namespace medley::ops
