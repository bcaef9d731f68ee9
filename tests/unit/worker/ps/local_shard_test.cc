#include "worker/ps/local_shard.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "common/base/testing/status_matchers.h"
#include "worker/ps/client.h"
#include "worker/ps/parameter_server.h"
#include "worker/ps/sharding.h"

namespace medley::worker {
namespace {

using base::IsOk;
using base::StatusIs;

constexpr int kColumns = 4;

ParameterSpec Table() { return {.operation = 3, .name = "rows", .rows = 1000, .columns = kColumns, .sparse = true}; }

// A process with a shard of generation 1.
class LocalShardTest : public testing::Test {
 protected:
  std::shared_ptr<RowStore> Install(int trainers) {
    auto store = std::make_shared<RowStore>(std::vector<ParameterSpec>{Table()}, optimizer_, 7);
    server_.Install(
        std::make_shared<ShardGeneration>(ShardGenerationOptions{.generation = 1, .trainers = trainers}, store));
    return store;
  }
  WaitLimit Soon() { return {{}, clock_.Steady() + base::milliseconds(50)}; }

  const Optimizer optimizer_ = MakeOptimizer("adam", 0.01).value();
  base::SystemClock clock_;
  ParameterServer server_{"token", clock_};
};

TEST_F(LocalShardTest, PullsAndPushesOnlyTheKeysOfTheShard) {
  const auto store = Install(1);
  const LocalShard shard(server_, 1);
  const TableKeys keys{3, kColumns, {2, 5, 9}};
  const std::vector<uint32_t> places = {0, 2};
  const std::vector<KeysAt> parts = {{&keys, places}};
  std::vector<float> rows(3 * kColumns, -1);
  std::vector<float*> to = {rows.data()};
  ASSERT_THAT(shard.Pull(1, parts, to, clock_, Soon()), IsOk());
  std::vector<float> wanted(2 * kColumns);
  ASSERT_THAT(store->Read(3, std::vector<uint64_t>{2, 9}, wanted), IsOk());
  EXPECT_EQ(std::vector<float>(rows.begin(), rows.begin() + kColumns),
            std::vector<float>(wanted.begin(), wanted.begin() + kColumns));
  EXPECT_EQ(std::vector<float>(rows.begin() + 2 * kColumns, rows.end()),
            std::vector<float>(wanted.begin() + kColumns, wanted.end()));
  EXPECT_EQ(rows[kColumns], -1) << "the row of another shard";

  const std::vector<float> gradients(3 * kColumns, 0.5F);
  const std::vector<std::span<const float>> all = {gradients};
  ASSERT_THAT(shard.Push(1, 0, parts, all, 10), IsOk());
  EXPECT_EQ(store->AppliedStep(), 0) << "the coordinator has not leased the step";
  ASSERT_THAT(server_.Find(1)->Allow(1), IsOk());
  EXPECT_EQ(store->AppliedStep(), 1);
  EXPECT_EQ(store->Rows(), 2);
  EXPECT_EQ(store->StateSamples(), 10);
}

TEST_F(LocalShardTest, APullWaitsForTheStepBeforeAndNoLongerThanItsLimit) {
  const auto store = Install(1);
  const LocalShard shard(server_, 1);
  const TableKeys keys{3, kColumns, {2}};
  const std::vector<uint32_t> places = {0};
  const std::vector<KeysAt> parts = {{&keys, places}};
  std::vector<float> rows(kColumns);
  std::vector<float*> to = {rows.data()};
  EXPECT_THAT(shard.Pull(2, parts, to, clock_, Soon()), StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_EQ(server_.Find(1)->WaitingPulls(), 0U) << "a pull that was given up is forgotten";

  std::stop_source stop;
  stop.request_stop();
  EXPECT_THAT(shard.Pull(2, parts, to, clock_, {stop.get_token(), base::SteadyTime::max()}),
              StatusIs(absl::StatusCode::kCancelled));

  absl::Status pulled;
  {
    const std::jthread puller([&] {
      pulled = shard.Pull(2, parts, to, clock_, {{}, clock_.Steady() + base::seconds(30)});
    });
    const std::vector<float> gradients(kColumns, 0.5F);
    const std::vector<std::span<const float>> all = {gradients};
    ASSERT_THAT(shard.Push(1, 0, parts, all, 10), IsOk());
    ASSERT_THAT(server_.Find(1)->Allow(1), IsOk());
  }
  EXPECT_THAT(pulled, IsOk());
}

TEST_F(LocalShardTest, RefusesAGenerationWithoutShardAndOneThatIsClosed) {
  const LocalShard shard(server_, 1);
  const TableKeys keys{3, kColumns, {2}};
  const std::vector<uint32_t> places = {0};
  const std::vector<KeysAt> parts = {{&keys, places}};
  std::vector<float> rows(kColumns);
  std::vector<float*> to = {rows.data()};
  EXPECT_THAT(shard.Pull(1, parts, to, clock_, Soon()), StatusIs(absl::StatusCode::kFailedPrecondition));
  Install(1);
  server_.Find(1)->Close();
  EXPECT_THAT(shard.Pull(1, parts, to, clock_, Soon()), StatusIs(absl::StatusCode::kAborted));
}

// All rows of the only shard: as with a server, and nothing listens anywhere.
TEST_F(LocalShardTest, AClientWhoseOnlyShardIsItsOwnNeedsNoPort) {
  const auto store = Install(1);
  PsClient client(
      {.generation = 1, .trainer = 0, .shards = {"127.0.0.1:1"}, .token = "token", .own = &server_, .own_shard = 0},
      clock_);
  ASSERT_THAT(client.Connect(Soon()), IsOk());
  const std::vector<TableKeys> tables = {{3, kColumns, {1, 2, 3}}};
  std::vector<std::vector<float>> rows;
  ASSERT_THAT(client.Pull(1, tables, rows, Soon()), IsOk());
  std::vector<float> wanted(3 * kColumns);
  ASSERT_THAT(store->Read(3, tables[0].keys, wanted), IsOk());
  EXPECT_EQ(rows[0], wanted);
  const std::vector<std::span<const float>> gradients = {wanted};
  ASSERT_THAT(client.Push(1, tables, gradients, 3, Soon()), IsOk());
  ASSERT_THAT(server_.Find(1)->Allow(1), IsOk());
  EXPECT_EQ(store->Rows(), 3);
}

}  // namespace
}  // namespace medley::worker
