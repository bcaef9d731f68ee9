// Section G of docs/design/kube-client.md: the steps. Tests named Test... have the names of client-go's tests.
#include "kube/leader/candidate.h"

#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "tests/unit/kube/leader/lease_server.h"

namespace medley::kube {
namespace {

using base::seconds;

LeaderRecord Held(const std::string& holder, int64_t lease_seconds, int64_t transitions = 0) {
  return {.holder = holder, .lease_seconds = lease_seconds, .transitions = transitions};
}

class CandidateTest : public testing::Test {
 protected:
  Candidate Make(const std::string& identity = "baz", base::nanoseconds lease = seconds(10)) {
    return Candidate(server_.client, clock_, {kLease, identity, lease});
  }
  base::FakeClock clock_;
  LeaseServer server_;
};

struct Case {
  std::string name;
  std::optional<LeaderRecord> stored;
  bool observed = false;     // by an earlier attempt,
  base::nanoseconds ago{0};  // this long ago
  bool success = true;
  int64_t transitions = 0;
  std::string holder = "baz";
  int gets = 1, creates = 0, updates = 1;
};

TEST(Leader, TestTryAcquireOrRenewLeases) {
  const Case cases[] = {
      {.name = "acquire from no object", .creates = 1, .updates = 0},
      {.name = "acquire from object without annotations", .stored = LeaderRecord(), .transitions = 1},
      {.name = "acquire from led object with the lease duration seconds",
       .stored = Held("bing", 3),
       .observed = true,
       .ago = seconds(3),
       .transitions = 1},
      {.name = "acquire from unled object", .stored = Held("", 0), .transitions = 1},
      {.name = "acquire from led, unacked object", .stored = Held("bing", 0), .transitions = 1},
      {.name = "acquire from empty led, acked object", .stored = Held("", 10), .observed = true, .transitions = 1},
      {.name = "don't acquire from led, acked object",
       .stored = Held("bing", 10),
       .observed = true,
       .ago = seconds(9),
       .success = false,
       .holder = "bing",
       .updates = 0},
      {.name = "renew already acquired object", .stored = Held("baz", 10), .updates = 1},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.name);
    base::FakeClock clock;
    LeaseServer server;
    if (test.stored) server.Set(*test.stored);
    Candidate candidate(server.client, clock, {kLease, "baz", seconds(10)});
    if (test.observed) candidate.Observe(server.object());
    clock.Advance(test.ago);
    EXPECT_EQ(candidate.TryAcquireOrRenew(), test.success);
    EXPECT_EQ(candidate.record().holder, test.holder);
    EXPECT_EQ(candidate.record().transitions, test.transitions);
    EXPECT_EQ(server.record().holder, test.holder);
    EXPECT_EQ(server.Calls("get"), test.gets);
    EXPECT_EQ(server.Calls("create"), test.creates);
    EXPECT_EQ(server.Calls("update"), test.updates);
  }
}

TEST_F(CandidateTest, TestLeaseSpecToLeaderElectionRecordRoundTrip) {
  const LeaderRecord record{"foo", 10, "2026-11-21T07:15:00.000001Z", "2026-11-21T07:15:02.000001Z", 1};
  Object lease(resources::Leases(), kLease);
  lease.mutable_json()["spec"]["preferredHolder"] = "other";
  WriteLeaderRecord(record, lease);
  EXPECT_EQ(ReadLeaderRecord(lease), record);
  EXPECT_EQ(lease.String("/spec/preferredHolder"), "other");  // fields of others are kept
}

TEST_F(CandidateTest, TestFastPathLeaderElection) {
  Candidate candidate = Make();
  ASSERT_TRUE(candidate.TryAcquireOrRenew());
  server_.Forget();
  for (int i = 0; i < 5; ++i) {
    clock_.Advance(seconds(2));
    ASSERT_TRUE(candidate.TryAcquireOrRenew());
  }
  EXPECT_EQ(server_.Calls("update"), 5);
  EXPECT_EQ(server_.Calls("get"), 0);
  // Another process has written the Lease: the fast path fails, and one read is enough to recover.
  server_.Set(server_.record());
  ASSERT_TRUE(candidate.TryAcquireOrRenew());
  EXPECT_EQ(server_.Calls("update"), 7);
  EXPECT_EQ(server_.Calls("get"), 1);
  // No fast path after the Lease has expired: another process may hold it.
  clock_.Advance(seconds(10));
  server_.Set(Held("bing", 10, 1));
  EXPECT_FALSE(candidate.TryAcquireOrRenew());
  EXPECT_EQ(server_.Calls("update"), 7);
  EXPECT_FALSE(candidate.IsLeader());
}

TEST_F(CandidateTest, G2_NotFoundIsCreatedByOneOnly) {
  Candidate a = Make("a"), b = Make("b");
  server_.before = [&](const std::string& verb) {  // b is faster between a's read and a's write
    if (verb == "create" && server_.Calls("create") == 0) {
      server_.before = nullptr;
      EXPECT_TRUE(b.TryAcquireOrRenew());
    }
    return absl::OkStatus();
  };
  EXPECT_FALSE(a.TryAcquireOrRenew());
  EXPECT_EQ(server_.record().holder, "b");
}

TEST_F(CandidateTest, G2_AnExpiredLeaseIsTakenByOneOnly) {
  server_.Set(Held("dead", 10, 4));
  Candidate a = Make("a"), b = Make("b");
  EXPECT_FALSE(a.TryAcquireOrRenew());
  EXPECT_FALSE(b.TryAcquireOrRenew());
  clock_.Advance(seconds(10));
  bool once = true;
  server_.before = [&](const std::string& verb) {
    if (verb == "update" && std::exchange(once, false)) {
      EXPECT_TRUE(b.TryAcquireOrRenew());
    }
    return absl::OkStatus();
  };
  EXPECT_FALSE(a.TryAcquireOrRenew());  // its resourceVersion is outdated
  EXPECT_EQ(server_.record().holder, "b");
  EXPECT_EQ(server_.record().transitions, 5);
  EXPECT_EQ(server_.record().acquire_time, base::FormatTimeMicro(clock_.Now()));
}

TEST_F(CandidateTest, G3_ValidityCountsFromTheLocalTimeOfTheLastChangeForTheRecordsOwnDuration) {
  LeaderRecord theirs = Held("bing", 3);              // its own 3 s, not the 10 s of this candidate
  theirs.renew_time = "2001-01-01T00:00:00.000000Z";  // their clock is wrong by decades
  server_.Set(theirs);
  Candidate candidate = Make();
  EXPECT_FALSE(candidate.TryAcquireOrRenew());
  clock_.Advance(base::milliseconds(2900));
  EXPECT_FALSE(candidate.TryAcquireOrRenew());
  theirs.renew_time = "2001-01-01T00:00:02.000000Z";  // the record changes; its time is still decades old
  server_.Set(theirs);
  EXPECT_FALSE(candidate.TryAcquireOrRenew());
  clock_.Advance(base::milliseconds(2900));
  EXPECT_FALSE(candidate.TryAcquireOrRenew());
  server_.Set(theirs);  // a new resourceVersion does not change the record
  clock_.Advance(base::milliseconds(100));
  EXPECT_TRUE(candidate.TryAcquireOrRenew());
}

TEST_F(CandidateTest, G3_AWatchCountsFromTheChangeAndOldNewsIsIgnored) {
  server_.Set(Held("bing", 10));
  const Object old = server_.object();
  Candidate candidate = Make();
  EXPECT_FALSE(candidate.TryAcquireOrRenew());
  clock_.Advance(seconds(5));
  LeaderRecord renewed = Held("bing", 10);
  renewed.renew_time = "2026-11-21T07:15:02.000001Z";
  server_.Set(renewed);
  candidate.Observe(server_.object());
  EXPECT_EQ(candidate.valid_until(), clock_.Steady() + seconds(10));
  clock_.Advance(seconds(5));
  candidate.Observe(old);
  EXPECT_EQ(candidate.valid_until(), clock_.Steady() + seconds(5));
}

TEST_F(CandidateTest, G4_AfterAnErrorGetAndUpdateKeepAcquireTimeAndTransitions) {
  server_.Set(Held("dead", 1, 7));
  Candidate candidate = Make();
  EXPECT_FALSE(candidate.TryAcquireOrRenew());
  clock_.Advance(seconds(1));
  ASSERT_TRUE(candidate.TryAcquireOrRenew());
  const LeaderRecord acquired = server_.record();
  EXPECT_EQ(acquired.transitions, 8);
  bool once = true;
  server_.before = [&](const std::string& verb) {
    return verb == "update" && std::exchange(once, false) ? base::Unavailable("down") : absl::OkStatus();
  };
  clock_.Advance(seconds(2));
  server_.Forget();
  ASSERT_TRUE(candidate.TryAcquireOrRenew());
  EXPECT_EQ(server_.Calls("get"), 1);
  EXPECT_EQ(server_.record().acquire_time, acquired.acquire_time);
  EXPECT_EQ(server_.record().transitions, 8);
  EXPECT_NE(server_.record().renew_time, acquired.renew_time);
}

TEST_F(CandidateTest, G4_AnAnswerThatWasLostIsFoundByTheNextRead) {
  Candidate candidate = Make();
  server_.client.on_create = [&](const Object& object) -> absl::StatusOr<Object> {
    server_.Set(ReadLeaderRecord(object));  // stored, but the answer is lost
    return base::DeadlineExceeded("timeout");
  };
  EXPECT_FALSE(candidate.TryAcquireOrRenew());
  EXPECT_TRUE(candidate.TryAcquireOrRenew());
  EXPECT_EQ(server_.record().transitions, 0);  // the same leadership continues
}

TEST_F(CandidateTest, TestReleaseRetriesOnConflict) {
  base::SystemClock clock;  // waits of milliseconds
  Candidate candidate(server_.client, clock, {kLease, "baz", seconds(10)});
  ASSERT_TRUE(candidate.TryAcquireOrRenew());
  int conflicts = 2;
  server_.before = [&](const std::string& verb) {
    return verb == "update" && conflicts-- > 0 ? LeaseServer::Conflict() : absl::OkStatus();
  };
  server_.Forget();
  EXPECT_TRUE(candidate.Release(seconds(10), {}));
  EXPECT_EQ(server_.Calls("get"), 3);  // it reads the Lease again before each attempt
  EXPECT_EQ(server_.Calls("update"), 3);
  EXPECT_EQ(server_.record().holder, "");
}

TEST_F(CandidateTest, G6_ReleaseLeavesNoHolderOneSecondAndTheTerm) {
  server_.Set(Held("dead", 0, 2));
  Candidate candidate = Make();
  ASSERT_TRUE(candidate.TryAcquireOrRenew());
  ASSERT_TRUE(candidate.Release(seconds(10), {}));
  EXPECT_EQ(server_.record().holder, "");
  EXPECT_EQ(server_.record().lease_seconds, 1);
  EXPECT_EQ(server_.record().transitions, 3);
  EXPECT_FALSE(candidate.IsLeader());
  Candidate next = Make("next");
  EXPECT_TRUE(next.TryAcquireOrRenew());  // at once
  EXPECT_EQ(server_.record().transitions, 4);
  // A candidate does not release a Lease of another holder.
  server_.Forget();
  EXPECT_TRUE(candidate.Release(seconds(10), {}));
  EXPECT_EQ(server_.Calls("update"), 0);
  EXPECT_EQ(server_.record().holder, "next");
  server_.Remove();
  EXPECT_FALSE(next.Release(seconds(10), {}));
}

TEST_F(CandidateTest, G6_ReleaseGivesUpAfterItsPatience) {
  base::SystemClock clock;
  Candidate candidate(server_.client, clock, {kLease, "baz", seconds(10)});
  ASSERT_TRUE(candidate.TryAcquireOrRenew());
  server_.before = [](const std::string&) { return base::Unavailable("down"); };
  EXPECT_FALSE(candidate.Release(base::milliseconds(50), {}));
}

TEST_F(CandidateTest, G7_TheTermStaysThatWithWhichTheProcessLed) {
  server_.Set(Held("bing", 1, 3));
  Candidate candidate = Make();
  EXPECT_EQ(candidate.held_term(), 0);
  EXPECT_FALSE(candidate.TryAcquireOrRenew());
  EXPECT_EQ(candidate.held_term(), 0);
  clock_.Advance(seconds(2));
  ASSERT_TRUE(candidate.TryAcquireOrRenew());
  EXPECT_EQ(candidate.held_term(), 4);
  server_.Set(Held("bing", 10, 5));  // this process was paused, and another one has taken the Lease
  EXPECT_FALSE(candidate.TryAcquireOrRenew());
  EXPECT_EQ(candidate.record().transitions, 5);
  EXPECT_EQ(candidate.held_term(), 4);
}

TEST_F(CandidateTest, G7_ATermThatWasSeenElsewhereIsExceeded) {
  Candidate candidate = Make();
  ASSERT_TRUE(candidate.TryAcquireOrRenew());
  EXPECT_EQ(candidate.record().transitions, 0);
  candidate.RaiseTerm(6);
  ASSERT_TRUE(candidate.TryAcquireOrRenew());
  EXPECT_EQ(server_.record().transitions, 6);
  candidate.RaiseTerm(5);                 // a term never shrinks
  candidate.RaiseTerm(int64_t{1} << 40);  // implausible, ignored
  ASSERT_TRUE(candidate.TryAcquireOrRenew());
  EXPECT_EQ(server_.record().transitions, 6);
  // A candidate that does not hold the Lease raises no term.
  server_.Set(Held("bing", 10, 7));
  candidate.RaiseTerm(9);
  EXPECT_FALSE(candidate.TryAcquireOrRenew());
  EXPECT_EQ(server_.record().transitions, 7);
}

}  // namespace
}  // namespace medley::kube
