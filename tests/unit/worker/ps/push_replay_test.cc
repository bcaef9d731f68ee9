// A server that is lost at a random moment, and rebuilt from a checkpoint and the pushes that its trainers have kept.
#include "worker/ps/push_replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <thread>
#include <tuple>

#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"
#include "common/rpc/server.h"
#include "medley/job/v1/parameter_server.pb.h"
#include "worker/ps/client.h"
#include "worker/ps/parameter_server.h"
#include "worker/ps/push_log.h"
#include "worker/ps/replay_pushes.h"

namespace medley::worker {
namespace {

using base::IsOk;
using base::StatusIs;
using testing::HasSubstr;

constexpr int64_t kGeneration = 3;
constexpr int64_t kNext = 4;

// Bits of all rows, by table, floats and key: weights, optimizer state and use.
using Bits = std::map<std::tuple<int, size_t, uint64_t>, std::vector<uint32_t>>;

// With `counts`, rows without sightings say nothing: an undo has emptied them.
Bits BitsOf(const RowStore& store, bool counts) {
  Bits bits;
  const auto all = [](int, uint64_t) { return true; };
  EXPECT_THAT(store.Export(0, all,
                           [&](const RowPiece& piece) {
                             const size_t width = piece.keys.empty() ? 0 : piece.values.size() / piece.keys.size();
                             for (size_t k = 0; k < piece.keys.size(); ++k) {
                               const auto use = std::span(piece.values).subspan(k * width, width).last(kUseFloats);
                               if (counts && UseOf(use.first<kUseFloats>()).sightings == 0) continue;
                               std::vector<uint32_t>& row = bits[{piece.table, width, piece.keys[k]}];
                               for (size_t i = 0; i < width; ++i) {
                                 row.push_back(std::bit_cast<uint32_t>(piece.values[k * width + i]));
                               }
                             }
                             return absl::OkStatus();
                           }),
              IsOk());
  return bits;
}

class ReplayTest : public testing::Test {
 protected:
  struct Shard {
    std::shared_ptr<RowStore> store;
    std::unique_ptr<ParameterServer> service;
    std::unique_ptr<rpc::Server> server;
  };

  static std::vector<ParameterSpec> Tables() {
    std::vector<ParameterSpec> tables;
    for (const int operation : {0, 2}) {
      tables.push_back({.operation = operation,
                        .name = "table",
                        .rows = 500,
                        .columns = operation == 0 ? 3 : 8,
                        .sparse = true,
                        .initializer = Initializer::kUniform,
                        .scale = 1});
    }
    return tables;
  }

