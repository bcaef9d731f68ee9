// Tests the coordinator on a volume whose calls block or fail, and on one that another coordinator has taken over.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cerrno>
#include <deque>
#include <filesystem>
#include <fstream>
#include <thread>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "common/rpc/channel.h"
#include "common/rpc/context.h"
#include "common/rpc/status.h"
#include "medley/job/v1/coordinator.grpc.pb.h"
#include "medley/job/v1/journal.pb.h"
#include "tests/unit/worker/checkpoint/faulty_files.h"
#include "tests/unit/worker/checkpoint/small_volume.h"
#include "tests/unit/worker/coordinator/server/one_trainer.h"
#include "worker/checkpoint/volume_thread.h"
#include "worker/claim/claims.h"
#include "worker/coordinator/server/checkpoint_files.h"
#include "worker/coordinator/server/hand_over.h"
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
    files_.FailList(absl::OkStatus());
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
  CoordinatorOptions WithTerm(int64_t term) {
    CoordinatorOptions options = Options();
    options.term = term;
    options.address = "10.0.0.1:7070";  // no member looks for it
    return options;
  }
  // With the shortest of some times for the journal that is enough for the start too, however slow the volume is.
  std::unique_ptr<CoordinatorServer> StartInTime(CoordinatorOptions options) {
    absl::StatusOr<std::unique_ptr<CoordinatorServer>> server;
    for (const int timeout : {1, 8, 60}) {
      options.journal_timeout = base::seconds(timeout);
      server = CoordinatorServer::Start(options, clock_);
      if (server.ok()) return *std::move(server);
    }
    ADD_FAILURE() << server.status();
    return nullptr;
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
    const auto stub = job::v1::CoordinatorService::NewStub(rpc::MakeChannel("127.0.0.1:" + std::to_string(port)));
    grpc::ClientContext context;
    rpc::Prepare(context, {.token = "secret", .timeout = base::seconds(60), .wait_for_ready = true});
    job::v1::ApplyPlanResponse response;
    return rpc::FromGrpc(stub->ApplyPlan(&context, OneTrainer(), &response));
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

  // Threads that a test abandons still use it, also while the program ends: it is never destroyed.
  static FaultyFiles& SharedFiles() {
    static FaultyFiles& files = *new FaultyFiles;
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
  const auto server = StartInTime(Options());
  ASSERT_NE(server, nullptr);
  files_.Block(FaultyFiles::Call::kSync);
  (void)Apply(server->port());  // what it returns does not matter: the plan was not journaled
  EXPECT_EQ(server->Wait({}), 1);
  server->Stop();
}

TEST_F(VolumeTest, AListingThatNeverReturnsFailsTheJobRetryable) {
  WriteJournal();
  CoordinatorOptions options = Options();
  options.core.volume_timeout = base::milliseconds(100);
  auto server = CoordinatorServer::Start(options, clock_);
  ASSERT_THAT(server, IsOk());
  files_.Block(FaultyFiles::Call::kList, root_);
  ASSERT_THAT(Apply((*server)->port()), IsOk());
  std::string reason;
  std::jthread member([&] { reason = Member((*server)->port()); });
  EXPECT_TRUE(files_.WaitForBlocked());
  EXPECT_EQ((*server)->Wait({}), 1);
  member.join();
  EXPECT_THAT(reason, HasSubstr("did not answer"));
  (*server)->Stop();  // returns although the listing still blocks
}

TEST_F(VolumeTest, AListingThatFailsIsNotAnEmptyFolder) {
  WriteJournal();
  static FaultyFiles& files = *new FaultyFiles;
  files.FailList(base::Internal("listing: i/o error"), root_);
  CoordinatorOptions options = Options();
  options.checkpoint_root = Volume(root_, files);
  auto server = CoordinatorServer::Start(options, clock_);
  ASSERT_THAT(server, IsOk());
  ASSERT_THAT(Apply((*server)->port()), IsOk());
  EXPECT_THAT(Member((*server)->port()), HasSubstr("listing: i/o error"));
  EXPECT_EQ((*server)->Wait({}), 1);
}

TEST_F(VolumeTest, AClaimThatCannotBeTakenEndsTheStartWithASentence) {
  CoordinatorOptions options = WithTerm(1);
  options.journal_timeout = base::milliseconds(50);
  files_.Block(FaultyFiles::Call::kCreate);
  EXPECT_THAT(CoordinatorServer::Start(options, clock_),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("the volume did not answer")));
}

