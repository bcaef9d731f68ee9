// What the service makes of the answers of a planner process: good ones, worse ones, garbage, late ones and none.
// Whatever the process does, there is a plan that the cost model has checked.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <limits>
#include <thread>

#include "common/base/file.h"
#include "common/base/mutex.h"
#include "common/base/rng.h"
#include "common/base/testing/patience.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "common/model/plan_result.h"
#include "common/rpc/server.h"
#include "medley/planner/v1/planner.grpc.pb.h"
#include "scheduler-service/cost/evaluate.h"
#include "scheduler-service/cost/problem.h"
#include "scheduler-service/planner/builtin.h"
#include "scheduler-service/planner/plan.h"
#include "scheduler-service/planner/planners.h"
#include "scheduler-service/planner/stage_planner.h"
#include "scheduler-service/planning/candidate.h"
#include "scheduler-service/planning/stages.h"
#include "scheduler-service/remote_planner/candidates.h"
#include "scheduler-service/remote_planner/planner_call.h"
#include "scheduler-service/remote_planner/remote_planner.h"
#include "tests/unit/scheduler-service/planner/random_request.h"

namespace medley::sched {
namespace {

namespace pb = planner::v1;
using testing::HasSubstr;

// A planner process whose answers are bytes that the test chooses.
class FakeService final : public pb::PlannerService::Service {
 public:
  using Streamer = grpc::ServerSplitStreamer<grpc::ByteBuffer, grpc::ByteBuffer>;
  // Sends one message; false when the caller has ended the call.
  using Send = std::function<bool(std::string_view bytes)>;
  using Behaviour = std::function<grpc::Status(grpc::ServerContext&, const pb::SolveRequest&, const Send&)>;

  FakeService() {
    MarkMethodStreamed(
        0, new grpc::internal::SplitServerStreamingHandler<grpc::ByteBuffer, grpc::ByteBuffer>(
               [this](grpc::ServerContext* context, Streamer* streamer) { return Run(*context, *streamer); }));
    server_ = rpc::Server::Start({}, {this}).value();
  }
  ~FakeService() override { server_->Stop(base::nanoseconds(0)); }

  // For later calls.
  void Behave(Behaviour behaviour) {
    base::MutexLock lock(mutex_);
    behaviour_ = std::move(behaviour);
  }
  std::string address() const { return server_->address(); }
  // Blocks until the caller has ended the call.
  static void WaitForCancel(grpc::ServerContext& context) {
    base::Mutex mutex;
    base::CondVar never;
    base::MutexLock lock(mutex);
    while (!context.IsCancelled()) never.WaitFor(mutex, {}, base::milliseconds(5), [] { return false; });
  }
  // Waits until `count` calls have begun.
  bool WaitForCalls(int count) {
    base::MutexLock lock(mutex_);
    return changed_.WaitFor(mutex_, {}, base::Patience(base::seconds(60)), [&] { return calls_ >= count; });
  }

 private:
  grpc::Status Run(grpc::ServerContext& context, Streamer& streamer) {
    grpc::ByteBuffer buffer;
    if (!streamer.Read(&buffer)) return grpc::Status(grpc::StatusCode::INTERNAL, "no request");
    grpc::Slice whole;
    pb::SolveRequest request;
    if (!buffer.DumpToSingleSlice(&whole).ok() ||
        !request.ParseFromArray(whole.begin(), static_cast<int>(whole.size()))) {
      return grpc::Status(grpc::StatusCode::INTERNAL, "broken request");
    }
    Behaviour behaviour;
    {
      base::MutexLock lock(mutex_);
      behaviour = behaviour_;
      ++calls_;
      changed_.NotifyAll();
    }
    return behaviour(context, request, [&](std::string_view bytes) {
      const grpc::Slice slice(bytes.data(), bytes.size());
      return streamer.Write(grpc::ByteBuffer(&slice, 1));
    });
  }

