// Leader election against an API server, with real Leases, conflicts and watches.
#include "kube/leader/elector.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "common/base/testing/patience.h"
#include "common/base/testing/status_matchers.h"
#include "tests/integration/kube/test_server.h"

namespace medley::kube {
namespace {

using base::milliseconds;
using base::seconds;

constexpr seconds kLongerThanTheTest{3600};

class LeaseTest : public testing::TestWithParam<ServerKind> {
 protected:
  base::SystemClock clock_;
  TestServer server_{GetParam(), clock_};
  const Key lease_{server_.ns(), "leader"};
};

INSTANTIATE_TEST_SUITE_P(On, LeaseTest, testing::ValuesIn(ServersUnderTest()), ServerName);

// One replica. Counts how many replicas work, and the most that worked at the same time.
struct Replica {
  Replica(TestServer& server, base::Clock& clock, const Key& lease, const std::string& identity,
          std::atomic<int>& working, std::atomic<int>& most)
      : client(server.config(), clock, 1) {
    LeaderElector::Options options;
    options.lease = lease;
    options.identity = identity;
    options.lease_duration = kLongerThanTheTest;  // nobody leads because a lease has expired
    options.renew_deadline = kLongerThanTheTest / 2;
    options.retry_period = milliseconds(300);
    options.release_on_cancel = true;
    auto made = LeaderElector::Create(client, clock, options,
                                      {[&](std::stop_token stop) {
                                         most = std::max<int>(most, ++working);
                                         base::Mutex mutex;
                                         base::CondVar never;
                                         {
                                           base::MutexLock lock(mutex);
                                           never.Wait(mutex, stop, [] { return false; });
                                         }
                                         --working;
                                       },
                                       [] {}, nullptr});
    MEDLEY_CHECK(made.ok(), base::ToString(made.status()));
    elector = *std::move(made);
    thread = std::jthread([this](std::stop_token stop) { ended = elector->Run(stop); });
  }
  void Stop() {
    thread.request_stop();
    if (thread.joinable()) thread.join();
  }

  HttpClient client;
  std::unique_ptr<LeaderElector> elector;
  absl::Status ended;
  std::jthread thread;
};

TEST_P(LeaseTest, G_OneOfThreeLeadsAndAnotherFollowsWhenTheLeaseIsReleased) {
  std::atomic<int> working = 0, most = 0;
  std::vector<std::unique_ptr<Replica>> replicas;
  for (const char* name : {"a", "b", "c"}) {
    replicas.push_back(std::make_unique<Replica>(server_, clock_, lease_, name, working, most));
  }
  for (int64_t term = 0; !replicas.empty(); ++term) {
    const auto leader = [&] {
      return std::find_if(replicas.begin(), replicas.end(), [](const auto& one) { return one->elector->leading(); });
    };
    ASSERT_TRUE(
        server_.Eventually([&] { return leader() != replicas.end() && working == 1; }, base::Patience(seconds(60))));
    const auto now = leader();
    EXPECT_EQ((*now)->elector->term(), term);
    const auto lease = server_.client().Get(resources::Leases(), lease_);
    ASSERT_THAT(lease, base::IsOk());
    EXPECT_EQ(ReadLeaderRecord(*lease).transitions, term);
    EXPECT_EQ(ReadLeaderRecord(*lease).holder, (*now)->elector->leader());
    (*now)->Stop();
    EXPECT_THAT((*now)->ended, base::IsOk());
    replicas.erase(now);
  }
  EXPECT_EQ(most, 1);
  const auto lease = server_.client().Get(resources::Leases(), lease_);
  ASSERT_THAT(lease, base::IsOk());
  EXPECT_EQ(ReadLeaderRecord(*lease).holder, "");
}

TEST_P(LeaseTest, G2_OfManyCandidatesAtOnceOneTakesTheLease) {
  constexpr uint64_t kCandidates = 8;
  std::vector<std::unique_ptr<HttpClient>> clients;
  std::vector<std::unique_ptr<Candidate>> candidates;
  for (uint64_t i = 0; i < kCandidates; ++i) {
    clients.push_back(std::make_unique<HttpClient>(server_.config(), clock_, i + 1));
    candidates.push_back(std::make_unique<Candidate>(*clients.back(), clock_,
                                                     Candidate::Options{lease_, "c" + std::to_string(i), seconds(30)}));
  }
  for (int round = 0; round < 5; ++round) {
    std::atomic<int> winners = 0;
    {
      std::vector<std::jthread> threads;
      for (auto& candidate : candidates) {
        threads.emplace_back([&] { winners += candidate->TryAcquireOrRenew() ? 1 : 0; });
      }
    }
    EXPECT_EQ(winners, 1) << round;
    for (auto& candidate : candidates) {
      if (candidate->IsLeader()) {
        EXPECT_TRUE(candidate->Release(seconds(10), {}));
      }
    }
  }
}

}  // namespace
}  // namespace medley::kube