  // Trains `steps` steps on the shards with so many trainers each, all at the same time.
  void Start(int shards, OptimizerKind kind) {
    kind_ = kind;
    for (int s = 0; s < shards; ++s) shards_.push_back(NewShard());
  }
  Shard NewShard() {
    Optimizer optimizer{kind_, 0.1f};
    optimizer.lifetime = lifetime_;
    Shard shard{std::make_shared<RowStore>(Tables(), optimizer, 7), std::make_unique<ParameterServer>("token", clock_),
                nullptr};
    shard.server = rpc::Server::Start({}, {&shard.service->service()}).value();
    return shard;
  }
  void Install(int trainers, int64_t generation) {
    for (const Shard& shard : shards_) {
      auto access = std::make_shared<ShardGeneration>(
          ShardGenerationOptions{.generation = generation, .trainers = trainers}, shard.store);
      ASSERT_THAT(access->Allow(1000), IsOk());
      shard.service->Install(std::move(access));
    }
  }
  // Trainer `trainer` of `trainers` pushes random gradients of these steps.
  void Push(int trainer, int trainers, int64_t generation, int64_t first, int64_t last, uint64_t seed) {
    PsClientOptions options{.generation = generation,
                            .trainer = trainer,
                            .token = "token",
                            .message_bytes = seed % 2 == 0 ? size_t{1} << 20 : 700,
                            .log = logs_[static_cast<size_t>(trainer)],
                            .trainers = trainers};
    for (const Shard& shard : shards_) options.shards.push_back(shard.server->address());
    PsClient client(options, clock_);
    ASSERT_THAT(client.Connect({}), IsOk());
    for (int64_t step = first; step <= last; ++step) {
      base::Rng rng(seed * 1000003 + static_cast<uint64_t>(step * 31 + trainer));
      std::vector<TableKeys> keys;
      std::vector<std::vector<float>> gradients;
      for (const ParameterSpec& spec : Tables()) {
        TableKeys& table = keys.emplace_back(TableKeys{spec.operation, static_cast<int>(spec.columns), {}});
        for (uint64_t key = rng.Below(20); key < 500; key += 1 + rng.Below(40)) table.keys.push_back(key);
        std::vector<float>& values = gradients.emplace_back();
        for (size_t i = 0; i < table.keys.size() * static_cast<size_t>(spec.columns); ++i) {
          values.push_back(static_cast<float>(rng.Uniform(-1, 1)));
        }
      }
      const std::vector<std::span<const float>> views(gradients.begin(), gradients.end());
      std::vector<std::vector<float>> rows;
      ASSERT_THAT(client.Pull(step, keys, rows, {}), IsOk());
      ASSERT_THAT(client.Push(step, keys, views, 10 * trainers, {}), IsOk());
    }
  }
  void Train(int trainers, int64_t generation, int64_t first, int64_t last, uint64_t seed) {
    Install(trainers, generation);
    std::vector<std::jthread> threads;
    for (int t = 0; t < trainers; ++t) {
      if (logs_.size() <= static_cast<size_t>(t))
        logs_.push_back(std::make_shared<PushLog>([](size_t) { return 1u << 26; }));
      threads.emplace_back([=, this] { Push(t, trainers, generation, first, last, seed); });
    }
    threads.clear();
    for (const Shard& shard : shards_)
      ASSERT_THAT(shard.store->WaitApplied(last, {{}, clock_.Steady() + base::seconds(20)}), IsOk());
  }
  static void Copy(const RowStore& from, RowStore& to) {
    const auto all = [](int, uint64_t) { return true; };
    ASSERT_THAT(from.Export(0, all,
                            [&](const RowPiece& piece) {
                              return piece.keys.empty() ? absl::OkStatus()
                                                        : to.Import(piece.table, piece.keys, piece.values);
                            }),
                IsOk());
    to.SetApplied(from.AppliedStep(), from.StateSamples());
  }

  base::SystemClock clock_;
  OptimizerKind kind_ = OptimizerKind::kAdagrad;
  RowLifetime lifetime_;
  std::vector<Shard> shards_;
  std::vector<std::shared_ptr<PushLog>> logs_;  // of the trainers
};

// 50 moments: the checkpoint and the loss are at random steps. The number of trainers changes on the way, as it does
// when one of them leaves the job or joins it.
TEST_F(ReplayTest, ARebuiltShardHasTheBitsOfTheLostOne) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    base::Rng rng(seed);
    shards_.clear();
    logs_.clear();
    constexpr OptimizerKind kKinds[] = {OptimizerKind::kAdagrad, OptimizerKind::kAdam, OptimizerKind::kSgd,
                                        OptimizerKind::kFtrl};
    lifetime_ = seed % 3 == 0 ? RowLifetime{.admit_after = 2, .evict_after = 6, .decay_steps = 5} : RowLifetime{};
    Start(1 + static_cast<int>(rng.Below(3)), kKinds[seed % 4]);
    const auto saved = static_cast<int64_t>(rng.Below(6)), lost = saved + 1 + static_cast<int64_t>(rng.Below(12));
    const int trainers = 1 + static_cast<int>(rng.Below(3)), later = 1 + static_cast<int>(rng.Below(3));
    const int64_t changed = saved + static_cast<int64_t>(rng.Below(static_cast<uint64_t>(lost - saved)));
    if (saved > 0) Train(trainers, kGeneration, 1, saved, seed);
    const size_t victim = rng.Below(shards_.size());
    Shard other = NewShard();
    Copy(*shards_[victim].store, *other.store);  // the checkpoint
    for (const auto& log : logs_) log->DropThrough(saved);
    if (changed > saved) Train(trainers, kGeneration, saved + 1, changed, seed);
    Train(later, kGeneration + 1, changed + 1, lost, seed);
    const Bits before = BitsOf(*shards_[victim].store, lifetime_.Counts());
    shards_[victim].server->Stop();

