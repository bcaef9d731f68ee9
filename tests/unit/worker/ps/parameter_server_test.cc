// Tests client and servers over real gRPC on loopback ports.
#include "worker/ps/parameter_server.h"

#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <thread>

#include "common/base/testing/status_matchers.h"
#include "common/rpc/channel.h"
#include "common/rpc/context.h"
#include "common/rpc/server.h"
#include "medley/job/v1/parameter_server.grpc.pb.h"
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

  void StartShards(int count, int trainers, const rpc::ServerOptions& options = {}) {
    for (int s = 0; s < count; ++s) {
      Shard shard{std::make_unique<ParameterServer>("token", clock_), nullptr, MakeStore()};
      auto server = rpc::Server::Start(options, {&shard.service->service()});
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
                             .rows = 4000,
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
            .timeout = base::seconds(60)};
  }

  // Calls of Pull that run at the same time, each on a connection of its own.
  struct Pulls {
    struct One {
      grpc::ClientContext context;
      job::v1::PullResponse response;
      grpc::Status status;
      std::unique_ptr<grpc::ClientAsyncResponseReader<job::v1::PullResponse>> reader;
    };
    void Start(const std::string& address, int64_t step, base::nanoseconds timeout = base::seconds(60)) {
      calls.push_back(std::make_unique<One>());
      One& one = *calls.back();
      rpc::Prepare(one.context, {.token = "token", .timeout = timeout, .wait_for_ready = true});
      job::v1::PullRequest request;
      request.set_generation(5);
      request.set_step(step);
      grpc::TemplatedGenericStub<job::v1::PullRequest, job::v1::PullResponse> stub(rpc::MakeChannel(address));
      one.reader = stub.PrepareUnaryCall(&one.context, "/medley.job.v1.ParameterServerService/Pull", request, &queue);
      one.reader->StartCall();
      one.reader->Finish(&one.response, &one.status, &one);
    }
    // Waits for the end of some call.
    One& Next() {
      void* tag = nullptr;
      bool ok = false;
      EXPECT_TRUE(queue.Next(&tag, &ok));
      return *static_cast<One*>(tag);
    }
    ~Pulls() { queue.Shutdown(); }
    grpc::CompletionQueue queue;
    std::vector<std::unique_ptr<One>> calls;
  };

  void NextEvent() {
    void* tag = nullptr;
    bool ok = false;
    ASSERT_TRUE(queue_.Next(&tag, &ok));
  }

  base::SystemClock clock_;
  grpc::CompletionQueue queue_;  // of calls without a type
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
  for (const Shard& shard : shards_) EXPECT_EQ(shard.store->Rows(), 0) << "a pull creates no rows";
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