  base::Mutex mutex_;
  base::CondVar changed_;
  Behaviour behaviour_ ABSL_GUARDED_BY(mutex_);
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<rpc::Server> server_;
};

// An own planner that finds only a bad plan: all layers on the first type, with the most units.
class BadPlanner final : public StagePlanner {
 public:
  std::string_view name() const override { return "bad"; }
  std::string_view description() const override { return "for tests"; }
  absl::StatusOr<Solution> SolveStages(const Problem& problem, uint64_t, const Budget&) const override {
    std::vector<StageChoice> stages = WholeModelOn(problem, 0);
    stages.front().units = problem.limit(0);
    Solution solution;
    solution.best = Provisioned{stages, ScoreOf(problem, stages)};
    return solution;
  }
};

// Every layer runs everywhere, and every schedule can be provisioned.
model::PlanRequest SmallRequest() {
  base::Rng rng(5);
  model::PlanRequest request;
  request.model.name = "small";
  request.resources = {{"cpu", model::ResourceClass::kCpu, 0.04, 64}, {"gpu", model::ResourceClass::kGpu, 2.4, 16}};
  for (int l = 0; l < 6; ++l) {
    model::Layer layer;
    layer.name = fmt::format("l{}", l);
    layer.weight_bytes = 1e6;
    layer.profiles = {RandomProfile(rng, "cpu", 1, false), RandomProfile(rng, "gpu", l % 2 == 0 ? 2 : 100, false)};
    request.model.layers.push_back(layer);
  }
  request.training.profile_batch_size = 64;
  request.training.samples_per_epoch = 1e7;
  request.planner.name = "mine";
  request.planner.time_budget_seconds = 60;
  return request;
}

std::string MessageOf(const std::vector<std::string>& schedule, const std::vector<int>& units = {}, double bound = 0) {
  pb::SolveResponse response;
  for (const std::string& type : schedule) response.add_schedule(type);
  for (const int unit : units) response.add_units(unit);
  response.set_claimed_lower_bound_usd(bound);
  return response.SerializeAsString();
}

class RemotePlannerTest : public testing::Test {
 protected:
  RemotePlannerTest() : problem_(Problem::Compile(SmallRequest()).value()) {
    stages_ = StagesOf(problem_, *Exact().plan).value();
    for (const StageChoice& stage : stages_) {
      for (int l = stage.first; l <= stage.last; ++l) schedule_.push_back(problem_.type(stage.type).name);
      units_.push_back(stage.units);
    }
  }

  Candidate Exact() { return *registry_.Find("exact", Supply::kUnits)->Solve(problem_, 1, Unlimited()); }
  Budget Unlimited(std::stop_token stop = {}) { return {clock_, clock_.Steady() + base::seconds(600), stop}; }
  std::unique_ptr<Planner> Make(const Planner& own, double timeout = 300) {
    return MakeRemotePlanner(
               {.name = "mine", .address = service_.address(), .planner = "theirs", .timeout_seconds = timeout}, own)
        .value();
  }
  const Planner& own() { return *registry_.Find("auto", Supply::kUnits); }
  // Solves with the real own planner; the service sends `messages` and ends in order.
  Candidate SolveWith(const std::vector<std::string>& messages) {
    service_.Behave([messages](grpc::ServerContext&, const pb::SolveRequest&, const FakeService::Send& send) {
      for (const std::string& message : messages) send(message);
      return grpc::Status::OK;
    });
    return Make(own())->Solve(problem_, 1, Unlimited()).value();
  }
  void ExpectOwnPlan(const Candidate& solution, const std::string& why) {
    ASSERT_TRUE(solution.plan);
    EXPECT_EQ(StagesOf(problem_, *solution.plan).value(), stages_);
    EXPECT_EQ(solution.planner, "exact");
    ASSERT_EQ(solution.notes.size(), 1u);
    EXPECT_THAT(solution.notes[0], HasSubstr(why));
    EXPECT_THAT(solution.notes[0], HasSubstr("the answer is the service's own"));
  }