TEST_F(VolumeTest, ClaimsThatCannotBeReadEndTheProcess) {
  const auto server = StartInTime(WithTerm(1));
  ASSERT_NE(server, nullptr);
  files_.Block(FaultyFiles::Call::kList);
  (void)Apply(server->port());  // its record is written, but nobody can tell whether it counts
  EXPECT_EQ(server->Wait({}), 1);
  server->Stop();  // returns although the listing still blocks
}

// A look at the claims that fails says nothing about another coordinator.
TEST_F(VolumeTest, ALookAtTheClaimsMayFailForSomeTime) {
  CoordinatorOptions options = WithTerm(1);
  options.claim_interval = base::milliseconds(1);
  auto server = CoordinatorServer::Start(options, clock_);
  ASSERT_THAT(server, IsOk());
  files_.FailList(base::Internal("listing: i/o error"), root_ / "coordinators");
  ASSERT_TRUE(files_.WaitForFailedLists(3));
  files_.FailList(absl::OkStatus());
  EXPECT_THAT(Apply((*server)->port()), IsOk());
}

TEST_F(VolumeTest, LooksAtTheClaimsThatFailForTooLongEndTheProcess) {
  CoordinatorOptions options = WithTerm(1);
  options.claim_interval = base::milliseconds(1);
  const auto server = StartInTime(options);
  ASSERT_NE(server, nullptr);
  files_.FailList(base::Internal("listing: i/o error"), root_ / "coordinators");
  EXPECT_EQ(server->Wait({}), 1);
}

// An operator of an earlier release gave it no term.
TEST_F(VolumeTest, ACoordinatorWithoutATermStopsAfterOneWithATermTookOver) {
  CoordinatorOptions options = Options();
  options.claim_interval = base::seconds(3600);  // only the look after a record finds the claim
  auto server = CoordinatorServer::Start(options, clock_);
  ASSERT_THAT(server, IsOk());
  ASSERT_THAT(Claims(root_).Take(1, "10.0.0.2:7070", "a"), IsOk());
  (void)Apply((*server)->port());  // needs a record
  EXPECT_EQ((*server)->Wait({}), kSuperseded);
  EXPECT_THAT(CoordinatorServer::Start(options, clock_), StatusIs(absl::StatusCode::kAborted));
}

TEST_F(VolumeTest, ACoordinatorStopsAfterAnotherOneTookOver) {
  CoordinatorOptions options = WithTerm(1);
  options.claim_interval = base::seconds(3600);  // only the look after a record finds the newer claim
  auto server = CoordinatorServer::Start(options, clock_);
  ASSERT_THAT(server, IsOk());
  ASSERT_THAT(Apply((*server)->port()), IsOk());
  ASSERT_THAT(Claims(root_).Take(2, "10.0.0.2:7070", "a"), IsOk());
  std::jthread member([port = (*server)->port()] { (void)Member(port); });  // a new generation needs a record
  EXPECT_EQ((*server)->Wait({}), kSuperseded);
  (*server)->Stop();
  member.join();
}

