// The gRPC front end: cancellation, deadlines, rejections, tokens, TLS.
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "common/model/text.h"
#include "common/rpc/channel.h"
#include "common/rpc/context.h"
#include "common/rpc/server.h"
#include "medley/scheduler/v1/scheduler.grpc.pb.h"
#include "scheduler-service/handlers/learned_state_store.h"
#include "scheduler-service/planner/builtin.h"
#include "scheduler-service/planner/stage_planner.h"
#include "scheduler-service/serve_grpc/service.h"
#include "tests/integration/kube/certificates.h"

namespace medley::sched {
namespace {

namespace pb = scheduler::v1;
using testing::HasSubstr;

constexpr char kToken[] = "0123456789abcdef-token";

// A planner that runs until its budget is spent and finds no plan.
class EndlessPlanner final : public StagePlanner {
 public:
  explicit EndlessPlanner(base::Clock& clock) : clock_(clock) {}
  std::string_view name() const override { return "endless"; }
  std::string_view description() const override { return "works until its budget is spent"; }
  absl::StatusOr<Solution> SolveStages(const Problem&, uint64_t, const Budget& budget) const override {
    while (!budget.Spent()) clock_.SleepFor(base::milliseconds(1), {});
    Solution none;
    none.complete = false;
    return none;
  }

 private:
  base::Clock& clock_;
};

pb::PlanRequest Request(const std::string& planner) {
  pb::PlanRequest request;
  EXPECT_THAT(model::ParseText(R"({
    "model": {"layers": [{"name": "fc", "profiles": [
      {"resourceType": "cpu", "computeSeconds": 0.1, "computeParallel": 1, "commParallel": 1}]}]},
    "training": {"profileBatchSize": 64, "samplesPerEpoch": 1e6},
    "resources": [{"name": "cpu", "class": "CPU", "limit": 10, "pricePerUnitHour": 1}], "serverType": "cpu"})",
                               request),
              base::IsOk());
  request.mutable_planner()->set_name(planner);
  request.mutable_planner()->set_time_budget_seconds(600);
  return request;
}

class GrpcTest : public testing::Test {
 protected:
  void SetUp() override { planners_.Add(std::make_unique<EndlessPlanner>(clock_)); }
  void TearDown() override {
    stop_.request_stop();
    server_.reset();
  }
  void Serve(GrpcServiceOptions options, std::optional<rpc::ServerTls> tls = std::nullopt) {
    service_ = MakeGrpcService(handlers_, ids_, stop_.get_token(), stop_.get_token(), std::move(options));
    rpc::ServerOptions server;
    server.max_message_bytes = 1 << 20;
    server.tls = std::move(tls);
    auto started = rpc::Server::Start(server, {service_.get()});
    ASSERT_THAT(started, base::IsOk());
    server_ = *std::move(started);
  }
  std::unique_ptr<pb::SchedulerService::Stub> Stub() {
    return pb::SchedulerService::NewStub(rpc::MakeChannel(server_->address()));
  }
  template <typename Condition>
  bool WaitFor(Condition condition) {
    const base::SteadyTime deadline = clock_.Steady() + base::seconds(60);
    while (!condition() && clock_.Steady() < deadline) clock_.SleepFor(base::milliseconds(1), {});
    return condition();
  }

  base::SystemClock clock_;
  metrics::Registry metrics_;
  CatalogStore catalog_;
  Registry planners_ = BuiltinPlanners();
  const HardwareCatalog hardware_ = *HardwareCatalog::Builtin();
  LearnedStateStore learned_{"", false, metrics_};
  Handlers handlers_{
      {planners_, catalog_, hardware_, learned_, metrics_, clock_},
      {.admission = {.max_running = 1, .for_operator = 1, .max_waiting = 0, .max_wait = base::seconds(1)}}};
  RequestIds ids_{1};
  std::stop_source stop_;
  std::unique_ptr<grpc::Service> service_;
  std::unique_ptr<rpc::Server> server_;
};

TEST_F(GrpcTest, ACancelledCallFreesItsPermit) {
  Serve({});
  const auto stub = Stub();
  double quickest = 1e9;
  for (int attempt = 0; attempt < 5; ++attempt) {
    grpc::ClientContext context;
    std::jthread caller([&] {
      pb::PlanResponse response;
      EXPECT_EQ(stub->Plan(&context, Request("endless"), &response).error_code(), grpc::StatusCode::CANCELLED);
    });
    ASSERT_TRUE(WaitFor([&] { return handlers_.admission().running() == 1; }));
    const base::SteadyTime left = clock_.Steady();
    context.TryCancel();
    ASSERT_TRUE(WaitFor([&] { return handlers_.admission().running() == 0; }));  // its budget is ten minutes
    quickest = std::min(quickest, base::ToSeconds(clock_.Steady() - left));
  }
  RecordProperty("milliseconds", std::to_string(quickest * 1e3));
}