    const auto replay = std::make_shared<PushReplay>(other.store, lost);
    std::vector<absl::Status> sent(logs_.size());
    {
      std::vector<std::jthread> threads;
      for (size_t t = 0; t < logs_.size(); ++t) {
        threads.emplace_back([&, t] {
          sent[t] = ReplayPushes({.address = other.server->address(), .token = "token", .generation = kNext + 1},
                                 logs_[t]->Of(static_cast<int>(victim), saved, lost), clock_,
                                 {{}, clock_.Steady() + base::seconds(30)});
        });
      }
      if (seed % 2 == 0) clock_.SleepFor(base::milliseconds(5), {});  // the trainers are faster than the server
      other.service->SetReplay(kNext + 1, replay);
      ASSERT_THAT(replay->Await({{}, clock_.Steady() + base::seconds(30)}), IsOk());
    }
    for (const absl::Status& status : sent) EXPECT_THAT(status, IsOk());
    EXPECT_EQ(other.store->AppliedStep(), lost);
    EXPECT_EQ(other.store->StateSamples(), shards_[victim].store->StateSamples());
    ASSERT_EQ(BitsOf(*other.store, lifetime_.Counts()), before);
    // The survivors may be one step behind.
    ASSERT_THAT(other.store->UndoTo(lost - 1), IsOk());
    ASSERT_THAT(shards_[victim].store->UndoTo(lost - 1), IsOk());
    ASSERT_EQ(BitsOf(*other.store, lifetime_.Counts()), BitsOf(*shards_[victim].store, lifetime_.Counts()));
  }
}

PushReplay::Push PushOf(int64_t step, int trainer, int trainers) {
  return {.step = step,
          .trainer = trainer,
          .trainers = trainers,
          .samples = 10,
          .part = {},
          .gradients = {Gradients::Of(0, {1}, {1, 1, 1})}};
}

TEST_F(ReplayTest, PushesThatDoNotMatchEndTheRebuilding) {
  const WaitLimit soon{{}, clock_.Steady() + base::milliseconds(20)};
  {
    PushReplay replay(NewShard().store, 4);
    EXPECT_THAT(replay.Take(PushOf(5, 0, 1), soon), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("step 4")));
    EXPECT_THAT(replay.Await(soon), StatusIs(absl::StatusCode::kInvalidArgument)) << "the first error counts";
    EXPECT_THAT(replay.Take(PushOf(1, 0, 1), soon), StatusIs(absl::StatusCode::kInvalidArgument));
  }
  {
    PushReplay replay(NewShard().store, 4);
    EXPECT_THAT(replay.Take(PushOf(1, 0, 2), soon), IsOk());
    EXPECT_THAT(replay.Take(PushOf(1, 1, 3), soon),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("another one said 2")));
  }
  {
    PushReplay replay(NewShard().store, 4);
    EXPECT_THAT(replay.Take(PushOf(1, 7, 2), soon), StatusIs(absl::StatusCode::kInvalidArgument));
  }
  {
    PushReplay replay(NewShard().store, 4);
    PushReplay::Push wrong = PushOf(1, 0, 1);
    wrong.gradients = {Gradients::Of(0, {1}, {1, 1})};
    EXPECT_THAT(replay.Take(std::move(wrong), soon), StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST_F(ReplayTest, AMissingPushEndsAfterTheLimitAndIsNamed) {
  PushReplay replay(NewShard().store, 4);
  const WaitLimit soon{{}, clock_.Steady() + base::milliseconds(50)};
  ASSERT_THAT(replay.Take(PushOf(1, 0, 1), soon), IsOk());
  ASSERT_THAT(replay.Take(PushOf(2, 0, 2), soon), IsOk());
  EXPECT_THAT(replay.Take(PushOf(3, 0, 2), soon),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("step 1 of 4 is applied")));
  EXPECT_THAT(replay.Await(soon), StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("step 1 of 4 is applied")));
}

