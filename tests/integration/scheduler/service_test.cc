// The scheduling service over loopback sockets: gRPC and REST give the same responses.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/base/file.h"
#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "common/model/convert.h"
#include "common/model/execution_plan.h"
#include "common/model/text.h"
#include "common/rpc/server.h"
#include "medley/scheduler/v1/scheduler.grpc.pb.h"
#include "scheduler-service/catalog/config.h"
#include "scheduler-service/handlers/learned_state_store.h"
#include "scheduler-service/planner/builtin.h"
#include "scheduler-service/serve_grpc/service.h"
#include "scheduler-service/serve_rest/rest_server.h"
#include "tests/integration/scheduler/http_client.h"

namespace medley::sched {
namespace {

namespace pb = scheduler::v1;
using nlohmann::json;
using testing::HasSubstr;

constexpr char kRequest[] = R"({
  "model": {"layers": [
    {"name": "emb", "weightBytes": 8e6, "sparse": true, "profiles": [
      {"resourceType": "cpu", "computeSeconds": 0.010, "computeParallel": 0.99, "syncSeconds": 0.004, "transferSeconds": 0.002, "commParallel": 0.9, "serverSeconds": 0.003},
      {"resourceType": "gpu", "computeSeconds": 0.020, "computeParallel": 0.9, "syncSeconds": 0.01, "transferSeconds": 0.002, "commParallel": 0.5, "serverSeconds": 0.003}]},
    {"name": "fc", "weightBytes": 1e6, "profiles": [
      {"resourceType": "cpu", "computeSeconds": 0.1, "computeParallel": 1, "syncSeconds": 0.001, "commParallel": 1},
      {"resourceType": "gpu", "computeSeconds": 0.002, "computeParallel": 0.9, "syncSeconds": 0.002, "commParallel": 1}]}]},
  "training": {"profileBatchSize": 64, "samplesPerEpoch": 1e6},
  "constraints": {"minThroughput": 20000},
  "serverType": "cpu"})";

constexpr char kPrices[] =
    "entries:\n"
    "- {resourceType: cpu, class: CPU, limit: 100, pricePerUnitHour: %s}\n"
    "- {resourceType: gpu, class: GPU, limit: 10, pricePerUnitHour: 2}\n";

class ServiceTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = *base::MakeTempDir("medley-scheduler-test");
    CatalogConfig config = OneFileConfig(folder_ / "prices.yaml", base::seconds(0));
    poller_.emplace(std::move(config.poller), std::move(config.feeds), catalog_, metrics_, clock_);
    WritePrices("0.1");
    poller_->Step({});
    ASSERT_EQ(catalog_.Get()->revision, 1);
    service_ = MakeGrpcService(handlers_, ids_, stop_.get_token(), stop_.get_token(), {.max_watches = 1, .tokens = {}});
    auto grpc = rpc::Server::Start({}, {service_.get()});
    ASSERT_THAT(grpc, base::IsOk());
    grpc_ = *std::move(grpc);
    RestOptions options;
    options.max_body_bytes = 1 << 16;
    auto rest = RestServer::Start(options, Rest());
    ASSERT_THAT(rest, base::IsOk());
    rest_ = *std::move(rest);
    stub_ = pb::SchedulerService::NewStub(grpc::CreateChannel(grpc_->address(), grpc::InsecureChannelCredentials()));
  }
  void TearDown() override {
    stop_.request_stop();
    grpc_.reset();
    rest_.reset();
    base::RemoveTempDir(folder_);
  }
  void WritePrices(const std::string& cpu) {
    std::string text = kPrices;
    text.replace(text.find("%s"), 2, cpu);
    ASSERT_THAT(base::WriteFileAtomic(folder_ / "prices.yaml", text), base::IsOk());
  }
  RestContext Rest() {
    return {handlers_, ids_, metrics_, clock_, [this] { return catalog_.Get()->revision > 0; }, stop_.get_token(), {}};
  }
  ClientAnswer Post(const std::string& path, const std::string& body) { return Http(rest_->port(), path, &body); }
  static pb::PlanRequest Request() {
    pb::PlanRequest request;
    EXPECT_THAT(model::ParseText(kRequest, request), base::IsOk());
    return request;
  }

  std::filesystem::path folder_;
  base::SystemClock clock_;
  metrics::Registry metrics_;
  CatalogStore catalog_;
  const Registry planners_ = BuiltinPlanners();
  const HardwareCatalog hardware_ = *HardwareCatalog::Builtin();
  LearnedStateStore learned_{"", false, metrics_};
  Handlers handlers_{{planners_, catalog_, hardware_, learned_, metrics_, clock_}, {}};
  RequestIds ids_{1};
  std::stop_source stop_;
  std::optional<Poller> poller_;
  std::unique_ptr<grpc::Service> service_;
  std::unique_ptr<rpc::Server> grpc_;
  std::unique_ptr<RestServer> rest_;
  std::unique_ptr<pb::SchedulerService::Stub> stub_;
};