TEST_F(GrpcTest, TheDeadlineEndsPlanning) {
  Serve({});
  grpc::ClientContext context;
  rpc::Prepare(context, {.token = {}, .timeout = base::milliseconds(500)});
  pb::PlanResponse response;
  EXPECT_EQ(Stub()->Plan(&context, Request("endless"), &response).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(WaitFor([&] { return handlers_.admission().running() == 0; }));
}

TEST_F(GrpcTest, StoppingTheServiceEndsPlanning) {
  Serve({});
  pb::PlanResponse response;
  grpc::Status status;
  grpc::ClientContext context;
  std::jthread caller([&] { status = Stub()->Plan(&context, Request("endless"), &response); });
  ASSERT_TRUE(WaitFor([&] { return handlers_.admission().running() == 1; }));
  stop_.request_stop();
  caller.join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << status.error_message();
}

TEST_F(GrpcTest, TooManyRequestsAreRejectedWithRetryAfter) {
  Serve({});
  const auto stub = Stub();
  grpc::ClientContext first;
  std::jthread caller([&] {
    pb::PlanResponse response;
    static_cast<void>(stub->Plan(&first, Request("endless"), &response));
  });
  ASSERT_TRUE(WaitFor([&] { return handlers_.admission().running() == 1; }));
  grpc::ClientContext second;
  pb::PlanResponse response;
  EXPECT_EQ(stub->Plan(&second, Request("exact"), &response).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  const auto& trailing = second.GetServerTrailingMetadata();
  ASSERT_EQ(trailing.count("retry-after"), 1u);
  EXPECT_EQ(trailing.find("retry-after")->second, "1");
  EXPECT_EQ(trailing.count("x-request-id"), 1u);
  first.TryCancel();
  caller.join();
  ASSERT_TRUE(WaitFor([&] { return handlers_.admission().running() == 0; }));

  pb::PlanRequest large = Request("exact");
  large.set_profile_id(std::string(2 << 20, 'x'));
  grpc::ClientContext third;
  EXPECT_EQ(stub->Plan(&third, large, &response).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(GrpcTest, TheTokenIsCheckedBeforeTheMessageIsRead) {
  Serve({.max_watches = 1, .tokens = *BearerTokens::Parse(kToken)});
  pb::PlanRequest large = Request("exact");
  large.set_profile_id(std::string(2 << 20, 'x'));  // more than the server reads
  pb::PlanResponse response;
  grpc::ClientContext without, with;
  EXPECT_EQ(Stub()->Plan(&without, large, &response).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  rpc::Prepare(with, {.token = kToken, .timeout = base::seconds(60)});
  EXPECT_EQ(Stub()->Plan(&with, large, &response).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

// Not whoever says so.
TEST_F(GrpcTest, OnlyTheOperatorsTokenTakesTheOperatorsPlace) {
  constexpr char kOperator[] = "token-of-the-operator";
  BearerTokens tokens = *BearerTokens::Parse(kToken);
  tokens.SetOperator(*BearerTokens::Parse(kOperator));
  Serve({.tokens = tokens});
  const auto stub = Stub();
  grpc::ClientContext first;
  rpc::Prepare(first, {.token = kToken, .timeout = base::seconds(600)});
  std::jthread caller([&] {
    pb::PlanResponse response;
    static_cast<void>(stub->Plan(&first, Request("endless"), &response));
  });
  ASSERT_TRUE(WaitFor([&] { return handlers_.admission().running() == 1; }));
  const auto ask = [&](const char* token) {
    grpc::ClientContext context;
    rpc::Prepare(context, {.token = token, .timeout = base::seconds(60)});
    context.AddMetadata("x-medley-caller", "operator");
    pb::PlanResponse response;
    return stub->Plan(&context, Request("exact"), &response).error_code();
  };
  EXPECT_EQ(ask(kToken), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ask(kOperator), grpc::StatusCode::OK);
  EXPECT_EQ(ask("token-of-the-operator2"), grpc::StatusCode::UNAUTHENTICATED);
  first.TryCancel();
}

TEST_F(GrpcTest, ACallWithoutAMessageIsCancelled) {
  Serve({.receive = base::milliseconds(50)});
  grpc::GenericStub stub(rpc::MakeChannel(server_->address()));
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(&context, "/medley.scheduler.v1.SchedulerService/Plan", &queue);
  grpc::Status status;
  void* tag = nullptr;
  bool ok = false;
  call->StartCall(&tag);
  ASSERT_TRUE(queue.Next(&tag, &ok));
  call->Finish(&status, &tag);
  ASSERT_TRUE(queue.Next(&tag, &ok));
  EXPECT_FALSE(status.ok());
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) continue;
}

TEST_F(GrpcTest, MessagesOfManyObjectsAreRefused) {
  Serve({});
  pb::PlanRequest many = Request("exact");
  for (int i = 0; i < 40'000; ++i) many.mutable_model()->add_layers();
  pb::PlanResponse response;
  grpc::ClientContext first, second;
  const grpc::Status refused = Stub()->Plan(&first, many, &response);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.error_message(), HasSubstr("more than 32768 objects"));
  many.mutable_model()->clear_layers();
  for (int i = 0; i < 5'000; ++i) many.mutable_model()->add_layers();
  EXPECT_THAT(Stub()->Plan(&second, many, &response).error_message(), HasSubstr("5000 layers, at most 4096"));
}

TEST_F(GrpcTest, CachedResponsesAreTheSameBytes) {
  Serve({});
  const auto stub = Stub();
  pb::PlanResponse first, second;
  grpc::ClientContext a, b;
  ASSERT_TRUE(stub->Plan(&a, Request("exact"), &first).ok());
  ASSERT_TRUE(stub->Plan(&b, Request("exact"), &second).ok());
  EXPECT_EQ(first.SerializeAsString(), second.SerializeAsString());  // including planning_seconds
  EXPECT_THAT(metrics_.Text(), HasSubstr("medley_scheduler_cache_total{result=\"hit\"} 1"));
}

// False reports make plans infeasible for who sends them, and for nobody else.
TEST_F(GrpcTest, ReportsOfOneTenantDoNotChangeThePlansOfAnother) {
  const std::string liar = "token-of-the-liar-01", other = "token-of-another-02", own = "token-of-operator-03";
  BearerTokens tokens = *BearerTokens::Parse(liar + "\n" + other);
  tokens.SetOperator(*BearerTokens::Parse(own));
  Serve({.tokens = tokens});
  const auto stub = Stub();
  pb::PlanRequest request = Request("exact");
  request.mutable_constraints()->set_min_throughput(3000);  // five units, when the profile is right
  pb::ObserveRequest report;
  *report.mutable_request() = request;
  pb::StageObservation& stage = *report.add_stages();
  stage.set_resource_type("cpu");
  stage.set_units(2);
  stage.set_compute_seconds(0.45);  // nine times what it is
  report.set_batch_size(64);
  report.set_throughput(64 / 0.45);
  report.set_usd_per_hour(2);
  report.set_job_uid("job");
  const auto prepare = [](grpc::ClientContext& context, const std::string& token, const std::string& tenant) {
    rpc::Prepare(context, {.token = token, .timeout = base::seconds(60)});
    if (!tenant.empty()) context.AddMetadata("x-medley-tenant", tenant);
  };
  const auto lie = [&](const std::string& token, const std::string& tenant) {
    for (int i = 0; i < 6; ++i) {
      grpc::ClientContext context;
      prepare(context, token, tenant);
      pb::ObserveResponse response;
      const grpc::Status status = stub->Observe(&context, report, &response);
      EXPECT_TRUE(status.ok()) << status.error_message();
    }
  };
  const auto feasible = [&](const std::string& token, const std::string& tenant) {
    grpc::ClientContext context;
    prepare(context, token, tenant);
    pb::PlanResponse response;
    const grpc::Status status = stub->Plan(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.feasible();
  };
  lie(liar, "");
  EXPECT_FALSE(feasible(liar, ""));
  EXPECT_TRUE(feasible(other, ""));
  EXPECT_TRUE(feasible(own, "team-b"));
  lie(liar, "team-b");  // only the operator speaks for namespaces
  EXPECT_TRUE(feasible(own, "team-b"));
  lie(own, "team-a");
  EXPECT_FALSE(feasible(own, "team-a"));
  EXPECT_TRUE(feasible(own, "team-b"));
  EXPECT_TRUE(feasible(other, "team-a"));
}

TEST_F(GrpcTest, TlsAndToken) {
  const auto folder = *base::MakeTempDir("medley-grpc-test");
  const kube::TestAuthority authority, clients("clients");
  const kube::PemPair pair = authority.Issue("server", "IP:127.0.0.1");
  const kube::PemPair mine = clients.Issue("client", "");
  ASSERT_THAT(base::WriteFileAtomic(folder / "cert", pair.certificate), base::IsOk());
  ASSERT_THAT(base::WriteFileAtomic(folder / "key", pair.key), base::IsOk());
  ASSERT_THAT(base::WriteFileAtomic(folder / "ca", clients.certificate()), base::IsOk());
  Serve({.max_watches = 1, .tokens = *BearerTokens::Parse(kToken)},
        rpc::ServerTls{folder / "cert", folder / "key", folder / "ca"});
  rpc::ClientTls options;
  options.root_certificates = authority.certificate();
  const auto ask = [&](const rpc::ClientTls& with, const std::string& token) {
    grpc::ClientContext context;
    rpc::Prepare(context, {.token = token, .timeout = base::seconds(60)});
    pb::ListPlannersResponse response;
    const auto stub = pb::SchedulerService::NewStub(rpc::MakeChannel(server_->address(), {.tls = with}));
    return stub->ListPlanners(&context, {}, &response).error_code();
  };
  EXPECT_EQ(ask(options, kToken), grpc::StatusCode::UNAVAILABLE);  // no client certificate
  options.certificate = mine.certificate;
  options.key = mine.key;
  EXPECT_EQ(ask(options, kToken), grpc::StatusCode::OK);
  EXPECT_EQ(ask(options, "another-token-of-16"), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(ask(options, ""), grpc::StatusCode::UNAUTHENTICATED);
  base::RemoveTempDir(folder);
}

}  // namespace
}  // namespace medley::sched