TEST_F(ReplayTest, AServerThatRebuildsNothingRefuses) {
  Shard shard = NewShard();
  PushLog log([](size_t) { return 1u << 21; });
  job::v1::PushRequest message;
  message.set_step(1);
  log.Add({.generation = 1}, 0, message);
  const auto send = [&](const std::string& token) {
    return ReplayPushes({.address = shard.server->address(), .token = token, .generation = kNext}, log.Of(0, 0, 1),
                        clock_, {{}, clock_.Steady() + base::milliseconds(700)});
  };
  EXPECT_FALSE(send("token").ok());
  EXPECT_THAT(send("wrong"), StatusIs(absl::StatusCode::kUnauthenticated));
  shard.service->SetReplay(kNext + 1, std::make_shared<PushReplay>(shard.store, 1));
  EXPECT_THAT(send("token"), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("generation 4")));
  shard.service->Retain(0, -1);
  EXPECT_THAT(send("token"), StatusIs(absl::StatusCode::kFailedPrecondition)) << "at once, not after its limit";
}

class PushLogTest : public testing::Test {
 protected:
  void Add(int64_t step, size_t bytes, PushLog::Place place = {}, int part = 0) {
    job::v1::PushRequest message;
    message.set_step(step);
    message.set_part(part);
    message.add_tables()->mutable_gradients()->assign(bytes, 'g');
    log_.Add(place, 0, message);
  }
  std::vector<std::pair<int64_t, int64_t>> Runs() const {
    std::vector<std::pair<int64_t, int64_t>> runs;
    for (const PushLog::Run& run : log_.Runs()) runs.emplace_back(run.first_step, run.last_step);
    return runs;
  }