TEST_F(ServiceTest, GrpcAndRestGiveTheSamePlan) {
  grpc::ClientContext context;
  pb::PlanResponse over_grpc, over_rest;
  ASSERT_TRUE(stub_->Plan(&context, Request(), &over_grpc).ok());
  const ClientAnswer answer = Post("/v1/plan", kRequest);
  ASSERT_EQ(answer.code, 200) << answer.body;
  ASSERT_THAT(model::ParseText(answer.body, over_rest), base::IsOk());
  over_grpc.set_planning_seconds(0);
  over_rest.set_planning_seconds(0);
  EXPECT_EQ(over_grpc.SerializeAsString(), over_rest.SerializeAsString());

  EXPECT_TRUE(over_grpc.feasible());
  EXPECT_EQ(over_grpc.gap(), 0);
  EXPECT_EQ(over_grpc.catalog_revision(), 1);
  EXPECT_GT(over_grpc.price_time().seconds(), 0);
  EXPECT_EQ(over_grpc.alternatives_size(), 2);
  const auto plan = model::FromProto(over_grpc.execution_plan());
  ASSERT_THAT(plan, base::IsOk());
  EXPECT_THAT(model::Validate(*plan, 2), base::IsOk());
  EXPECT_EQ(plan->stages[0].syncs[0].sync.kind, model::SyncKind::kParameterServer);
}

TEST_F(ServiceTest, ProvisionAndEvaluate) {
  const std::string body = std::string(R"({"schedule": ["cpu", "gpu"], "request": )") + kRequest + "}";
  const json provisioned = json::parse(Post("/v1/provision", body).body);
  ASSERT_EQ(provisioned["feasible"], true) << provisioned;
  json evaluate = json::parse(body);
  for (const json& stage : provisioned["plan"]["stages"]) evaluate["units"].push_back(stage["units"]);
  const json evaluated = json::parse(Post("/v1/evaluate", evaluate.dump()).body);
  EXPECT_EQ(evaluated["plan"], provisioned["plan"]);
  EXPECT_EQ(evaluated["reasons"], json::array());
  evaluate["units"][0] = 1;
  EXPECT_EQ(json::parse(Post("/v1/evaluate", evaluate.dump()).body)["reasons"][0]["constraint"], "minThroughput");
  evaluate["units"] = {1};
  EXPECT_THAT(Post("/v1/evaluate", evaluate.dump()).body, HasSubstr("units: has 1 entries, the schedule has 2 stages"));
}

TEST_F(ServiceTest, InfeasibleIsNotAnError) {
  json request = json::parse(kRequest);
  request["constraints"]["minThroughput"] = 1e7;
  const ClientAnswer answer = Post("/v1/plan", request.dump());
  EXPECT_EQ(answer.code, 200);
  const json body = json::parse(answer.body);
  EXPECT_EQ(body["feasible"], false);
  EXPECT_EQ(body["reasons"][0]["constraint"], "minThroughput");
  EXPECT_GT(body["reasons"][0]["available"], 1000);
}

TEST_F(ServiceTest, UnpricedResourceIsAReason) {
  // The catalog knows neither the offering nor the name: a known name would give the price.
  std::string text = kRequest;
  for (size_t at = 0; (at = text.find("\"gpu\"", at)) != std::string::npos;) text.replace(at, 5, "\"other\"");
  json request = json::parse(text);
  request["resources"] = {{{"name", "cpu"}, {"limit", 4}},
                          {{"name", "other"}, {"limit", 4}, {"offering", {{"provider", "x"}, {"instanceType", "y"}}}}};
  const json body = json::parse(Post("/v1/plan", request.dump()).body);
  EXPECT_EQ(body["feasible"], false);
  ASSERT_EQ(body["reasons"].size(), 1u) << body.dump();
  EXPECT_EQ(body["reasons"][0]["constraint"], "price");
  EXPECT_EQ(body["reasons"][0]["resourceType"], "other");
  EXPECT_THAT(body["reasons"][0]["message"].get<std::string>(), HasSubstr("x///y/"));
}

