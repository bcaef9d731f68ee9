// Tests the coordinator on a volume whose calls block or fail, and on one that another coordinator has taken over.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "common/rpc/channel.h"
#include "common/rpc/context.h"
#include "common/rpc/status.h"
#include "medley/job/v1/coordinator.grpc.pb.h"
#include "medley/job/v1/journal.pb.h"
#include "tests/unit/worker/checkpoint/faulty_files.h"
#include "worker/checkpoint/volume_thread.h"
#include "worker/coordinator/server/journal.h"
#include "worker/coordinator/server/server.h"

namespace medley::worker {
namespace {

namespace fs = std::filesystem;
using base::IsOk;
using base::StatusIs;
using testing::HasSubstr;

class VolumeTest : public testing::Test {
 protected:
  void SetUp() override { root_ = *base::MakeTempDir("medley-volume"); }
  void TearDown() override {
    files_.Release();
    base::RemoveTempDir(root_);
  }

  CoordinatorOptions Options() {
    CoordinatorOptions options;
    options.core.job_uid = "uid";
    options.core.batch_size = 5;
    options.core.fold_in_wait = base::milliseconds(1);
    options.core.retry_wait = base::milliseconds(1);
    options.core.max_searches = 2;
    options.token = "secret";
    options.checkpoint_root = Volume(root_, files_);
    options.tick = base::milliseconds(5);
    options.linger = base::milliseconds(1);
    options.volume_grace = base::milliseconds(20);
    return options;
  }
  // Says that a checkpoint of step 4 was saved.
  void WriteJournal() {
    job::v1::CoordinatorState state;
    state.set_last_generation(2);
    state.set_from_generation(2);
    state.set_last_checkpoint_step(4);
    ASSERT_THAT((*Journal::Open(root_))->Append(state), IsOk());
  }
  static absl::Status Apply(int port) {
    job::v1::ApplyPlanRequest request;
    plan::v1::ExecutionPlan& plan = *request.mutable_plan();
    plan.set_generation(1);
    plan.set_job_uid("uid");
    plan.add_stages()->add_operations()->set_end(1);
    plan::v1::Group& group = *plan.mutable_stages(0)->add_groups();
    group.set_pool("cpu");
    group.set_units(1);
    group.set_share(1);
    job::v1::MemberSlot& slot = *request.add_slots();
    slot.set_member("job-0");
    slot.set_role(job::v1::MEMBER_ROLE_TRAINER);
    slot.set_pool("cpu");
    const auto stub = job::v1::CoordinatorService::NewStub(rpc::MakeChannel("127.0.0.1:" + std::to_string(port)));
    grpc::ClientContext context;
    rpc::Prepare(context, {.token = "secret", .timeout = base::seconds(30), .wait_for_ready = true});
    job::v1::ApplyPlanResponse response;
    return rpc::FromGrpc(stub->ApplyPlan(&context, request, &response));
  }
  // Connects the only member until the coordinator ends its session; returns the reason of its release.
  static std::string Member(int port) {
    const auto stub = job::v1::MemberService::NewStub(rpc::MakeChannel("127.0.0.1:" + std::to_string(port)));
    grpc::ClientContext context;
    rpc::Prepare(context, {.token = "secret", .timeout = base::seconds(60), .wait_for_ready = true});
    const auto stream = stub->Session(&context);
    job::v1::SessionRequest hello;
    hello.mutable_hello()->set_member("job-0");
    hello.mutable_hello()->set_role(job::v1::MEMBER_ROLE_TRAINER);
    hello.mutable_hello()->set_pool("cpu");
    hello.mutable_hello()->set_instance("i1");
    stream->Write(hello);
    job::v1::SessionResponse order;
    std::string reason;
    while (stream->Read(&order)) {
      if (!order.has_release()) continue;
      reason = order.release().reason();
      context.TryCancel();
    }
    (void)stream->Finish();
    return reason;
  }

