// Section G of docs/design/kube-client.md: the loops.
#include "kube/leader/elector.h"

#include <thread>

#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "kube/leader/fenced_client.h"
#include "tests/unit/kube/leader/lease_server.h"

namespace medley::kube {
namespace {

using base::milliseconds;
using base::seconds;
using testing::HasSubstr;

constexpr base::nanoseconds kPatience = seconds(60);

// An event that threads wait for.
class Signal {
 public:
  void Set() {
    base::MutexLock lock(mutex_);
    set_ = true;
    changed_.NotifyAll();
  }
  bool Wait(base::nanoseconds patience = kPatience) {
    base::MutexLock lock(mutex_);
    return changed_.WaitFor(mutex_, {}, patience, [&] { return set_; });
  }

 private:
  base::Mutex mutex_;
  base::CondVar changed_;
  bool set_ ABSL_GUARDED_BY(mutex_) = false;
};

class ElectorTest : public testing::Test {
 protected:
  ~ElectorTest() override {
    stop_.request_stop();
    finish_.Set();
    if (thread_.joinable()) thread_.join();
    server_.client.Close();
  }

  LeaderElector::Options Options() { return {.lease = kLease, .identity = "me"}; }
  LeaderElector::Callbacks Callbacks() {
    return {[this](std::stop_token stop) {
              started_.Set();
              base::Mutex mutex;
              base::CondVar never;
              {
                base::MutexLock lock(mutex);
                never.Wait(mutex, stop, [] { return false; });
              }
              end_requested_.Set();
              if (slow_) finish_.Wait();
            },
            [this] { stopped_.Set(); },
            [this](const std::string& holder) {
              base::MutexLock lock(mutex_);
              holders_.push_back(holder);
            }};
  }
  LeaderElector& Make(LeaderElector::Options options) {
    auto made = LeaderElector::Create(server_.client, clock_, std::move(options), Callbacks());
    EXPECT_THAT(made, base::IsOk());
    elector_ = *std::move(made);
    return *elector_;
  }
  void Run() {
    thread_ = std::thread([this] {
      result_ = elector_->Run(stop_.get_token());
      ended_.Set();
    });
  }
  std::vector<std::string> Holders() {
    base::MutexLock lock(mutex_);
    return holders_;
  }
  // Waits until both threads of the leader sleep, advances the clock and waits for the renewal.
  void AdvanceToNextRenewal() {
    const int updates = server_.Calls("update");
    ASSERT_TRUE(clock_.WaitForSleepers(2));
    clock_.Advance(seconds(2));
    ASSERT_TRUE(server_.WaitForCalls("update", updates + 1));
  }

