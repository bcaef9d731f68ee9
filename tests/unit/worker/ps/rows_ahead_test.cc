// Rows that trainers ask for before the step that they need is applied: the bits of a pull that waits, whoever changed
// them meanwhile. Over real gRPC on loopback ports.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"
#include "common/rpc/server.h"
#include "worker/ps/client.h"
#include "worker/ps/parameter_server.h"

namespace medley::worker {
namespace {

using base::IsOk;
using base::StatusIs;

constexpr int kAheadColumns = 3;
constexpr int kAheadTrainers = 2;
constexpr float kAheadMark = 12345;

std::vector<ParameterSpec> AheadTables() {
  std::vector<ParameterSpec> tables;
  for (const int operation : {0, 4}) {
    tables.push_back({.operation = operation,
                      .name = "table",
                      .rows = 300,
                      .columns = kAheadColumns,
                      .sparse = true,
                      .initializer = Initializer::kUniform,
                      .scale = 1});
  }
  return tables;
}

class RowsAheadTest : public testing::Test {
 protected:
  struct Server {
    std::unique_ptr<ParameterServer> service;
    std::unique_ptr<rpc::Server> server;
    std::shared_ptr<RowStore> store;
    std::shared_ptr<ShardGeneration> generation;
  };
  using Rows = std::vector<std::vector<float>>;

  void StartServers(int count, Optimizer optimizer = *MakeOptimizer("adam", 0.05)) {
    for (int s = 0; s < count; ++s) {
      Server one{std::make_unique<ParameterServer>("token", clock_), nullptr,
                 std::make_shared<RowStore>(AheadTables(), optimizer, 3), nullptr};
      auto server = rpc::Server::Start({}, {&one.service->service()});
      ASSERT_THAT(server, IsOk());
      one.server = *std::move(server);
      one.generation = std::make_shared<ShardGeneration>(
          ShardGenerationOptions{.generation = 5, .trainers = kAheadTrainers}, one.store);
      ASSERT_THAT(one.generation->Allow(1000), IsOk());
      one.service->Install(one.generation);
      addresses_.push_back(one.server->address());
      servers_.push_back(std::move(one));
    }
  }

  std::unique_ptr<PsClient> Client(int trainer, bool ahead, WireFormat format = WireFormat::kFloat32) {
    return std::make_unique<PsClient>(PsClientOptions{.generation = 5,
                                                      .trainer = trainer,
                                                      .shards = addresses_,
                                                      .token = "token",
                                                      .message_bytes = 700,  // several rounds
                                                      .format = format,
                                                      .rows_ahead = ahead},
                                      clock_);
  }

  // The keys of a trainer in a step, more of them small.
  static std::vector<TableKeys> KeysOf(int trainer, int64_t step) {
    base::Rng rng(static_cast<uint64_t>(step * kAheadTrainers + trainer));
    std::vector<TableKeys> all;
    for (const ParameterSpec& spec : AheadTables()) {
      std::set<uint64_t> keys;
      for (int i = 0; i < 60; ++i) keys.insert(rng.Below(1 + rng.Below(static_cast<uint64_t>(spec.rows))));
      all.push_back({spec.operation, kAheadColumns, {keys.begin(), keys.end()}});
    }
    return all;
  }

  absl::Status Push(PsClient& client, int trainer, int64_t step) {
    base::Rng rng(static_cast<uint64_t>(1000 + step * kAheadTrainers + trainer));
    const std::vector<TableKeys> keys = KeysOf(trainer, step);
    Rows gradients;
    std::vector<std::span<const float>> spans;
    for (const TableKeys& table : keys) {
      std::vector<float>& values = gradients.emplace_back(table.keys.size() * kAheadColumns);
      for (float& x : values) x = static_cast<float>(rng.Uniform(-1, 1));
    }
    for (const std::vector<float>& values : gradients) spans.push_back(values);
    return client.Push(step, keys, spans, 1, {});
  }

  // Trains, and compares what every trainer gets ahead with what it gets when it waits.
  void ExpectBitsOfPulls(WireFormat format, int64_t steps) {
    std::vector<std::unique_ptr<PsClient>> with, without;
    for (int t = 0; t < kAheadTrainers; ++t) with.push_back(Client(t, true, format));
    for (int t = 0; t < kAheadTrainers; ++t) without.push_back(Client(t, false, format));
    for (int64_t step = 1; step <= steps; ++step) {
      // What the trainers ask for while step - 1 is not applied.
      std::vector<Rows> rows(kAheadTrainers), expected(kAheadTrainers);
      std::vector<RowsAhead> ahead(kAheadTrainers);
      for (size_t t = 0; t < kAheadTrainers; ++t) {
        auto asked = with[t]->PullAhead(step, KeysOf(static_cast<int>(t), step), rows[t], {});
        ASSERT_THAT(asked, IsOk());
        ahead[t] = *std::move(asked);
        for (const int64_t at : ahead[t].at) EXPECT_EQ(at, step == 1 ? 0 : step - 2);
        // One of them asks when the other has pushed.
        if (step > 1) {
          ASSERT_THAT(Push(*with[t], static_cast<int>(t), step - 1), IsOk());
        }
      }
      for (size_t t = 0; t < kAheadTrainers; ++t) {
        const std::vector<TableKeys> keys = KeysOf(static_cast<int>(t), step);
        ASSERT_THAT(with[t]->PullChanged(step, keys, ahead[t], rows[t], {}), IsOk());
        ASSERT_THAT(without[t]->Pull(step, keys, expected[t], {}), IsOk());
        EXPECT_EQ(rows[t], expected[t]) << "step " << step;
      }
    }
  }