  // Threads that a test abandons still use it.
  static FaultyFiles& SharedFiles() {
    static FaultyFiles files;
    return files;
  }
  FaultyFiles& files_ = SharedFiles();
  base::SystemClock clock_;
  fs::path root_;
};

TEST_F(VolumeTest, AVolumeThatDoesNotOpenEndsTheStartWithASentence) {
  CoordinatorOptions options = Options();
  options.journal_timeout = base::milliseconds(50);
  files_.Block(FaultyFiles::Call::kCreate);
  EXPECT_THAT(CoordinatorServer::Start(options, clock_),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("opening " + root_.string())));
}

TEST_F(VolumeTest, AJournalThatCannotBeWrittenEndsTheProcess) {
  CoordinatorOptions options = Options();
  options.journal_timeout = base::seconds(2);  // also enough for the start on a slow machine
  auto server = CoordinatorServer::Start(options, clock_);
  ASSERT_THAT(server, IsOk());
  files_.Block(FaultyFiles::Call::kSync);
  (void)Apply((*server)->port());  // what it returns does not matter: the plan was not journaled
  EXPECT_EQ((*server)->Wait({}), 1);
  (*server)->Stop();
}

TEST_F(VolumeTest, AListingThatNeverReturnsFailsTheJobRetryable) {
  WriteJournal();
  CoordinatorOptions options = Options();
  options.core.volume_timeout = base::milliseconds(100);
  auto server = CoordinatorServer::Start(options, clock_);
  ASSERT_THAT(server, IsOk());
  files_.Block(FaultyFiles::Call::kList);
  ASSERT_THAT(Apply((*server)->port()), IsOk());
  std::string reason;
  std::jthread member([&] { reason = Member((*server)->port()); });
  EXPECT_TRUE(files_.WaitForBlocked());
  EXPECT_EQ((*server)->Wait({}), 1);
  member.join();
  EXPECT_THAT(reason, HasSubstr("did not answer"));
  (*server)->Stop();  // returns although the listing still blocks
}

TEST_F(VolumeTest, AListingThatFailsIsNoEmptyFolder) {
  WriteJournal();
  static FaultyFiles files;
  files.list_error = base::Internal("listing: i/o error");
  CoordinatorOptions options = Options();
  options.checkpoint_root = Volume(root_, files);
  auto server = CoordinatorServer::Start(options, clock_);
  ASSERT_THAT(server, IsOk());
  ASSERT_THAT(Apply((*server)->port()), IsOk());
  EXPECT_THAT(Member((*server)->port()), HasSubstr("listing: i/o error"));
  EXPECT_EQ((*server)->Wait({}), 1);
}

TEST_F(VolumeTest, ACoordinatorStopsAfterAnotherOneTookOver) {
  CoordinatorOptions options = Options();
  options.instance = "first";
  auto first = CoordinatorServer::Start(options, clock_);
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(Apply((*first)->port()), IsOk());
  options.instance = "second";
  auto second = CoordinatorServer::Start(options, clock_);
  ASSERT_THAT(second, IsOk());
  std::jthread member([port = (*first)->port()] { (void)Member(port); });  // a new generation needs a record
  EXPECT_EQ((*first)->Wait({}), 1);
  (*first)->Stop();
  member.join();
  ASSERT_THAT(Apply((*second)->port()), IsOk());
}

TEST(VolumeThreadTest, ABlockedOperationDelaysTheOthersOnlyToTheirDeadline) {
  static FaultyFiles files;
  files.Block(FaultyFiles::Call::kList);
  VolumeThread volume({.grace = base::milliseconds(10), .max_queue = 1});
  const auto list = [] { return files.List("/").status(); };
  EXPECT_THAT(volume.Run("listing /", base::milliseconds(10), {}, list),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("listing /: the volume did not answer")));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THAT(volume.Run("listing /", base::seconds(60), stop.get_token(), list),
              StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(volume.Run("listing /", base::seconds(60), {}, list), StatusIs(absl::StatusCode::kUnavailable));
  files.Release();
  absl::Status again = base::Unavailable("");
  while (absl::IsUnavailable(again)) again = volume.Run("listing /", base::seconds(60), {}, list);
  EXPECT_THAT(again, IsOk());
}

TEST(VolumeThreadTest, NothingIsDeliveredAfterStop) {
  static FaultyFiles files;
  files.Block(FaultyFiles::Call::kList);
  static std::atomic<bool> delivered = false;
  static std::atomic<bool> worked = false;
  {
    VolumeThread volume({.grace = base::milliseconds(10)});
    ASSERT_TRUE(volume.Post([]() -> VolumeThread::Deliver {
      (void)files.List("/");
      worked = true;
      return [] { delivered = true; };
    }));
    ASSERT_TRUE(files.WaitForBlocked());
  }
  files.Release();
  while (!worked) std::this_thread::yield();
  EXPECT_FALSE(delivered);
}

}  // namespace
}  // namespace medley::worker
