// Tests HandOver over gRPC: who gets the job when several coordinators ask, and what happens when one gives up.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>

#include <filesystem>
#include <future>
#include <thread>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "common/rpc/channel.h"
#include "common/rpc/context.h"
#include "common/rpc/status.h"
#include "medley/job/v1/coordinator.grpc.pb.h"
#include "tests/unit/worker/coordinator/server/one_trainer.h"
#include "worker/claim/claims.h"
#include "worker/coordinator/server/server.h"

namespace medley::worker {
namespace {

using base::IsOk;
using base::StatusIs;

// The only member of the job. It applies the steps of its first lease when the test lets it, and later ones at once.
class SlowMember {
 public:
  explicit SlowMember(int port) : thread_([this, port] { Run(port); }) {}

  void WaitForLease() { leased_.get_future().wait(); }
  void LetGo() { go_.set_value(); }
  // Waits until the coordinator ends the session. The term to which it was redirected; 0: to none.
  int64_t RedirectedTo() {
    thread_.join();
    return redirected_to_;
  }

 private:
  void Run(int port) {
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
    bool first = true;
    while (stream->Read(&order)) {
      if (order.has_redirect()) {
        redirected_to_ = order.redirect().term();
        break;
      }
      job::v1::SessionRequest answer;
      if (order.has_prepare()) {
        answer.mutable_warmed()->set_generation(order.prepare().generation());
        answer.mutable_warmed()->set_rows(1000);
        stream->Write(answer);
      } else if (order.has_switch_()) {
        answer.mutable_ready()->set_generation(order.switch_().generation());
        stream->Write(answer);
      } else if (order.lease().steps_size() > 0) {
        if (std::exchange(first, false)) {
          leased_.set_value();
          go_.get_future().wait();
        }
        for (const job::v1::StepLease& step : order.lease().steps()) {
          job::v1::SessionRequest report;
          report.mutable_progress()->set_generation(order.lease().generation());
          report.mutable_progress()->set_step(step.step());
          stream->Write(report);
        }
      }
    }
    context.TryCancel();
    (void)stream->Finish();
  }

  std::promise<void> leased_, go_;
  int64_t redirected_to_ = 0;
  std::thread thread_;  // last: it uses the others
};

class HandOverServerTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = *base::MakeTempDir("medley-hand-over");
    CoordinatorOptions options;
    options.core.job_uid = "uid";
    options.core.batch_size = 1;
    options.core.fold_in_wait = base::milliseconds(1);
    options.token = "secret";
    options.term = 1;
    options.address = "127.0.0.1:1";  // no member looks for it
    options.checkpoint_root = Volume(root_);
    options.tick = base::milliseconds(5);
    auto server = CoordinatorServer::Start(options, clock_);
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    stub_ = job::v1::CoordinatorService::NewStub(rpc::MakeChannel("127.0.0.1:" + std::to_string(server_->port())));
    ASSERT_THAT(Apply(), IsOk());
  }
  void TearDown() override {
    server_.reset();
    base::RemoveTempDir(root_);
  }
  absl::Status Apply() {
    grpc::ClientContext context;
    rpc::Prepare(context, {.token = "secret", .timeout = base::seconds(30), .wait_for_ready = true});
    job::v1::ApplyPlanResponse response;
    return rpc::FromGrpc(stub_->ApplyPlan(&context, OneTrainer(), &response));
  }
  absl::Status HandOver(int64_t term, base::nanoseconds timeout = base::seconds(60)) {
    job::v1::HandOverRequest request;
    request.set_term(term);
    request.set_address("10.0.0.2:7070");
    grpc::ClientContext context;
    rpc::Prepare(context, {.token = "secret", .timeout = timeout});
    job::v1::HandOverResponse response;
    return rpc::FromGrpc(stub_->HandOver(&context, request, &response));
  }

  base::SystemClock clock_;
  std::filesystem::path root_;
  std::unique_ptr<CoordinatorServer> server_;
  std::unique_ptr<job::v1::CoordinatorService::Stub> stub_;
};

TEST_F(HandOverServerTest, OnlyTheLargestTermIsHandedTheJob) {
  SlowMember member(server_->port());
  member.WaitForLease();
  absl::Status third;
  std::jthread call([&] { third = HandOver(3); });
  EXPECT_THAT(HandOver(2), StatusIs(absl::StatusCode::kFailedPrecondition)) << "whichever call comes first";
  member.LetGo();
  call.join();
  EXPECT_THAT(third, IsOk());
  EXPECT_EQ(member.RedirectedTo(), 3);
  EXPECT_EQ(server_->Wait({}), kSuperseded);
}

TEST_F(HandOverServerTest, ACoordinatorThatGivesUpMakesRoomForAnotherOne) {
  SlowMember member(server_->port());
  member.WaitForLease();
  EXPECT_FALSE(HandOver(3, base::milliseconds(20)).ok());
  // Refused at once until the end of the other call is noticed, then not answered. A busy server answers late, too.
  int calls = 0;
  while (absl::IsFailedPrecondition(HandOver(2, base::seconds(2)))) ASSERT_LT(++calls, 10000);
  // The end of that call, which may be noticed during the next one, does not concern the next one.
  absl::Status second;
  std::jthread call([&] { second = HandOver(2); });
  member.LetGo();
  call.join();
  EXPECT_THAT(second, IsOk());
  EXPECT_EQ(member.RedirectedTo(), 2);
}

TEST_F(HandOverServerTest, ATermThatIsNotNewerIsRefused) {
  EXPECT_THAT(HandOver(1), StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace medley::worker
