// Tests the checkpoints of a parameter server while it trains, also on a volume that does not answer.
#include <gmock/gmock.h>

#include <fstream>
#include <memory>
#include <vector>

#include "common/base/file.h"
#include "common/base/mutex.h"
#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "tests/unit/worker/checkpoint/faulty_files.h"
#include "worker/checkpoint/layout.h"
#include "worker/ps/parameter_server.h"
#include "worker/trainer/server_role.h"

namespace medley::worker {
namespace {

namespace pb = ::medley::job::v1;
using base::IsOk;
using base::StatusIs;
using testing::HasSubstr;

constexpr int64_t kGeneration = 3;
constexpr size_t kColumns = 16;

// A server with one shard whose trainer pushes random gradients, always the same ones at the same step.
class Server {
 public:
  Server(std::filesystem::path root, Files& files) : service_("token", clock_) {
    ServerContext context;
    context.tables = {{.operation = 0,
                       .name = "table",
                       .rows = 1 << 20,
                       .columns = kColumns,
                       .sparse = true,
                       .initializer = Initializer::kUniform,
                       .scale = 0.1f}};
    context.optimizer = {.kind = OptimizerKind::kAdagrad, .learning_rate = 0.1f};
    context.session.member = "server-0";
    context.session.instance = "i1";
    context.checkpoint_root = Volume(std::move(root), files);
    context.clock = &clock_;
    role_ = std::make_unique<ServerRole>(context, service_, [](const pb::SessionRequest&) {});
    Start();
  }
  void Train(int64_t until) {
    for (int64_t step = At() + 1; step <= until; ++step) {
      pb::StepLease lease;
      lease.set_step(step);
      ASSERT_THAT(role_->Train(kGeneration, lease, nullptr), IsOk());
      base::Rng rng(static_cast<uint64_t>(step));
      std::vector<uint64_t> keys;
      for (uint64_t key = rng.Below(50); key < 100000; key += 1 + rng.Below(100)) keys.push_back(key);
      std::vector<float> values(keys.size() * kColumns, static_cast<float>(rng.Uniform(-1, 1)));
      const Gradients gradients = Gradients::Of(0, std::move(keys), std::move(values));
      ASSERT_THAT(service_.Find(kGeneration)->Push(step, 0, {gradients}, 32), IsOk());
    }
  }
  int64_t At() const { return service_.Find(kGeneration)->store().AppliedStep(); }
  // Orders the checkpoint of the applied step.
  void Checkpoint(const std::string& folder) {
    pb::Checkpoint order;
    order.set_generation(kGeneration);
    order.set_step(At());
    order.set_folder(folder);
    ASSERT_THAT(role_->Checkpoint(order,
                                  [this](absl::StatusOr<pb::Checkpointed> done) {
                                    base::MutexLock lock(mutex_);
                                    results_.push_back(std::move(done));
                                    changed_.NotifyAll();
                                  }),
                IsOk());
  }
  // Waits for the result of a checkpoint.
  absl::StatusOr<pb::Checkpointed> Next() {
    base::MutexLock lock(mutex_);
    const auto some = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !results_.empty(); };
    if (!changed_.WaitFor(mutex_, {}, base::seconds(60), some)) return base::DeadlineExceeded("no result");
    absl::StatusOr<pb::Checkpointed> result = std::move(results_.front());
    results_.erase(results_.begin());
    return result;
  }
  ServerRole& role() { return *role_; }

 private:
  void Start() {
    pb::Prepare prepare;
    prepare.set_generation(kGeneration);
    prepare.set_origin(pb::STATE_ORIGIN_INITIAL);
    plan::v1::Stage& stage = *prepare.mutable_plan()->add_stages();
    stage.add_operations()->set_end(1);
    stage.add_groups()->set_units(1);
    pb::Peer& trainer = *prepare.add_peers();
    trainer.mutable_slot()->set_role(pb::MEMBER_ROLE_TRAINER);
    pb::Peer& server = *prepare.add_peers();
    server.mutable_slot()->set_role(pb::MEMBER_ROLE_SERVER);
    server.mutable_slot()->set_member("server-0");
    server.set_instance("i1");
    auto prepared = role_->Prepare(prepare, {});
    ASSERT_THAT(prepared, IsOk());
    pb::Switch order;
    order.set_generation(kGeneration);
    ASSERT_THAT(role_->Switch(order, *prepared), IsOk());
  }