// As many trainers as a server has threads, and more, used to occupy them all.
TEST_F(PsTest, WaitingPullsOccupyNoThreads) {
  StartShards(1, 1, {.max_threads = 4});
  constexpr int kPulls = 200;
  Pulls waiting;
  for (int i = 0; i < kPulls; ++i) waiting.Start(addresses_[0], 2);
  PsClient trainer(Options(0), clock_);
  const TableKeys table{.operation = kServedTable, .columns = 2, .keys = {7}};
  const std::vector<float> gradient{1, 1};
  const std::span<const float> view(gradient);
  std::vector<std::vector<float>> rows;
  while (shards_[0].service->Find(5)->WaitingPulls() < kPulls) std::this_thread::yield();
  ASSERT_THAT(trainer.Pull(1, std::span(&table, 1), rows, {}), IsOk());
  ASSERT_THAT(trainer.Push(1, std::span(&table, 1), std::span(&view, 1), 64, {}), IsOk());
  for (int i = 0; i < kPulls; ++i) {
    const grpc::Status status = waiting.Next().status;
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
}

TEST_F(PsTest, APullThatWaitsTooLongLearnsForWhat) {
  StartShards(1, 1);
  shards_[0].service->Install(std::make_shared<ShardGeneration>(
      ShardGenerationOptions{.generation = 5, .wait = base::milliseconds(100)}, shards_[0].store));
  Pulls waiting;
  waiting.Start(addresses_[0], 3);
  const grpc::Status status = waiting.Next().status;
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(status.error_message(), "step 2 was not applied in time, the shard has applied step 0");
}

TEST_F(PsTest, AWaitingPullEndsWithItsGeneration) {
  StartShards(1, 1);
  Pulls waiting;
  for (int i = 0; i < 10; ++i) waiting.Start(addresses_[0], 2);
  while (shards_[0].service->Find(5)->WaitingPulls() < 10) std::this_thread::yield();
  shards_[0].service->Retain(6, 6);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(waiting.Next().status.error_code(), grpc::StatusCode::ABORTED);
}

TEST_F(PsTest, ACancelledPullNoLongerWaits) {
  StartShards(1, 1);
  const std::shared_ptr<ShardGeneration> generation = shards_[0].service->Find(5);
  Pulls waiting;
  for (int i = 0; i < 3; ++i) waiting.Start(addresses_[0], 2);
  while (generation->WaitingPulls() < 3) std::this_thread::yield();
  waiting.calls[1]->context.TryCancel();
  EXPECT_EQ(waiting.Next().status.error_code(), grpc::StatusCode::CANCELLED);
  while (generation->WaitingPulls() != 2) std::this_thread::yield();
  shards_[0].server->Stop(base::milliseconds(1));  // ends the others
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(waiting.Next().status.ok());
  EXPECT_EQ(generation->WaitingPulls(), 0U);
}

// The server takes and sends messages of at most 4 KiB, so that anything larger fails.
TEST_F(PsTest, LargePullsAndPushesAreSplit) {
  constexpr int kKeys = 3000;  // 24 kB of keys, 24 kB of rows
  std::vector<std::vector<float>> results;
  for (const bool split : {false, true}) {
    shards_.clear();
    addresses_.clear();
    rpc::ServerOptions server;
    if (split) server.max_message_bytes = server.max_send_bytes = 4096;
    StartShards(2, 1, server);
    std::vector<TableKeys> tables(1, {.operation = kServedTable, .columns = 2});
    for (uint64_t key = 0; key < kKeys; ++key) tables[0].keys.push_back(key);
    std::vector<float> gradient;
    for (int i = 0; i < 2 * kKeys; ++i) gradient.push_back(static_cast<float>(i));
    const std::span<const float> view(gradient);
    PsClientOptions options = Options(0);
    if (split) options.message_bytes = 4000;
    PsClient client(options, clock_);
    std::vector<std::vector<float>> rows;
    for (int64_t step = 1; step <= 2; ++step) {
      ASSERT_THAT(client.Pull(step, tables, rows, {}), IsOk());
      ASSERT_THAT(client.Push(step, tables, std::span(&view, 1), 64, {}), IsOk());
    }
    ASSERT_THAT(client.Pull(3, tables, rows, {}), IsOk());
    results.push_back(rows[0]);
    EXPECT_EQ(shards_[0].store->AppliedStep(), 2);
    if (split) {  // the limit is real
      PsClient whole(Options(0), clock_);
      EXPECT_THAT(whole.Pull(3, tables, rows, {}), StatusIs(absl::StatusCode::kResourceExhausted));
    }
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST_F(PsTest, EveryMethodNeedsTheToken) {
  StartShards(1, 1);
  ExpectEveryMethodNeedsTheToken(addresses_[0], *job::v1::PullRequest::descriptor()->file(), 4);
}

// Otherwise anyone could make the server keep as many large messages as it has connections.
TEST_F(PsTest, TheTokenIsCheckedBeforeTheRequestIsRead) {
  StartShards(1, 1);
  for (const char* method : {"Pull", "Push", "Replay", "ExportRows"}) {
    ExpectRefusedBeforeTheRequest(addresses_[0], "/medley.job.v1.ParameterServerService/" + std::string(method));
  }
}

TEST_F(PsTest, ACallWithoutARequestIsRefused) {
  StartShards(1, 1);
  for (const char* method : {"Pull", "Push", "Replay", "ExportRows"}) {
    grpc::GenericStub stub(rpc::MakeChannel(addresses_[0]));
    grpc::ClientContext context;
    rpc::Prepare(context, {.token = "token", .timeout = base::seconds(60), .wait_for_ready = true});
    const std::string name = "/medley.job.v1.ParameterServerService/" + std::string(method);
    const auto call = stub.PrepareCall(&context, name, &queue_);
    call->StartCall(nullptr);
    NextEvent();
    call->WritesDone(nullptr);
    NextEvent();
    grpc::Status status;
    call->Finish(&status, nullptr);
    NextEvent();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << method;
  }
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
