#include "operator/runtime/manager.h"

#include <algorithm>
#include <atomic>

#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "tests/unit/kube/leader/lease_server.h"

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
  EXPECT_EQ(log_, (std::vector<std::string>{"+http", "+cache", "+other", "+controller", "-controller", "-other",
                                            "-cache", "-http"}));
}

TEST_F(ManagerTest, E5_AFailedStartStopsWhatRuns) {
  manager_.Add(Part(Phase::kServers, "http"));
  manager_.Add(Part(Phase::kCaches, "cache", base::DeadlineExceeded("slow")));
  manager_.Add(Part(Phase::kControllers, "controller"));
  EXPECT_THAT(manager_.Start({}),
              base::StatusIs(absl::StatusCode::kDeadlineExceeded, testing::HasSubstr("start cache: slow")));
  EXPECT_EQ(log_, (std::vector<std::string>{"+http", "+cache", "-http"}));
}

TEST_F(ManagerTest, E5_AStopLongerThanTheGraceIsAnError) {
  manager_.Add({Phase::kOthers, "sloth", [](std::stop_token) { return absl::OkStatus(); },
                [this] { clock_.Advance(base::seconds(31)); }});
  ASSERT_THAT(manager_.Start({}), base::IsOk());
  EXPECT_THAT(manager_.Stop(), base::StatusIs(absl::StatusCode::kDeadlineExceeded, testing::HasSubstr("sloth")));
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
  EXPECT_THAT(manager_.Healthy(), base::StatusIs(absl::StatusCode::kUnavailable, testing::HasSubstr("ping: no pulse")));
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

// With an election: controllers run while this process leads.
class ElectedManagerTest : public ManagerTest {
 protected:
  ~ElectedManagerTest() override { manager_.Stop().IgnoreError(); }
  void Add() {
    manager_.Add(Logged(Phase::kControllers, "controller"));
    manager_.Add(Logged(Phase::kOthers, "other"));
    manager_.Add(Logged(Phase::kCaches, "cache"));
    manager_.Add(Logged(Phase::kServers, "http"));
    leases_.before = [this](const std::string& verb) -> absl::Status {
      if (down_) return base::Unavailable("down");
      if (verb == "update" && closing_) Log("lease");
      return absl::OkStatus();
    };
    ASSERT_THAT(manager_.Elect(leases_.client, {.lease = kube::kLease, .identity = "me", .release_on_cancel = true}),
                base::IsOk());
  }
  Manager::Part Logged(Phase phase, const std::string& name) {
    return {phase, name,
            [this, name](std::stop_token) {
              Log("+" + name);
              return absl::OkStatus();
            },
            [this, name] { Log("-" + name); }};
  }
  void Log(const std::string& what) {
    base::MutexLock lock(mutex_);
    seen_.push_back(what);
    changed_.NotifyAll();
  }
  std::vector<std::string> Seen() {
    base::MutexLock lock(mutex_);
    return seen_;
  }
  bool WaitFor(const std::string& what) {
    base::MutexLock lock(mutex_);
    return changed_.WaitFor(mutex_, {}, base::seconds(60),
                            [&] { return std::find(seen_.begin(), seen_.end(), what) != seen_.end(); });
  }

  kube::LeaseServer leases_;
  std::atomic<bool> down_ = false, closing_ = false;
  base::Mutex mutex_;
  base::CondVar changed_;
  std::vector<std::string> seen_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(ElectedManagerTest, E5_ControllersStartLastWhenElectedAndTheLeaseIsGivenUpAfterThem) {
  Add();
  EXPECT_FALSE(manager_.leading());
  ASSERT_THAT(manager_.Start({}), base::IsOk());
  ASSERT_TRUE(WaitFor("+controller"));
  EXPECT_TRUE(manager_.leading());
  EXPECT_THAT(manager_.Guard(), base::IsOk());
  EXPECT_THAT(manager_.Ready(), base::IsOk());
  closing_ = true;
  ASSERT_THAT(manager_.Stop(), base::IsOk());
  EXPECT_EQ(Seen(), (std::vector<std::string>{"+http", "+cache", "+other", "+controller", "-controller", "lease",
                                              "-other", "-cache", "-http"}));
  EXPECT_EQ(leases_.record().holder, "");
  EXPECT_THAT(manager_.Guard(), base::StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(ElectedManagerTest, E5_AStandbyIsReadyAndHealthyAndRunsNoController) {
  leases_.Set({.holder = "other", .lease_seconds = 15, .transitions = 6});
  Add();
  ASSERT_THAT(manager_.Start({}), base::IsOk());
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  EXPECT_THAT(manager_.Ready(), base::IsOk());
  EXPECT_THAT(manager_.Healthy(), base::IsOk());
  EXPECT_FALSE(manager_.leading());
  EXPECT_THAT(manager_.Guard(), base::StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(Seen(), (std::vector<std::string>{"+http", "+cache", "+other"}));
  clock_.Advance(base::seconds(16));  // the other holder did not renew the Lease
  ASSERT_TRUE(WaitFor("+controller"));
  EXPECT_EQ(manager_.term(), 7);
  ASSERT_THAT(manager_.Stop(), base::IsOk());
}

TEST_F(ElectedManagerTest, E5_ALostLeadEndsWaitAtOnceWithoutGrace) {
  std::atomic<bool> stuck = true;
  base::Mutex mutex;
  base::CondVar freed;
  manager_.Add({Phase::kControllers, "stuck", [](std::stop_token) { return absl::OkStatus(); },
                [&] {
                  base::MutexLock lock(mutex);
                  freed.WaitFor(mutex, {}, base::seconds(60), [&] { return !stuck; });
                }});
  Add();
  ASSERT_THAT(manager_.Start({}), base::IsOk());
  ASSERT_TRUE(WaitFor("+controller"));
  ASSERT_TRUE(clock_.WaitForSleepers(2));
  down_ = true;
  clock_.Advance(base::seconds(10));
  EXPECT_THAT(manager_.Wait({}), base::StatusIs(absl::StatusCode::kAborted, testing::HasSubstr("lost")));
  EXPECT_TRUE(stuck);  // Wait returned without waiting for it
  EXPECT_FALSE(manager_.leading());
  clock_.Advance(base::seconds(26));  // if the process does not exit:
  EXPECT_THAT(manager_.Healthy(),
              base::StatusIs(absl::StatusCode::kDeadlineExceeded, testing::HasSubstr("leader election")));
  {
    base::MutexLock lock(mutex);
    stuck = false;
    freed.NotifyAll();
  }
  manager_.Stop().IgnoreError();  // 36 s have passed
}

TEST_F(ElectedManagerTest, E5_AControllerThatCannotStartEndsWaitAndGivesTheLeaseUp) {
  manager_.Add({Phase::kControllers, "broken",
                [](std::stop_token) { return base::DeadlineExceeded("cache not filled"); }, [] {}});
  Add();
  ASSERT_THAT(manager_.Start({}), base::IsOk());
  EXPECT_THAT(manager_.Wait({}), base::StatusIs(absl::StatusCode::kDeadlineExceeded,
                                                testing::HasSubstr("start broken: cache not filled")));
  ASSERT_THAT(manager_.Stop(), base::IsOk());
  EXPECT_EQ(leases_.record().holder, "");
}

}  // namespace
}  // namespace medley::ops
