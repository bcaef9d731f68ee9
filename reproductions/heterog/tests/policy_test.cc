#include "reproductions/heterog/policy.h"

#include <chrono>
#include <cstdio>
#include <string>

#include <sys/resource.h>

#include "tests/unit/scheduler-service/graph/graphs.h"

namespace medley::reproductions::heterog {
namespace {

using base::IsOk;
using base::StatusIs;
using testing::HasSubstr;

AgentSettings Small() {
  AgentSettings settings;
  settings.units = 16;
  settings.learning_rate = 0.005;
  settings.entropy = 0.3;
  return settings;
}

AgentFeatures RandomFeatures(uint64_t seed, int devices, int operations, int groups) {
  base::Rng rng(seed);
  const sched::DeviceProblem problem = sched::RandomGraphProblem(rng, devices, operations);
  return FeaturesOfGraph(problem, sched::GroupOperations(problem, groups));
}

// The most likely actions after learning with a reward for each group that has its wanted one.
AgentDraw Taught(AgentPolicy& policy, const AgentFeatures& features, const AgentDraw& wanted) {
  for (int round = 0; round < 400; ++round) {
    std::vector<double> advantages;
    double mean = 0;
    for (const AgentDraw& draw : policy.Draw(features, 16)) {
      double reward = 0;
      for (size_t g = 0; g < wanted.size(); ++g) reward += draw[g] == wanted[g] ? 1 : 0;
      advantages.push_back(reward);
      mean += reward / 16;
    }
    for (double& one : advantages) one -= mean;
    policy.Learn(advantages);
    policy.Step();
  }
  return policy.MostLikely(features);
}

// A device, and ways to replicate.
TEST(AgentPolicyTest, LearnsWhatIsRewarded) {
  const AgentDraw wanted = {2, 4, 0, 6};
  AgentPolicy policy(Small(), 5);
  EXPECT_EQ(Taught(policy, RandomFeatures(21, 3, 10, 4), wanted), wanted);
}

TEST(AgentPolicyTest, EqualSeedsGiveEqualDraws) {
  const AgentFeatures features = RandomFeatures(22, 4, 12, 5);
  AgentPolicy a(Small(), 3), b(Small(), 3);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(a.Draw(features, 3), b.Draw(features, 3));
    for (AgentPolicy* policy : {&a, &b}) {
      policy->Learn({1, -1, 0.5});
      policy->Step();
    }
  }
}

// The same weights serve questions with other numbers of devices and groups, also of more than one segment.
TEST(AgentPolicyTest, ServesAnyNumberOfDevicesAndGroups) {
  AgentSettings settings = Small();
  settings.segment = 7;
  AgentPolicy policy(settings, 4);
  for (const int devices : {1, 2, 9}) {
    for (const int groups : {1, 7, 20}) {
      const AgentFeatures features = RandomFeatures(23, devices, 24, groups);
      const std::vector<AgentDraw> draws = policy.Draw(features, 2);
      EXPECT_EQ(std::ssize(draws[1]), features.groups);
      for (const int action : draws[1]) EXPECT_TRUE(action >= 0 && action < devices + sched::kReplicaActions);
      policy.Learn({1, -1});
      policy.Step();
    }
  }
}

// The devices in another order get the same decisions, where no two are alike.
TEST(AgentPolicyTest, TheOrderOfDevicesDoesNotMatter) {
  const model::PlanRequest request = sched::ClusterRequest({1, 1, 1, 1}, {1, 1.5, 2, 5}, 6);
  model::PlanRequest other = request;
  std::ranges::reverse(other.cluster.devices);
  const sched::DeviceProblem problem = sched::ProblemOf(request), reversed = sched::ProblemOf(std::move(other));
  AgentPolicy policy(Small(), 6);
  const AgentDraw wanted = {3, 0, 5, 1};
  const AgentDraw a = Taught(policy, FeaturesOfGraph(problem, sched::GroupOperations(problem, 4)), wanted),
                  b = policy.MostLikely(FeaturesOfGraph(reversed, sched::GroupOperations(reversed, 4)));
  EXPECT_EQ(a, wanted);
  for (size_t g = 0; g < a.size(); ++g)
    EXPECT_EQ(sched::ActionName(problem, a[g]), sched::ActionName(reversed, b[g])) << g;
}

// Groups may be on different ones of equal devices.
TEST(AgentPolicyTest, TellsEqualDevicesApart) {
  const sched::DeviceProblem problem = sched::ProblemOf(sched::ClusterRequest({3}, {1}, 6));
  const AgentFeatures features = FeaturesOfGraph(problem, sched::GroupOperations(problem, 3));
  const AgentDraw wanted = {2, 0, 1};
  AgentPolicy policy(Small(), 12);
  EXPECT_EQ(Taught(policy, features, wanted), wanted);
}

TEST(AgentPolicyTest, WeightsReturn) {
  const AgentFeatures features = RandomFeatures(24, 4, 12, 6);
  AgentPolicy trained(Small(), 7), other(Small(), 8);
  for (int round = 0; round < 20; ++round) {
    trained.Draw(features, 2);
    trained.Learn({1, -1});
    trained.Step();
  }
  const std::string bytes = trained.Save();
  EXPECT_THAT(other.Load(bytes), IsOk());
  EXPECT_EQ(other.MostLikely(features), trained.MostLikely(features));
  EXPECT_EQ(other.Save(), bytes);
}

TEST(AgentPolicyTest, RefusesOtherWeights) {
  AgentPolicy policy(Small(), 9);
  const std::string own = policy.Save();
  EXPECT_THAT(policy.Load("anything"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("are no weights")));
  EXPECT_THAT(policy.Load(std::string_view(own).substr(0, own.size() / 2)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("are no weights")));
  AgentSettings deeper = Small(), wider = Small();
  deeper.attention_layers = 4;
  wider.units = 32;
  EXPECT_THAT(policy.Load(AgentPolicy(deeper, 1).Save()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("parts")));
  EXPECT_THAT(policy.Load(AgentPolicy(wider, 1).Save()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("another size")));
  std::string older = own;
  const size_t at = older.find("medley graph agent ");
  ASSERT_NE(at, std::string::npos);
  older[at + 19] = '0';
  EXPECT_THAT(policy.Load(older), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("version")));
  EXPECT_EQ(policy.Save(), own);
}

// The paper's sizes learn one round; how long and with how much memory is printed.
TEST(AgentPolicyTest, OneRoundWithThePapersSizes) {
  const AgentFeatures features = RandomFeatures(25, 12, 400, 2000);
  const auto begin = std::chrono::steady_clock::now();
  AgentPolicy policy(AgentSettings::Paper(), 1);
  const AgentDraw before = policy.MostLikely(features);
  policy.Draw(features, 2);
  policy.Learn({1, -1});
  policy.Step();
  const std::string bytes = policy.Save();
  AgentPolicy same(AgentSettings::Paper(), 1);
  EXPECT_NE(same.Save(), bytes);
  EXPECT_EQ(std::ssize(before), 400);
  rusage usage{};
  ASSERT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
  std::printf("one round, 400 groups, 12 devices: %.2f s; the process needs %ld MB; weights %.1f MB\n",
              std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), usage.ru_maxrss / 1024,
              static_cast<double>(bytes.size()) / 1e6);
}

}  // namespace
}  // namespace medley::reproductions::heterog