// If the service rejects a body unread, it closes the connection while the library still reads from it. With two
// network threads that crashed in about one of seventy cases.
TEST_F(ServiceTest, RejectedBodiesDoNotHarmTheService) {
  for (int i = 0; i < 300; ++i) {
    EXPECT_THAT(Post("/v1/plan", std::string(1 << 17, ' ')).code, ::testing::AnyOf(413, 0)) << i;
  }
  EXPECT_EQ(Http(rest_->port(), "/healthz").code, 200);
}

TEST_F(ServiceTest, BadRequestsNameTheField) {
  const ClientAnswer unknown = Post("/v1/plan", R"({"model": {"layerz": []}})");
  EXPECT_EQ(unknown.code, 400);
  EXPECT_EQ(json::parse(unknown.body)["message"], "model.layerz: unknown field; did you mean `layers`?");
  EXPECT_EQ(Post("/v1/plan", "{").code, 400);
  EXPECT_EQ(Post("/v1/plan", "{}").code, 400);
  ClientAnswer large;
  // The service closes the connection on an unread body, which may take the answer with it.
  for (int i = 0; i < 100 && large.code == 0; ++i) large = Post("/v1/plan", std::string(1 << 17, ' '));
  EXPECT_EQ(large.code, 413);
  EXPECT_EQ(Post("/v1/nothing", "{}").code, 404);
  EXPECT_EQ(Http(rest_->port(), "/v1/plan").code, 405);
  json request = json::parse(kRequest);
  request["planner"]["name"] = "oracle";
  EXPECT_THAT(Post("/v1/plan", request.dump()).body,
              HasSubstr("planner.name: 'oracle' is unknown. For stages of some units there are: auto, exact"));

  grpc::ClientContext context;
  pb::PlanResponse response;
  pb::PlanRequest bad = Request();
  bad.mutable_model()->mutable_layers(0)->mutable_profiles(1)->set_comm_parallel(2);
  const grpc::Status status = stub_->Plan(&context, bad, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("model.layers[0].profiles[1].commParallel"));
}

TEST_F(ServiceTest, GetPages) {
  EXPECT_EQ(Http(rest_->port(), "/healthz").code, 200);
  EXPECT_EQ(Http(rest_->port(), "/readyz").code, 200);
  EXPECT_EQ(json::parse(Http(rest_->port(), "/v1/planners").body)["planners"].size(), planners_.ByName().size());
  EXPECT_EQ(json::parse(Http(rest_->port(), "/v1/catalog").body)["catalog"]["revision"], "1");
  EXPECT_THAT(Http(rest_->port(), "/metrics").body, HasSubstr("medley_catalog_revision 1"));
}

TEST_F(ServiceTest, WatchSeesEachPublishedRevision) {
  grpc::ClientContext context;
  context.set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(60, GPR_TIMESPAN)));
  auto reader = stub_->WatchCatalog(&context, {});
  pb::WatchCatalogResponse seen;
  ASSERT_TRUE(reader->Read(&seen));
  EXPECT_EQ(seen.catalog().revision(), 1);
  EXPECT_TRUE(seen.catalog().entries(0).available());
  // This service allows one watch, so the second one is rejected.
  grpc::ClientContext second;
  auto refused = stub_->WatchCatalog(&second, {});
  pb::WatchCatalogResponse none;
  EXPECT_FALSE(refused->Read(&none));
  EXPECT_EQ(refused->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);

  WritePrices("zero");  // rejected, so the last good prices stay
  poller_->Step({});
  WritePrices("0.10");  // other bytes but the same price, so there is no new revision
  poller_->Step({});
  WritePrices("0.2");
  poller_->Step({});
  ASSERT_TRUE(reader->Read(&seen));
  EXPECT_EQ(seen.catalog().revision(), 2);
  EXPECT_EQ(seen.catalog().entries(0).price_per_unit_hour(), 0.2);
  EXPECT_THAT(metrics_.Text(), HasSubstr("medley_price_rejected_total{reason=\"malformed\",source=\"file\"} 1"));
  context.TryCancel();
}

TEST_F(ServiceTest, APortInUseIsAnError) {
  RestOptions options;
  options.port = rest_->port();
  const auto second = RestServer::Start(options, Rest());
  EXPECT_THAT(second,
              base::StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr(fmt::format("127.0.0.1:{}", rest_->port()))));
}

}  // namespace
}  // namespace medley::sched