  base::FakeClock clock_;
  LeaseServer server_;
  std::stop_source stop_;
  bool slow_ = false;  // the work ends only after finish_
  // Used by hooks of the server, which threads call until the destructor has joined them: not locals of a test.
  std::atomic<bool> down_ = false, hang_ = false;
  Signal hanging_, answer_;
  Signal started_, end_requested_, finish_, stopped_, ended_;
  absl::Status result_;
  std::unique_ptr<LeaderElector> elector_;
  base::Mutex mutex_;
  std::vector<std::string> holders_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

TEST_F(ElectorTest, G1_DefaultsAndWhatIsRefused) {
  const LeaderElector::Options defaults;
  EXPECT_EQ(defaults.lease_duration, seconds(15));
  EXPECT_EQ(defaults.renew_deadline, seconds(10));
  EXPECT_EQ(defaults.retry_period, seconds(2));
  EXPECT_FALSE(defaults.release_on_cancel);
  const auto refused = [&](base::nanoseconds lease, base::nanoseconds renew, base::nanoseconds retry) {
    LeaderElector::Options options = Options();
    options.lease_duration = lease;
    options.renew_deadline = renew;
    options.retry_period = retry;
    return LeaderElector::Create(server_.client, clock_, options, Callbacks()).status();
  };
  using base::StatusIs;
  constexpr auto kBad = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(refused(seconds(15), seconds(10), seconds(2)), base::IsOk());
  EXPECT_THAT(refused(seconds(10), seconds(10), seconds(2)), StatusIs(kBad, HasSubstr("longer than the renew")));
  EXPECT_THAT(refused(seconds(15), milliseconds(2400), seconds(2)), StatusIs(kBad, HasSubstr("1.2 x the retry")));
  EXPECT_THAT(refused(seconds(15), milliseconds(2401), seconds(2)), base::IsOk());
  EXPECT_THAT(refused(seconds(15), seconds(10), seconds(0)), StatusIs(kBad, HasSubstr("above 0")));
  EXPECT_THAT(refused(milliseconds(15500), seconds(10), seconds(2)), StatusIs(kBad, HasSubstr("whole seconds")));
  LeaderElector::Options nameless = Options();
  nameless.identity.clear();
  EXPECT_THAT(LeaderElector::Create(server_.client, clock_, nameless, Callbacks()).status(), StatusIs(kBad));
}

TEST_F(ElectorTest, G1_IdentityIsHostAndUuidAndTheClientHasHalfTheDeadline) {
  EXPECT_EQ(LeaderIdentity("node-1", 0x0123456789abcdefULL, 0xfedcba9876543210ULL),
            "node-1_01234567-89ab-4def-bedc-ba9876543210");
  EXPECT_EQ(RequestTimeout(seconds(10)), seconds(5));
  EXPECT_EQ(RequestTimeout(milliseconds(1500)), seconds(1));
}

// A clock whose sleeps return at once and advance it; it records them.
class LeapingClock final : public base::Clock {
 public:
  base::WallTime Now() const override { return base::WallTime(seconds(1'700'000'000)); }
  base::SteadyTime Steady() const override {
    base::MutexLock lock(mutex_);
    return now_;
  }
  bool SleepUntil(base::SteadyTime deadline, std::stop_token stop) override {
    if (stop.stop_requested()) return false;
    base::MutexLock lock(mutex_);
    sleeps_.push_back(base::ToSeconds(deadline - now_));
    now_ = std::max(now_, deadline);
    if (sleeps_.size() == 200 && on_last) on_last();
    return true;
  }
  std::vector<double> sleeps() const {
    base::MutexLock lock(mutex_);
    return sleeps_;
  }
  std::function<void()> on_last;

 private:
  mutable base::Mutex mutex_;
  base::SteadyTime now_ ABSL_GUARDED_BY(mutex_) = base::SteadyTime(seconds(1000));
  std::vector<double> sleeps_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(ElectorTest, G2_TriesEveryTwoToFourPointFourSeconds) {
  LeapingClock clock;
  clock.on_last = [this] { stop_.request_stop(); };
  server_.before = [](const std::string&) { return base::Unavailable("down"); };
  auto elector = LeaderElector::Create(server_.client, clock, Options(), Callbacks());
  ASSERT_THAT(elector, base::IsOk());
  EXPECT_THAT((*elector)->Run(stop_.get_token()), base::IsOk());
  EXPECT_TRUE(stopped_.Wait());
  EXPECT_FALSE(started_.Wait(base::nanoseconds(0)));
  EXPECT_EQ(server_.Calls("get"), 200);
  double least = 10, most = 0;
  for (const double sleep : clock.sleeps()) {
    least = std::min(least, sleep);
    most = std::max(most, sleep);
  }
  EXPECT_GE(least, 2.0);
  EXPECT_LT(least, 2.2);
  EXPECT_LT(most, 4.4);
  EXPECT_GT(most, 4.2);
}

TEST_F(ElectorTest, G2_WakesWhenTheLeaseRunsOutInsteadOfAPollLater) {
  LeapingClock clock;
  server_.Set({.holder = "dead", .lease_seconds = 15, .transitions = 3});
  const base::SteadyTime began = clock.Steady();
  base::SteadyTime led{};
  LeaderElector::Callbacks callbacks = Callbacks();
  callbacks.on_started_leading = [](std::stop_token) {};
  callbacks.on_new_leader = [&](const std::string& holder) {
    if (holder == "me") led = clock.Steady();
  };
  auto elector = LeaderElector::Create(server_.client, clock, Options(), callbacks);
  ASSERT_THAT(elector, base::IsOk());
  (*elector)->Run({}).IgnoreError();  // returns because the work ends by itself
  EXPECT_GE(led - began, seconds(15));
  EXPECT_LT(led - began, milliseconds(15'300));  // not up to 4.4 s later
  EXPECT_EQ(server_.record().transitions, 4);
}

TEST_F(ElectorTest, G2_ALeaseThatIsGivenUpIsTakenAtOnce) {
  server_.Set({.holder = "other", .lease_seconds = 15, .transitions = 3});
  LeaderElector& elector = Make(Options());
  Object given_up;
  server_.client.ScriptWatch({.events = {}, .hold = false, .before_end = [this] { answer_.Wait(); }});
  Run();
  ASSERT_TRUE(server_.client.WaitForWatches(1));
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  EXPECT_FALSE(elector.leading());
  server_.Set({.holder = "", .lease_seconds = 1, .transitions = 3});
  server_.client.ScriptWatch({.events = {{WatchEvent::Type::kModified, server_.object()}}, .hold = true});
  answer_.Set();
  ASSERT_TRUE(clock_.WaitForSleepers(2));  // the candidate, and the watch that pauses
  clock_.Advance(milliseconds(1200));      // the watch is opened again; the next attempt would come after 2 s
  EXPECT_TRUE(started_.Wait());
  EXPECT_EQ(elector.term(), 4);
}

TEST_F(ElectorTest, G4_RenewsEveryTwoSecondsWithoutReading) {
  LeaderElector& elector = Make(Options());
  Run();
  ASSERT_TRUE(started_.Wait());
  const int reads = server_.Calls("get");
  for (int i = 0; i < 10; ++i) AdvanceToNextRenewal();
  EXPECT_EQ(server_.Calls("get"), reads);
  EXPECT_THAT(elector.Guard(), base::IsOk());
  EXPECT_TRUE(elector.leading());
}

TEST_F(ElectorTest, G4_NoSuccessWithinTheDeadlineIsALoss) {
  server_.before = [this](const std::string&) { return down_ ? base::Unavailable("down") : absl::OkStatus(); };
  LeaderElector& elector = Make(Options());
  Run();
  ASSERT_TRUE(started_.Wait());
  down_ = true;
  for (int i = 0; i < 4; ++i) AdvanceToNextRenewal();
  EXPECT_FALSE(stopped_.Wait(base::nanoseconds(0)));
  EXPECT_TRUE(elector.leading());  // after 8 s it may still succeed
  ASSERT_TRUE(clock_.WaitForSleepers(2));
  clock_.Advance(seconds(2));
  ASSERT_TRUE(stopped_.Wait());
  EXPECT_TRUE(end_requested_.Wait());
  ASSERT_TRUE(ended_.Wait());
  EXPECT_THAT(result_, base::StatusIs(absl::StatusCode::kAborted, HasSubstr("was lost")));
  EXPECT_FALSE(elector.leading());
}

TEST_F(ElectorTest, G4_ARequestThatHangsDoesNotHideTheDeadline) {
  server_.before = [this](const std::string&) {
    if (hang_) {
      hanging_.Set();
      answer_.Wait();
    }
    return absl::OkStatus();
  };
  slow_ = true;  // nor does the work end at once
  Make(Options());
  Run();
  ASSERT_TRUE(started_.Wait());
  hang_ = true;
  ASSERT_TRUE(clock_.WaitForSleepers(2));
  clock_.Advance(seconds(2));
  ASSERT_TRUE(hanging_.Wait());
  clock_.Advance(seconds(8));
  EXPECT_TRUE(stopped_.Wait());  // while the request hangs and the work continues
  EXPECT_FALSE(ended_.Wait(base::nanoseconds(0)));
  answer_.Set();
  finish_.Set();
  ASSERT_TRUE(ended_.Wait());
  EXPECT_THAT(result_, base::StatusIs(absl::StatusCode::kAborted));
}

TEST_F(ElectorTest, G4_AnotherHolderIsALossAtOnce) {
  Make(Options());
  Run();
  ASSERT_TRUE(started_.Wait());
  server_.Set({.holder = "other", .lease_seconds = 15, .transitions = 1});
  ASSERT_TRUE(clock_.WaitForSleepers(2));
  clock_.Advance(seconds(2));
  ASSERT_TRUE(ended_.Wait());
  EXPECT_THAT(result_, base::StatusIs(absl::StatusCode::kAborted, HasSubstr("other")));
  EXPECT_EQ(Holders(), (std::vector<std::string>{"me", "other"}));
  EXPECT_EQ(server_.record().holder, "other");
}

TEST_F(ElectorTest, G5_StoppedIsCalledAlsoForOneThatNeverLed) {
  server_.Set({.holder = "other", .lease_seconds = 15, .transitions = 1});
  Make(Options());
  Run();
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  EXPECT_EQ(Holders(), std::vector<std::string>{"other"});  // the first holder is reported too
  stop_.request_stop();
  ASSERT_TRUE(ended_.Wait());
  EXPECT_TRUE(stopped_.Wait(base::nanoseconds(0)));
  EXPECT_FALSE(started_.Wait(base::nanoseconds(0)));
  EXPECT_THAT(result_, base::IsOk());
}

TEST_F(ElectorTest, G5_TheWorkHasItsOwnThreadAndNewLeadersAreReportedOnce) {
  server_.Set({.holder = "other", .lease_seconds = 15, .transitions = 1});
  Make(Options());
  Run();
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  clock_.Advance(seconds(5));
  ASSERT_TRUE(server_.WaitForCalls("get", 2));
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  clock_.Advance(seconds(11));
  ASSERT_TRUE(started_.Wait());
  for (int i = 0; i < 3; ++i) AdvanceToNextRenewal();  // while the work runs
  EXPECT_EQ(Holders(), (std::vector<std::string>{"other", "me"}));
}

TEST_F(ElectorTest, G6_NotReleasedByDefault) {
  Make(Options());
  Run();
  ASSERT_TRUE(started_.Wait());
  stop_.request_stop();
  ASSERT_TRUE(ended_.Wait());
  EXPECT_THAT(result_, base::IsOk());
  EXPECT_TRUE(stopped_.Wait(base::nanoseconds(0)));
  EXPECT_EQ(server_.record().holder, "me");
}

TEST_F(ElectorTest, G6_ReleasedOnlyAfterTheWorkHasEndedAndRenewedUntilThen) {
  LeaderElector::Options options = Options();
  options.release_on_cancel = true;
  slow_ = true;
  Make(options);
  Run();
  ASSERT_TRUE(started_.Wait());
  stop_.request_stop();
  ASSERT_TRUE(end_requested_.Wait());
  for (int i = 0; i < 10; ++i) AdvanceToNextRenewal();  // 20 s: longer than the lease
  EXPECT_EQ(server_.record().holder, "me");
  EXPECT_FALSE(stopped_.Wait(base::nanoseconds(0)));
  finish_.Set();
  ASSERT_TRUE(ended_.Wait());
  EXPECT_THAT(result_, base::IsOk());
  EXPECT_EQ(server_.record().holder, "");
  EXPECT_EQ(server_.record().lease_seconds, 1);
}

TEST_F(ElectorTest, G7_HealthFailsWhenALeaderDidNotRenewForLeaseAndTolerance) {
  server_.Set({.holder = "other", .lease_seconds = 15, .transitions = 1});
  server_.before = [this](const std::string& verb) {
    if (verb == "update") answer_.Wait();
    return down_ ? base::Unavailable("down") : absl::OkStatus();
  };
  slow_ = true;  // the work should end, but does not
  Make(Options());
  EXPECT_THAT(elector_->Check(seconds(20)), base::IsOk());
  Run();
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  clock_.Advance(seconds(100));
  EXPECT_THAT(elector_->Check(seconds(20)), base::IsOk());  // a standby is healthy
  EXPECT_THAT(elector_->Guard(), base::StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("does not lead")));
  answer_.Set();
  ASSERT_TRUE(started_.Wait());
  EXPECT_EQ(elector_->term(), 2);
  EXPECT_THAT(elector_->Guard(), base::IsOk());
  down_ = true;
  ASSERT_TRUE(clock_.WaitForSleepers(2));
  clock_.Advance(seconds(10));
  EXPECT_THAT(elector_->Guard(), base::StatusIs(absl::StatusCode::kFailedPrecondition));
  ASSERT_TRUE(stopped_.Wait());
  EXPECT_FALSE(elector_->leading());
  clock_.Advance(seconds(25));
  EXPECT_THAT(elector_->Check(seconds(20)), base::IsOk());
  clock_.Advance(seconds(1));
  EXPECT_THAT(elector_->Check(seconds(20)),
              base::StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("36.0 s ago")));
}

TEST_F(ElectorTest, G7_ALeaderThatSeesALargerTermTakesALargerOneWhileItHoldsTheLease) {
  LeaderElector& elector = Make(Options());
  Run();
  ASSERT_TRUE(started_.Wait());
  EXPECT_EQ(elector.term(), 0);
  elector.HeardOfTerm(5);
  AdvanceToNextRenewal();
  ASSERT_TRUE(clock_.WaitForSleepers(2));
  EXPECT_EQ(elector.term(), 6);
  EXPECT_EQ(server_.record().transitions, 6);
}

TEST(FencedClientTest, G7_WritesAreRefusedReadsAreNot) {
  FakeClient client;
  int writes = 0;
  client.on_get = [](const Key&) { return Object(); };
  client.on_create = [&](const Object& object) { return ++writes, object; };
  client.on_update = [&](const Object& object, std::string_view) { return ++writes, object; };
  client.on_patch = [&](const Key&, const Json&) { return ++writes, Object(); };
  client.on_delete = [&](const Key&) { return ++writes, absl::OkStatus(); };
  bool leads = true;
  FencedClient fenced(client, [&] { return leads ? absl::OkStatus() : base::FailedPrecondition("deposed"); });
  const Resource pods = resources::Pods();
  const auto write_all = [&] {
    return std::vector<absl::Status>{fenced.Create(pods, Object()).status(), fenced.Update(pods, Object(), "").status(),
                                     fenced.Patch(pods, {}, PatchType::kMerge, {}, {}, "").status(),
                                     fenced.Delete(pods, {}, {})};
  };
  for (const absl::Status& status : write_all()) EXPECT_THAT(status, base::IsOk());
  EXPECT_EQ(writes, 4);
  leads = false;
  for (const absl::Status& status : write_all()) {
    EXPECT_THAT(status, base::StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("deposed")));
  }
  EXPECT_EQ(writes, 4);
  EXPECT_THAT(fenced.Get(pods, {}), base::IsOk());
}

}  // namespace
}  // namespace medley::kube