// An operator that lost sight of a pod may have created a second one with its term.
TEST_F(VolumeTest, ACoordinatorStopsAfterAnotherProcessOfItsTermClaimed) {
  CoordinatorOptions options = WithTerm(1);
  options.claim_interval = base::milliseconds(1);
  auto server = CoordinatorServer::Start(options, clock_);
  ASSERT_THAT(server, IsOk());
  options.claim_interval = base::seconds(3600);
  auto second = CoordinatorServer::Start(options, clock_);
  ASSERT_THAT(second, IsOk()) << "a container that is started again must come back";
  EXPECT_EQ((*server)->Wait({}), kSuperseded);
  EXPECT_THAT(Apply((*second)->port()), IsOk());
}

// The record of the end is refused, so nobody may hear of the end.
TEST_F(VolumeTest, ASupersededCoordinatorDoesNotSayThatTheJobIsOver) {
  CoordinatorOptions options = WithTerm(1);
  options.claim_interval = base::seconds(3600);
  auto server = CoordinatorServer::Start(options, clock_);
  ASSERT_THAT(server, IsOk());
  ASSERT_THAT(Apply((*server)->port()), IsOk());
  ASSERT_THAT(Claims(root_).Take(2, "10.0.0.2:7070", "a"), IsOk());
  const auto stub =
      job::v1::CoordinatorService::NewStub(rpc::MakeChannel("127.0.0.1:" + std::to_string((*server)->port())));
  grpc::ClientContext context;
  rpc::Prepare(context, {.token = "secret", .timeout = base::seconds(30), .wait_for_ready = true});
  job::v1::SuspendResponse response;
  EXPECT_FALSE(stub->Suspend(&context, {}, &response).ok());
  EXPECT_EQ((*server)->Wait({}), kSuperseded);
}

TEST_F(VolumeTest, ACoordinatorPublishesNoCheckpointAfterAnotherOneTookOver) {
  CheckpointFiles files({.job_uid = "uid", .claim = *Claims(root_).Take(1, "10.0.0.1:7070", "a")}, root_);
  const WriteManifestCommand first{"step-00000004-e1", 1, 4, {}, {}};
  ASSERT_THAT(files.Publish(first), IsOk());
  ASSERT_THAT(Claims(root_).Take(2, "10.0.0.2:7070", "a"), IsOk());
  const WriteManifestCommand second{"step-00000008-e1", 1, 8, {}, {}};
  EXPECT_THAT(files.Publish(second), StatusIs(absl::StatusCode::kAborted));
  EXPECT_TRUE(fs::exists(root_ / first.folder / "manifest.json"));
  EXPECT_FALSE(fs::exists(root_ / second.folder));
}

TEST_F(VolumeTest, TwoCheckpointsAreKeptAlsoWhereOneIsAskedFor) {
  CheckpointFiles files({.job_uid = "uid", .keep = 1, .claim = *Claims(root_).Take(1, "10.0.0.1:7070", "a")}, root_);
  for (const int64_t step : {4, 8, 12}) {
    ASSERT_THAT(files.Publish({fmt::format("step-{:08}-e1", step), 1, step, {}, {}}), IsOk());
  }
  EXPECT_FALSE(fs::exists(root_ / "step-00000004-e1"));
  EXPECT_TRUE(fs::exists(root_ / "step-00000008-e1"));
  EXPECT_TRUE(fs::exists(root_ / "step-00000012-e1"));
}