  base::SystemClock clock_;
  ParameterServer service_;
  base::Mutex mutex_;
  base::CondVar changed_;
  std::vector<absl::StatusOr<pb::Checkpointed>> results_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<ServerRole> role_;
};

class ServerCheckpointTest : public testing::Test {
 protected:
  void SetUp() override { root_ = *base::MakeTempDir("medley-server"); }
  void TearDown() override {
    files_.Release();
    base::RemoveTempDir(root_);
  }
  std::string Bytes(const std::string& folder) const {
    return base::ReadFile(root_ / folder / RowsFileName(kGeneration, 0)).value();
  }

  // Threads that a test abandons still use it, also while the program ends: it is never destroyed.
  static FaultyFiles& SharedFiles() {
    static FaultyFiles& files = *new FaultyFiles;
    return files;
  }
  FaultyFiles& files_ = SharedFiles();
  std::filesystem::path root_;
};

TEST_F(ServerCheckpointTest, IsTheSameAsIfTrainingHadWaitedForIt) {
  Server waits(root_, SystemFiles());
  waits.Train(20);
  waits.Checkpoint("step-a");
  const auto expected = waits.Next();
  ASSERT_THAT(expected, IsOk());
  Server trains(root_, files_);
  trains.Train(20);
  files_.Block(FaultyFiles::Call::kWrite);
  trains.Checkpoint("step-b");
  ASSERT_TRUE(files_.WaitForBlocked());
  trains.Train(40);  // while the file is being written
  EXPECT_EQ(trains.At(), 40);
  files_.Release();
  const auto found = trains.Next();
  ASSERT_THAT(found, IsOk());
  EXPECT_EQ(found->step(), 20);
  EXPECT_EQ(found->files(0).digest(), expected->files(0).digest());
  EXPECT_GT(Bytes("step-a").size(), size_t{2} << 20);  // more than one piece
  EXPECT_EQ(Bytes("step-a"), Bytes("step-b"));
}

TEST_F(ServerCheckpointTest, AVolumeThatHangsStopsNeitherTrainingNorALaterCheckpoint) {
  for (const auto call :
       {FaultyFiles::Call::kCreate, FaultyFiles::Call::kWrite, FaultyFiles::Call::kSync, FaultyFiles::Call::kRename}) {
    SCOPED_TRACE(static_cast<int>(call));
    Server server(root_, files_);
    server.Train(5);
    files_.Block(call);
    server.Checkpoint("step-a");
    ASSERT_TRUE(files_.WaitForBlocked());
    server.Train(10);
    server.Checkpoint("step-b");  // the coordinator gave up the first one
    server.Train(15);
    EXPECT_EQ(server.At(), 15);
    EXPECT_EQ(server.role().Halt(kGeneration).applied_step(), 15);
    server.Checkpoint("step-c");
    EXPECT_THAT(server.Next(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("has not answered")));
    files_.Release();
    server.Checkpoint("step-d");
    auto last = server.Next();
    while (!last.ok()) {  // until the thread has taken the operations that waited
      server.Checkpoint("step-d");
      last = server.Next();
    }
    EXPECT_EQ(last->step(), 15);
  }
}

TEST_F(ServerCheckpointTest, AnErrorOfTheVolumeIsReported) {
  Server server(root_ / "absent" / "\x01", files_);
  std::ofstream(root_ / "absent") << "not a folder";
  server.Train(1);
  server.Checkpoint("step-a");
  EXPECT_FALSE(server.Next().ok());
  server.Train(2);
  EXPECT_EQ(server.At(), 2);
}

}  // namespace
}  // namespace medley::worker