  const base::SystemClock clock_;
  const Registry registry_ = BuiltinPlanners();
  const Problem problem_;
  std::vector<StageChoice> stages_;
  std::vector<std::string> schedule_;
  std::vector<int> units_;
  FakeService service_;
};

TEST_F(RemotePlannerTest, GoodCandidateIsTheAnswer) {
  const Candidate solution = SolveWith({MessageOf(std::vector<std::string>(6, "gpu")), MessageOf(schedule_)});
  ASSERT_TRUE(solution.plan);
  EXPECT_EQ(StagesOf(problem_, *solution.plan).value(), stages_);
  EXPECT_EQ(solution.planner, "");  // the one that was asked
  EXPECT_THAT(solution.notes, testing::IsEmpty());
  EXPECT_EQ(solution.lower_bound, Exact().lower_bound);  // proven here
}

TEST_F(RemotePlannerTest, GivenUnitsAreKept) {
  const BadPlanner bad;
  service_.Behave([&](grpc::ServerContext&, const pb::SolveRequest&, const FakeService::Send& send) {
    std::vector<int> units = units_;
    ++units[0];
    send(MessageOf(schedule_, units));
    return grpc::Status::OK;
  });
  const Candidate solution = Make(bad)->Solve(problem_, 1, Unlimited()).value();
  EXPECT_EQ(solution.planner, "");
  EXPECT_EQ(StagesOf(problem_, *solution.plan).value()[0].units, units_[0] + 1);
}

TEST_F(RemotePlannerTest, TheQuestionIsComplete) {
  pb::SolveRequest asked;
  service_.Behave([&](grpc::ServerContext& context, const pb::SolveRequest& request, const FakeService::Send&) {
    asked = request;
    const auto token = context.client_metadata().find("authorization");
    if (token == context.client_metadata().end() || token->second != "Bearer sesame-sesame-sesame") {
      return grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "wrong token");
    }
    return grpc::Status::OK;
  });
  const std::string folder = base::MakeTempDir("remote-planner-").value().string();
  ASSERT_THAT(base::WriteFileAtomic(folder + "/token", "sesame-sesame-sesame\n"), base::IsOk());
  RemotePlannerConfig config{
      .name = "mine", .address = service_.address(), .planner = "theirs", .timeout_seconds = 300};
  config.token_file = folder + "/token";
  Candidate solution = MakeRemotePlanner(config, own()).value()->Solve(problem_, 77, Unlimited()).value();
  EXPECT_EQ(asked.seed(), 77u);
  EXPECT_GT(asked.budget_seconds(), 0);
  EXPECT_LE(asked.budget_seconds(), 270);
  EXPECT_EQ(asked.request().planner().name(), "theirs");
  EXPECT_EQ(asked.request().model().layers_size(), 6);
  EXPECT_EQ(asked.request().resources(1).price_per_unit_hour(), 2.4);
  ExpectOwnPlan(solution, "sent no candidate");
  std::filesystem::remove(folder + "/token");
  solution = MakeRemotePlanner(config, own()).value()->Solve(problem_, 77, Unlimited()).value();
  ExpectOwnPlan(solution, "was not asked: ");
  base::RemoveTempDir(folder);
}

TEST_F(RemotePlannerTest, WorseCandidatesAreNotTheAnswer) {
  ExpectOwnPlan(SolveWith({MessageOf(std::vector<std::string>(6, "gpu"))}), "the best plan of planner mine costs ");
}

TEST_F(RemotePlannerTest, GarbageIsRefusedByASentence) {
  std::vector<std::string> unknown = schedule_, huge = schedule_, odd = schedule_;
  unknown[2] = "tpu";
  huge[0] = std::string(2 << 20, 'x');
  odd[0] = "\x01\x7F" + std::string(500, 'y');
  std::vector<int> none = units_, negative = units_, many = units_;
  none[0] = 0;
  negative[0] = -3;
  many.push_back(1);
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinite = std::numeric_limits<double>::infinity();
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"\xFF\xFF\xFF not a message", "the bytes are not a message of type medley.planner.v1.SolveResponse"},
      {MessageOf({"cpu"}), "schedule: has 1 entries for 6 layers"},
      {MessageOf({}), "schedule: has 0 entries for 6 layers"},
      {MessageOf(unknown), "schedule[2]: 'tpu' is not in resources"},
      {MessageOf(odd), "schedule[0]: '??yyy"},
      {MessageOf(schedule_, none), "units[0]: must be positive, is 0"},
      {MessageOf(schedule_, negative), "units[0]: must be positive, is -3"},
      {MessageOf(schedule_, many), "units: has"},
      {MessageOf(schedule_, units_, nan), "claimedLowerBoundUsd: must be finite"},
      {MessageOf(schedule_, units_, infinite), "claimedLowerBoundUsd: must be finite"},
      {MessageOf(schedule_, units_, -1), "claimedLowerBoundUsd: must be finite"},
      {MessageOf(std::vector<std::string>(100'000, "cpu")), "schedule: has 100000 entries"},
      {MessageOf(std::vector<std::string>(300'000, "")), "the message has more than"},
      {MessageOf(huge), "RESOURCE_EXHAUSTED"},
  };
  for (const auto& [message, why] : cases) ExpectOwnPlan(SolveWith({message}), why);
  // Nothing of a good candidate beside it is lost.
  EXPECT_THAT(SolveWith({cases[0].first, MessageOf(schedule_)}).notes, testing::IsEmpty());
}

TEST_F(RemotePlannerTest, CandidatesBeyondTheLimitsAreNotTheAnswer) {
  ExpectOwnPlan(SolveWith({MessageOf(std::vector<std::string>(6, "cpu"), {2'000'000'000})}),
                "none of which meets the constraints");
}

// The value of l0 skips stages, which an asynchronous program cannot express.
TEST_F(RemotePlannerTest, ACandidateWithoutAProgramIsRefused) {
  model::PlanRequest request = SmallRequest();
  request.planner.schedule = model::ScheduleKind::kAsync1F1B;
  request.model.layers[5].inputs = {0, 4};
  const Problem problem = Problem::Compile(request).value();
  const std::vector<std::string> skipping = {"cpu", "gpu", "cpu", "gpu", "cpu", "gpu"}, whole(6, "gpu");
  const auto solve = [&](const std::vector<std::string>& messages) {
    service_.Behave([messages](grpc::ServerContext&, const pb::SolveRequest&, const FakeService::Send& send) {
      for (const std::string& message : messages) send(message);
      return grpc::Status::OK;
    });
    const BadPlanner bad;
    return Make(bad)->Solve(problem, 1, Unlimited()).value();
  };
  const Candidate refused = solve({MessageOf(skipping)});
  EXPECT_EQ(refused.planner, "bad");
  ASSERT_EQ(refused.notes.size(), 1u);
  EXPECT_THAT(refused.notes[0],
              HasSubstr("of which 1 cannot be used (the first: schedule.kind: ASYNC_1F1B needs stages "
                        "that form a chain)"));
  // Nothing of a good candidate beside it is lost.
  const Candidate used = solve({MessageOf(skipping), MessageOf(whole)});
  ASSERT_EQ(StagesOf(problem_, *used.plan).value().size(), 1u);
  EXPECT_EQ(used.planner, "");
}

TEST_F(RemotePlannerTest, AFloodIsCutOff) {
  std::atomic<int> sent{0};
  service_.Behave([&](grpc::ServerContext&, const pb::SolveRequest&, const FakeService::Send& send) {
    const std::string candidate = MessageOf(std::vector<std::string>(6, "gpu"));
    while (sent < 1'000'000 && send(candidate)) ++sent;
    return grpc::Status::OK;
  });
  ExpectOwnPlan(Make(own())->Solve(problem_, 1, Unlimited()).value(), "was ended after 10000 candidates");
  service_.Behave([&](grpc::ServerContext&, const pb::SolveRequest&, const FakeService::Send& send) {
    while (send("\xFF")) {
    }
    return grpc::Status::OK;
  });
  ExpectOwnPlan(Make(own())->Solve(problem_, 1, Unlimited()).value(),
                "sent 100 candidates, of which 100 cannot be used");
}

TEST_F(RemotePlannerTest, LateAndSilentPlannersAreLeftBehind) {
  service_.Behave([&](grpc::ServerContext& context, const pb::SolveRequest&, const FakeService::Send&) {
    FakeService::WaitForCancel(context);
    return grpc::Status::OK;
  });
  ExpectOwnPlan(Make(own(), 0.1)->Solve(problem_, 1, Unlimited()).value(), "did not finish within 0.1 s");
  // The deadline is the budget's where no timeout ends the call.
  const Budget budget(clock_, clock_.Steady() + base::Patience(base::seconds(1)), {});
  ExpectOwnPlan(Make(own())->Solve(problem_, 1, budget).value(), "did not finish within");
}

TEST_F(RemotePlannerTest, WhatALatePlannerHasSentIsUsedIfItIsCheaper) {
  service_.Behave([&](grpc::ServerContext& context, const pb::SolveRequest&, const FakeService::Send& send) {
    send(MessageOf(schedule_));
    FakeService::WaitForCancel(context);
    return grpc::Status::OK;
  });
  const BadPlanner bad;
  const Candidate solution =
      Make(bad, base::ToSeconds(base::Patience(base::seconds(2))))->Solve(problem_, 1, Unlimited()).value();
  EXPECT_EQ(StagesOf(problem_, *solution.plan).value(), stages_);
  EXPECT_EQ(solution.planner, "");
  ASSERT_EQ(solution.notes.size(), 1u);
  EXPECT_THAT(solution.notes[0], HasSubstr("its best candidate is used, because no better plan is known"));
}

TEST_F(RemotePlannerTest, DoneEndsTheCall) {
  service_.Behave([&](grpc::ServerContext& context, const pb::SolveRequest&, const FakeService::Send& send) {
    send(MessageOf(schedule_));
    pb::SolveResponse done;
    done.set_done(true);
    send(done.SerializeAsString());
    FakeService::WaitForCancel(context);
    return grpc::Status::OK;
  });
  EXPECT_THAT(Make(own())->Solve(problem_, 1, Unlimited()).value().notes, testing::IsEmpty());
}

TEST_F(RemotePlannerTest, FailuresAreNamed) {
  service_.Behave([&](grpc::ServerContext&, const pb::SolveRequest&, const FakeService::Send& send) {
    send(MessageOf(schedule_));
    return grpc::Status(grpc::StatusCode::INTERNAL, "out of \x02 ideas");
  });
  ExpectOwnPlan(Make(own())->Solve(problem_, 1, Unlimited()).value(),
                "failed after 1 candidates (INTERNAL: out of ? ideas)");
  const auto nowhere =
      MakeRemotePlanner({.name = "mine", .address = "unix:/nowhere/socket", .timeout_seconds = 300}, own());
  ExpectOwnPlan((*nowhere)->Solve(problem_, 1, Unlimited()).value(), "failed after 0 candidates (UNAVAILABLE");
}

TEST_F(RemotePlannerTest, CancellationEndsTheCall) {
  std::stop_source stop;
  service_.Behave([&](grpc::ServerContext& context, const pb::SolveRequest&, const FakeService::Send&) {
    stop.request_stop();
    FakeService::WaitForCancel(context);
    return grpc::Status::OK;
  });
  const BadPlanner bad;
  const Candidate solution = Make(bad)->Solve(problem_, 1, Unlimited(stop.get_token())).value();
  ASSERT_EQ(solution.notes.size(), 1u);
  EXPECT_THAT(solution.notes[0], HasSubstr("was cancelled by the caller"));
}

TEST_F(RemotePlannerTest, CallsAreBounded) {
  std::stop_source stop;
  service_.Behave([&](grpc::ServerContext& context, const pb::SolveRequest&, const FakeService::Send&) {
    FakeService::WaitForCancel(context);
    return grpc::Status::OK;
  });
  const BadPlanner bad;
  const auto planner = Make(bad);
  {
    std::vector<std::jthread> callers;
    for (int i = 0; i < kMaxCallsOfRemotePlanner; ++i) {
      callers.emplace_back([&] { (void)planner->Solve(problem_, 1, Unlimited(stop.get_token())); });
    }
    ASSERT_TRUE(service_.WaitForCalls(kMaxCallsOfRemotePlanner));
    const Candidate solution = planner->Solve(problem_, 1, Unlimited()).value();
    EXPECT_EQ(solution.planner, "bad");
    EXPECT_THAT(solution.notes.at(0), HasSubstr("computes 8 plans already"));
    stop.request_stop();
  }
}

TEST_F(RemotePlannerTest, TheAnswerNamesThePlannerAndIsNotReproducible) {
  service_.Behave([&](grpc::ServerContext&, const pb::SolveRequest&, const FakeService::Send& send) {
    send(MessageOf(schedule_));
    return grpc::Status::OK;
  });
  Registry registry = BuiltinPlanners();
  registry.Add(Make(*registry.Find("auto", Supply::kUnits)));
  auto result = MakePlan(SmallRequest(), {}, registry, clock_, {}).value();
  EXPECT_EQ(result.planner, "mine");
  EXPECT_FALSE(result.complete);
  EXPECT_THAT(result.notes, testing::IsEmpty());
  EXPECT_EQ(result.execution_plan->provenance.planner, "mine");
  service_.Behave([&](grpc::ServerContext&, const pb::SolveRequest&, const FakeService::Send&) {
    return grpc::Status(grpc::StatusCode::INTERNAL, "no");
  });
  result = MakePlan(SmallRequest(), {}, registry, clock_, {}).value();
  EXPECT_EQ(result.planner, "exact");
  EXPECT_THAT(result.notes, testing::ElementsAre(HasSubstr("INTERNAL: no")));
  // Nothing is feasible: the reasons are those of the own planner.
  model::PlanRequest infeasible = SmallRequest();
  infeasible.constraints.min_throughput = 1e12;
  result = MakePlan(infeasible, {}, registry, clock_, {}).value();
  EXPECT_FALSE(result.plan);
  ASSERT_FALSE(result.reasons.empty());
  EXPECT_EQ(result.reasons[0].constraint, "minThroughput");
}

}  // namespace
}  // namespace medley::sched