// What the state machine learns of every kind of damage.
TEST_F(VolumeTest, ASearchTellsDamageFromErrorsThatMayPassAndFromLostManifests) {
  CheckpointFiles files({.job_uid = "uid", .keep = 9, .claim = *Claims(root_).Take(1, "10.0.0.1:7070", "a")},
                        Volume(root_, files_));
  for (const int64_t step : {4, 8, 12, 16, 20}) {
    ASSERT_THAT(files.Publish({fmt::format("step-{:08}-e1", step), 1, step, {}, {}}), IsOk());
  }
  std::ofstream(root_ / "step-00000016-e1" / "manifest.json") << "{";
  fs::remove(root_ / "step-00000012-e1" / "manifest.json");
  files_.read_error_in = "step-00000008-e1";
  FindCheckpointCommand find;
  find.unusable["step-00000020-e1"] = "t0-0 could not restore its part";
  const auto passes = files.Search(find);
  EXPECT_THAT(passes, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("step-00000008-e1")));
  find.reject_unreadable = true;
  const auto found = files.Search(find);
  ASSERT_THAT(found, IsOk());
  EXPECT_TRUE(found->unreadable);
  EXPECT_EQ(found->newest->step, 4);
  EXPECT_THAT(found->rejected, testing::ElementsAre("step-00000020-e1: t0-0 could not restore its part",
                                                    HasSubstr("step-00000016-e1: manifest"), HasSubstr("i/o error")));
  ASSERT_EQ(found->incomplete.size(), 1u);
  EXPECT_EQ(found->incomplete[0].step, 12);
  files_.read_error_in.clear();
}

TEST(VolumeThreadTest, ABlockedOperationDelaysTheOthersOnlyToTheirDeadline) {
  static FaultyFiles& files = *new FaultyFiles;
  files.Block(FaultyFiles::Call::kList);
  VolumeThread volume({.grace = base::milliseconds(10), .max_queue = 2});
  const auto list = [] { return files.List("/").status(); };
  ASSERT_TRUE(volume.Post([]() -> VolumeThread::Deliver {
    (void)files.List("/");
    return {};
  }));
  ASSERT_TRUE(files.WaitForBlocked());
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
  static FaultyFiles& files = *new FaultyFiles;
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

job::v1::CoordinatorState StateOfStep(int64_t step) {
  job::v1::CoordinatorState state;
  state.set_last_generation(1);
  state.mutable_ledger()->set_committed_step(step);
  state.set_message(std::string(1000, 'x'));
  return state;
}

// The reserve takes the records of a long time in which others leave no room.
TEST_F(VolumeTest, AJournalOnAFullVolumeUsesItsReserve) {
  SmallVolume files(root_);
  const Volume volume(root_, files);
  {
    const auto journal = Journal::Open(volume);
    ASSERT_THAT(journal, IsOk());
    EXPECT_TRUE(fs::exists(root_ / "journal.reserve"));
    files.Fill();
    for (int64_t step = 1; step <= 5000; ++step) ASSERT_THAT((*journal)->Append(StateOfStep(step)), IsOk()) << step;
    EXPECT_TRUE(fs::exists(root_ / "journal.reserve"));
  }
  const auto again = Journal::Open(volume);
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ((*again)->restored()->ledger().committed_step(), 5000);
}

TEST_F(VolumeTest, ARecordThatHasNoRoomLeavesTheJournalWhole) {
  SmallVolume files(root_);
  const Volume volume(root_, files);
  {
    const auto journal = Journal::Open(volume);
    ASSERT_THAT(journal, IsOk());
    ASSERT_THAT((*journal)->Append(StateOfStep(1)), IsOk());
    fs::remove(root_ / "journal.reserve");  // others took its room
    files.Limit(files.Used() + 100);        // for less than a record
    EXPECT_THAT((*journal)->Append(StateOfStep(2)), StatusIs(absl::StatusCode::kResourceExhausted));
    files.Limit(int64_t{1} << 30);
    EXPECT_EQ((*Journal::Open(volume))->restored()->ledger().committed_step(), 1);
  }
  const auto journal = Journal::Open(volume);
  ASSERT_THAT(journal, IsOk());
  ASSERT_THAT((*journal)->Append(StateOfStep(3)), IsOk());
  EXPECT_EQ((*Journal::Open(volume))->restored()->ledger().committed_step(), 3);
}

// Makes room when the coordinator has waited three times.
class ClockThatMakesRoom final : public base::Clock {
 public:
  explicit ClockThatMakesRoom(SmallVolume& files) : files_(files) {}
  base::WallTime Now() const override { return clock_.Now(); }
  base::SteadyTime Steady() const override { return clock_.Steady(); }
  bool SleepUntil(base::SteadyTime deadline, std::stop_token stop) override {
    if (waits_ >= 3) return clock_.SleepUntil(deadline, std::move(stop));
    if (++waits_ == 3) files_.Limit(int64_t{1} << 30);
    return !stop.stop_requested();
  }
  int waits() const { return waits_; }

 private:
  SmallVolume& files_;
  base::SystemClock clock_;
  std::atomic<int> waits_ = 0;
};

class VolumeStartTest : public VolumeTest, public testing::WithParamInterface<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Terms, VolumeStartTest, testing::Values(0, 2));