  size_t budget_ = 100'000;
  PushLog log_{[this](size_t) { return budget_; }, 10'000};
};

TEST_F(PushLogTest, TheOldestStepsGiveWay) {
  for (int64_t step = 1; step <= 9; ++step) Add(step, 9'000);
  EXPECT_THAT(Runs(), testing::ElementsAre(std::pair(1, 9)));
  EXPECT_TRUE(log_.IsShort());
  for (int64_t step = 10; step <= 20; ++step) Add(step, 9'000);
  EXPECT_THAT(Runs(), testing::ElementsAre(std::pair(11, 20)));
  EXPECT_LE(log_.bytes(), budget_);
  budget_ = 20'000;  // memory is short now
  Add(21, 9'000);
  EXPECT_THAT(Runs(), testing::ElementsAre(std::pair(20, 21)));
}

// No part of a step without room is kept, or the others would be taken for the whole step.
TEST_F(PushLogTest, AStepLargerThanTheBudgetIsNotKeptInPart) {
  Add(1, 60'000, {}, 0);
  Add(1, 60'000, {}, 1);
  Add(1, 10, {}, 2);
  EXPECT_THAT(Runs(), testing::IsEmpty());
  Add(2, 10);
  EXPECT_THAT(Runs(), testing::ElementsAre(std::pair(2, 2)));
  log_.CutAfter(0);
  Add(1, 10);
  EXPECT_THAT(Runs(), testing::ElementsAre(std::pair(1, 1))) << "trained again, it is kept";
}

TEST_F(PushLogTest, WhatWasUndoneOrSavedIsDropped) {
  for (int64_t step = 1; step <= 9; ++step) Add(step, 100);
  log_.DropThrough(3);
  log_.CutAfter(7);
  EXPECT_THAT(Runs(), testing::ElementsAre(std::pair(4, 7)));
  EXPECT_EQ(log_.Of(0, 4, 6).size(), 2u);
  EXPECT_EQ(log_.Of(1, 0, 9).size(), 0u) << "of another shard";
  const PushLog::Place other{.generation = 2, .trainer = 1, .trainers = 2, .shards = 3};
  Add(8, 100, other);
  Add(9, 100, other);
  Add(11, 100, other);
  EXPECT_THAT(Runs(), testing::ElementsAre(std::pair(4, 7), std::pair(8, 9), std::pair(11, 11)));
  EXPECT_EQ(log_.Runs()[1].place, other);
  log_.Clear();
  EXPECT_EQ(log_.bytes(), 0u);
}

// A generation that is halted in the middle of a push begins the step again, maybe with other trainers.
TEST_F(PushLogTest, AStepThatIsPushedAgainReplacesTheFormerOne) {
  Add(1, 100, {.generation = 1}, 0);
  Add(1, 100, {.generation = 1}, 1);
  Add(1, 100, {.generation = 2}, 0);
  EXPECT_EQ(log_.Of(0, 0, 1).size(), 1u);
  Add(1, 100, {.generation = 2}, 0);
  EXPECT_EQ(log_.Of(0, 0, 1).size(), 1u);
}

TEST_F(PushLogTest, MemoryIsUsedAgain) {
  Add(1, 9'000);
  const auto kept = log_.Of(0, 0, 1);
  const std::byte* second = nullptr;
  Add(2, 9'000);
  second = log_.Of(0, 1, 2)[0].push.data();
  log_.DropThrough(2);  // the first is still being sent
  Add(3, 9'000);
  const std::byte* third = log_.Of(0, 2, 3)[0].push.data();
  EXPECT_EQ(third, second);
  EXPECT_NE(third, kept[0].push.data());
  job::v1::PushRequest first;
  ASSERT_TRUE(first.ParseFromArray(kept[0].push.data(), static_cast<int>(kept[0].push.size())));
  EXPECT_EQ(first.tables(0).gradients(), std::string(9'000, 'g'));
}

// Whatever is dropped in whatever order, slabs in use never exceed the budget, and all that is kept can be read.
TEST_F(PushLogTest, TheBudgetHoldsWhateverIsDropped) {
  base::Rng rng(1);
  int64_t step = 0;
  for (int i = 0; i < 3'000; ++i) {
    const uint64_t what = rng.Below(20);
    if (what == 0) log_.DropThrough(step - static_cast<int64_t>(rng.Below(30)));
    if (what == 1) log_.CutAfter(step = std::max<int64_t>(0, step - static_cast<int64_t>(rng.Below(3))));
    if (what == 2) budget_ = 5'000 + rng.Below(100'000);
    if (what == 3 && rng.Below(10) == 0) log_.Clear();
    Add(++step, rng.Below(40) == 0 ? 30'000 : rng.Below(4'000), {.generation = i});
    ASSERT_LE(log_.bytes(), std::max<size_t>(budget_, 0)) << "after " << i;
    for (const PushLog::Kept& kept : log_.Of(0, 0, step)) {
      job::v1::PushRequest push;
      ASSERT_TRUE(push.ParseFromArray(kept.push.data(), static_cast<int>(kept.push.size())));
      ASSERT_EQ(push.tables(0).gradients().find_first_not_of('g'), std::string::npos);
    }
  }
}

TEST(PushLogBudgetTest, GivesWayToTheProcess) {
  constexpr int64_t kMib = 1 << 20;
  EXPECT_EQ(PushLogBudget(0, 0, 256 * kMib), 256 * kMib) << "no limit is known";
  EXPECT_EQ(PushLogBudget(8192 * kMib, 100 * kMib, 256 * kMib), 256 * kMib);
  EXPECT_EQ(PushLogBudget(800 * kMib, 100 * kMib, 256 * kMib), 100 * kMib);
  EXPECT_EQ(PushLogBudget(800 * kMib, 650 * kMib, 256 * kMib), 50 * kMib);
  EXPECT_EQ(PushLogBudget(800 * kMib, 790 * kMib, 256 * kMib), 0u);
}

}  // namespace
}  // namespace medley::worker