  base::SystemClock clock_;
  std::vector<std::string> addresses_;
  std::vector<Server> servers_;
};

TEST_F(RowsAheadTest, HasTheBitsOfAPullThatWaits) {
  StartServers(3);
  ExpectBitsOfPulls(WireFormat::kFloat32, 30);
}

TEST_F(RowsAheadTest, HasTheBitsOfRowsOf16Bits) {
  StartServers(2);
  ExpectBitsOfPulls(WireFormat::kBfloat16, 10);
}

// Rows that nobody has changed are not sent again.
TEST_F(RowsAheadTest, OnlyChangedRowsFollow) {
  StartServers(2);
  const auto client = Client(0, true), other = Client(1, false);
  const std::vector<TableKeys> keys = KeysOf(0, 2);
  Rows rows;
  const auto ahead = client->PullAhead(2, keys, rows, {});
  ASSERT_THAT(ahead, IsOk());
  ASSERT_THAT(Push(*client, 0, 1), IsOk());
  ASSERT_THAT(Push(*other, 1, 1), IsOk());
  for (std::vector<float>& table : rows) std::ranges::fill(table, kAheadMark);
  ASSERT_THAT(client->PullChanged(2, keys, *ahead, rows, {}), IsOk());
  const std::vector<TableKeys> pushed = KeysOf(0, 1);
  size_t same = 0, all = 0;
  for (size_t t = 0; t < keys.size(); ++t) {
    const std::vector<uint64_t>& mine = pushed[t].keys;
    const std::vector<uint64_t> theirs = KeysOf(1, 1)[t].keys;
    for (size_t k = 0; k < keys[t].keys.size(); ++k) {
      const uint64_t key = keys[t].keys[k];
      const bool changed = std::ranges::binary_search(mine, key) || std::ranges::binary_search(theirs, key);
      EXPECT_EQ(rows[t][k * kAheadColumns] == kAheadMark, !changed) << "key " << key;
      same += changed ? 0 : 1;
      ++all;
    }
  }
  EXPECT_GT(same, all / 10);
  EXPECT_LT(same, all) << "some rows must have changed, or this test shows nothing";
}

// Without this trainer's push no later step is applied, so nothing can change.
TEST_F(RowsAheadTest, RowsOfTheStepBeforeAreComplete) {
  StartServers(2);
  const auto client = Client(0, true), other = Client(1, false);
  ASSERT_THAT(Push(*client, 0, 1), IsOk());
  ASSERT_THAT(Push(*other, 1, 1), IsOk());
  const std::vector<TableKeys> keys = KeysOf(0, 2);
  Rows rows, expected;
  ASSERT_THAT(other->Pull(2, keys, expected, {}), IsOk());
  const auto ahead = client->PullAhead(2, keys, rows, {});
  ASSERT_THAT(ahead, IsOk());
  EXPECT_EQ(ahead->at, (std::vector<int64_t>{1, 1}));
  for (Server& server : servers_) server.generation->Close();  // no second call is made
  ASSERT_THAT(client->PullChanged(2, keys, *ahead, rows, {}), IsOk());
  EXPECT_EQ(rows, expected);
}

// A server that is still being filled has no step near the one that is asked for.
TEST_F(RowsAheadTest, ServersThatAreNotThereYetGiveNothingAhead) {
  StartServers(1);
  const auto client = Client(0, true);
  const std::vector<TableKeys> keys = KeysOf(0, 9);
  Rows rows, expected;
  const auto ahead = client->PullAhead(9, keys, rows, {});
  ASSERT_THAT(ahead, IsOk());
  EXPECT_EQ(ahead->at, std::vector<int64_t>{-1});
  std::vector<float> values(2 * kAheadColumns * 3, 0.5F);  // of Adam
  ASSERT_THAT(servers_[0].store->Import(0, std::vector<uint64_t>{keys[0].keys[0], keys[0].keys[1]}, values), IsOk());
  servers_[0].store->SetApplied(8, 8);
  ASSERT_THAT(client->PullChanged(9, keys, *ahead, rows, {}), IsOk());
  ASSERT_THAT(Client(1, false)->Pull(9, keys, expected, {}), IsOk());
  EXPECT_EQ(rows, expected);
  EXPECT_EQ(rows[0][0], 0.5F);
}

// Rows that can be lost without an update are not asked for ahead.
TEST_F(RowsAheadTest, RowsThatExpireComeWhenTheyAreDue) {
  Optimizer optimizer = *MakeOptimizer("adagrad", 0.05);
  optimizer.lifetime.evict_after = 3;
  StartServers(1, optimizer);
  Rows rows;
  const auto ahead = Client(0, true)->PullAhead(1, KeysOf(0, 1), rows, {});
  ASSERT_THAT(ahead, IsOk());
  EXPECT_EQ(ahead->at, std::vector<int64_t>{-1});
}

TEST_F(RowsAheadTest, AClosedGenerationAnswersWithAnError) {
  StartServers(1);
  servers_[0].generation->Close();
  Rows rows;
  EXPECT_THAT(Client(0, true)->PullAhead(1, KeysOf(0, 1), rows, {}), StatusIs(absl::StatusCode::kAborted));
}

}  // namespace
}  // namespace medley::worker