// A coordinator that ended here would count towards backoffLimit.
TEST_P(VolumeStartTest, ACoordinatorThatStartsWithoutRoomWaitsForIt) {
  WriteJournal();
  fs::remove(root_ / "journal.reserve");  // others took its room
  static std::deque<SmallVolume>& all = *new std::deque<SmallVolume>;
  SmallVolume& files = all.emplace_back(root_);
  files.Fill();
  CoordinatorOptions options = WithTerm(GetParam());
  options.checkpoint_root = Volume(root_, files);
  ClockThatMakesRoom clock(files);
  auto server = CoordinatorServer::Start(options, clock);
  ASSERT_THAT(server, IsOk());
  EXPECT_GE(clock.waits(), 3);
  (*server)->Stop();
  const Claim own = GetParam() == 0 ? Claim() : *Claims(Volume(root_)).Newest();
  EXPECT_EQ((*Journal::Open(root_, own))->restored()->last_checkpoint_step(), 4);
}

TEST_F(VolumeTest, TheWaitForRoomCanBeStopped) {
  std::stop_source stop;
  int calls = 0;
  const absl::Status status = AwaitRoom(clock_, stop.get_token(), [&]() -> absl::Status {
    if (++calls == 1) stop.request_stop();
    return base::ErrnoStatus(ENOSPC, "writing");
  });
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(calls, 1);
}

// Nothing is announced that is not in the journal, and the process does not end.
TEST_F(VolumeTest, TrainingWaitsWhileTheJournalHasNoRoom) {
  static SmallVolume& files = *new SmallVolume(root_);
  CoordinatorOptions options = Options();
  options.checkpoint_root = Volume(root_, files);
  auto server = CoordinatorServer::Start(options, clock_);
  ASSERT_THAT(server, IsOk());
  fs::remove(root_ / "journal.reserve");
  files.Fill();
  ASSERT_THAT(Apply((*server)->port()), IsOk());  // its record waits
  const auto stub =
      job::v1::CoordinatorService::NewStub(rpc::MakeChannel("127.0.0.1:" + std::to_string((*server)->port())));
  const auto observe = [&] {
    grpc::ClientContext context;
    rpc::Prepare(context, {.token = "secret", .timeout = base::seconds(60), .wait_for_ready = true});
    const auto stream = stub->WatchObservations(&context, {});
    job::v1::WatchObservationsResponse seen;
    EXPECT_TRUE(stream->Read(&seen));
    context.TryCancel();
    (void)stream->Finish();
    return seen.observation();
  };
  const job::v1::Observation paused = observe();
  EXPECT_TRUE(paused.checkpoint_failure().paused());
  EXPECT_THAT(paused.checkpoint_failure().message(), HasSubstr("No space left on device"));
  EXPECT_GT(paused.checkpoint_failure().since().seconds(), 0);
  files.Limit(int64_t{1} << 30);
  bool returned = false;
  for (int i = 0; i < 600 && !returned; ++i) {
    clock_.SleepFor(base::milliseconds(100), {});
    returned = !observe().has_checkpoint_failure();
  }
  EXPECT_TRUE(returned);
  EXPECT_EQ((*Journal::Open(root_))->restored()->desired().plan().generation(), 1);
  (*server)->Stop();
}

}  // namespace
}  // namespace medley::worker
