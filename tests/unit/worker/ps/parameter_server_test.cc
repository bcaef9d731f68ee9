// Tests client and servers over real gRPC on loopback ports.
#include "worker/ps/parameter_server.h"

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <thread>

#include "common/base/testing/status_matchers.h"
#include "common/rpc/server.h"
#include "medley/job/v1/parameter_server.pb.h"
#include "tests/unit/worker/token_check.h"
#include "worker/ps/client.h"

namespace medley::worker {
namespace {

using base::IsOk;
using base::StatusIs;

constexpr int kServedTable = 0;

class PsTest : public testing::Test {
 protected:
  struct Shard {
    std::unique_ptr<ParameterServer> service;
    std::unique_ptr<rpc::Server> server;
    std::shared_ptr<RowStore> store;
  };

  void StartShards(int count, int trainers) {
    for (int s = 0; s < count; ++s) {
      Shard shard{std::make_unique<ParameterServer>("token", clock_), nullptr, MakeStore()};
      auto server = rpc::Server::Start({}, {&shard.service->service()});
      ASSERT_THAT(server, IsOk());
      shard.server = *std::move(server);
      auto generation =
          std::make_shared<ShardGeneration>(ShardGenerationOptions{.generation = 5, .trainers = trainers}, shard.store);
      ASSERT_THAT(generation->Allow(100), IsOk());
      shard.service->Install(std::move(generation));
      addresses_.push_back(shard.server->address());
      shards_.push_back(std::move(shard));
    }
  }
  std::shared_ptr<RowStore> MakeStore() const {
    const ParameterSpec spec{.operation = kServedTable,
                             .name = "table",
                             .rows = 1000,
                             .columns = 2,
                             .sparse = true,
                             .initializer = Initializer::kUniform,
                             .scale = 1};
    return std::make_shared<RowStore>(std::vector{spec}, Optimizer{OptimizerKind::kSgd, 1.0f}, 3);
  }
  PsClientOptions Options(int trainer, int64_t generation = 5, std::string token = "token") const {
    return {.generation = generation,
            .trainer = trainer,
            .shards = addresses_,
            .token = std::move(token),
            .timeout = base::seconds(20)};
  }

  base::SystemClock clock_;
  std::vector<Shard> shards_;
  std::vector<std::string> addresses_;
};

TEST_F(PsTest, TwoTrainersThreeShards) {
  StartShards(3, 2);
  TableKeys table{.operation = kServedTable, .columns = 2};
  for (uint64_t key = 0; key < 100; ++key) table.keys.push_back(key * 7);
  PsClient a(Options(0), clock_), b(Options(1), clock_);
  ASSERT_THAT(a.Connect({}), IsOk());
  std::vector<std::vector<float>> before, after;
  ASSERT_THAT(a.Pull(1, std::span(&table, 1), before, {}), IsOk());
  const std::vector<float> gradient(200, 0.25f);
  const std::span<const float> view(gradient);
  std::jthread late([&] {  // the pull of step 2 waits for this push
    EXPECT_THAT(b.Push(1, std::span(&table, 1), std::span(&view, 1), 64, {}), IsOk());
  });
  ASSERT_THAT(a.Push(1, std::span(&table, 1), std::span(&view, 1), 64, {}), IsOk());
  ASSERT_THAT(a.Pull(2, std::span(&table, 1), after, {}), IsOk());
  for (size_t i = 0; i < 200; ++i) ASSERT_FLOAT_EQ(after[0][i], before[0][i] - 0.5f);
  int64_t rows = 0;
  for (const Shard& shard : shards_) {
    EXPECT_EQ(shard.store->StateSamples(), 64);
    rows += shard.store->Rows();
  }
  EXPECT_EQ(rows, 100);
}

TEST_F(PsTest, StopAbortsAWaitingPull) {
  StartShards(2, 1);
  PsClient client(Options(0), clock_);
  std::stop_source source;
  std::jthread stopper([&] { source.request_stop(); });
  std::vector<std::vector<float>> rows;
  EXPECT_THAT(client.Pull(2, {}, rows, {source.get_token()}), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(PsTest, EveryMethodNeedsTheToken) {
  StartShards(1, 1);
  ExpectEveryMethodNeedsTheToken(addresses_[0], *job::v1::PullRequest::descriptor()->file(), 3);
}

TEST_F(PsTest, FencingTokenAndLostShard) {
  StartShards(2, 1);
  std::vector<std::vector<float>> rows;
  EXPECT_THAT(PsClient(Options(0, 4), clock_).Pull(1, {}, rows, {}), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(PsClient(Options(0, 5, "wrong"), clock_).Pull(1, {}, rows, {}),
              StatusIs(absl::StatusCode::kUnauthenticated));
  PsClient client(Options(0), clock_);
  shards_[1].server->Stop();
  EXPECT_THAT(client.Pull(1, {}, rows, {}), StatusIs(absl::StatusCode::kUnavailable, testing::HasSubstr("shard 1")));
}

TEST_F(PsTest, RowsMoveToAnotherMap) {
  StartShards(1, 1);
  std::vector<uint64_t> keys;
  for (uint64_t key = 0; key < 1000; ++key) keys.push_back(key);
  const std::vector<float> gradient(2000, 0.5f);
  const GradientView view{kServedTable, keys, gradient};
  ASSERT_THAT(shards_[0].store->Apply(1, std::span(&view, 1), 12), IsOk());
  int64_t moved = 0;
  for (int shard = 0; shard < 2; ++shard) {
    const auto store = MakeStore();
    const auto copied =
        FetchRows({.address = addresses_[0], .token = "token", .source_generation = 5, .shard = shard, .shards = 2},
                  *store, clock_, {});
    ASSERT_THAT(copied, IsOk());
    EXPECT_EQ(copied->first_step, 1);
    EXPECT_EQ(copied->state_samples, 12);
    moved += copied->rows;
  }
  EXPECT_EQ(moved, 1000);
  EXPECT_THAT(FetchRows({.address = addresses_[0], .token = "token", .source_generation = 9}, *MakeStore(), clock_, {}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace medley::worker
