// Runs whole jobs in one process: the coordinator's state machine leads real trainers and servers over loopback.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <deque>
#include <fstream>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "tests/unit/worker/trainer/core_service.h"
#include "worker/ps/parameter_server.h"
#include "worker/trainer/member.h"
#include "worker/trainer/server_role.h"
#include "worker/trainer/trainer.h"

namespace medley::worker {
namespace {

namespace pb = ::medley::job::v1;

struct StageShape {
  int first = 0;
  int end = 0;
  int units = 1;
};

model::JobSpec MakeSpec(const std::string& path) {
  model::JobSpec spec;
  spec.model = {.name = "ctrdnn", .embedding_dim = 4, .embedding_rows = 256, .hidden = {8}};
  spec.data.train = {"file://" + path, "csv"};
  spec.data.schema = {.label_column = 0, .categorical = {1, 2}, .numeric = {3, 4}};
  spec.training = {.epochs = 4, .batch_size = 32, .micro_batches = 2, .optimizer = "adagrad", .learning_rate = 0.1};
  return spec;
}

// Does what another role does.
class PassingRole : public Role {
 public:
  explicit PassingRole(Role& role) : role_(role) {}

  Held held() const override { return role_.held(); }
  absl::StatusOr<std::shared_ptr<PreparedGeneration>> Prepare(const pb::Prepare& order, std::stop_token stop) override {
    return role_.Prepare(order, std::move(stop));
  }
  absl::StatusOr<pb::Ready> Switch(const pb::Switch& order, std::shared_ptr<PreparedGeneration> next) override {
    return role_.Switch(order, std::move(next));
  }
  absl::Status Train(int64_t generation, const pb::StepLease& lease, const pb::StepLease* ahead) override {
    return role_.Train(generation, lease, ahead);
  }
  absl::Status Drain(const pb::Drain& order) override { return role_.Drain(order); }
  absl::Status Checkpoint(const pb::Checkpoint& order,
                          std::function<void(absl::StatusOr<pb::Checkpointed>)> done) override {
    return role_.Checkpoint(order, std::move(done));
  }
  absl::StatusOr<pb::Evaluated> Evaluate(const pb::Evaluate& order) override { return role_.Evaluate(order); }
  absl::StatusOr<double> Probe(const pb::Probe& order) override { return role_.Probe(order); }
  void Abort() override { role_.Abort(); }
  pb::Halted Halt(int64_t generation) override { return role_.Halt(generation); }

 private:
  Role& role_;
};

// A trainer whose GPU fails at a step, as after an assertion in a kernel: each later call fails, too.
class FailingGpu final : public PassingRole {
 public:
  FailingGpu(Role& trainer, int64_t at_step) : PassingRole(trainer), at_step_(at_step) {}

  absl::StatusOr<std::shared_ptr<PreparedGeneration>> Prepare(const pb::Prepare& order, std::stop_token stop) override {
    if (broken_) return base::Internal("device-side assert triggered");
    return PassingRole::Prepare(order, std::move(stop));
  }
  absl::Status Train(int64_t generation, const pb::StepLease& lease, const pb::StepLease* ahead) override {
    if (lease.step() < at_step_) return PassingRole::Train(generation, lease, ahead);
    broken_ = true;
    return base::Internal("device-side assert triggered");
  }
  absl::Status CheckDevice() override {
    return broken_ ? base::Internal("the GPU failed: device-side assert triggered") : absl::OkStatus();
  }

 private:
  const int64_t at_step_;
  std::atomic<bool> broken_ = false;
};

// A server that loses a connection instead of applying a step, when another server has applied it.
class InterruptedServer final : public PassingRole {
 public:
  InterruptedServer(Role& server, int64_t at_step, const std::atomic<int64_t>& other, base::Clock& clock)
      : PassingRole(server), at_step_(at_step), other_(other), clock_(clock) {}

  absl::Status Train(int64_t generation, const pb::StepLease& lease, const pb::StepLease* ahead) override {
    if (lease.step() == at_step_ && interrupted_ == 0) {
      interrupted_ = generation;
      for (int i = 0; i < 5000 && other_ < at_step_; ++i) clock_.SleepFor(base::milliseconds(2), {});
      EXPECT_GE(other_, at_step_) << "there is nothing to undo";
    }
    // Later leases, which are on the way, would allow the step too.
    if (generation == interrupted_) return base::Unavailable("connection closed by peer");
    return PassingRole::Train(generation, lease, ahead);
  }

 private:
  const int64_t at_step_;
  const std::atomic<int64_t>& other_;  // the step that the other server has applied
  base::Clock& clock_;
  int64_t interrupted_ = 0;  // the generation in which that happened
};

class MembersTest : public testing::Test {
 protected:
  static constexpr int kRows = 1000;
  static constexpr int kEpochs = 4;
  static constexpr int kSteps = 32 * kEpochs;

  void SetUp() override {
    folder_ = base::MakeTempDir("medley-members").value();
    std::ofstream csv(folder_ / "train.csv");
    base::Rng rng(5);
    for (int i = 0; i < kRows; ++i) {
      const auto a = rng.Below(20), b = rng.Below(10);
      csv << (a + b > 14 ? 1 : 0) << ",a" << a << ",b" << b << "," << rng.Uniform(-1, 1) << "," << rng.Uniform(0, 9)
          << "\n";
    }
    csv.close();
    spec_ = MakeSpec((folder_ / "train.csv").string());
    graph_ = BuildGraph(spec_).value();
    core_ = std::make_unique<CoreService>(CoreOptions{.job_uid = "uid",
                                                      .epochs = kEpochs,
                                                      .batch_size = 32,
                                                      .lease_ahead = 4,
                                                      .fold_in_wait = base::milliseconds(100),
                                                      .retry_wait = base::milliseconds(50)});
  }
  void TearDown() override {
    for (auto& [name, process] : processes_) process.stop.request_stop();
    processes_.clear();
    core_.reset();
    base::RemoveTempDir(folder_);
  }

  SessionOptions Session(const std::string& name, pb::MemberRole role, std::string address) {
    return {.coordinator = core_->address(),
            .token = "token",
            .member = name,
            .role = role,
            .pool = "cpu",
            .address = std::move(address),
            .instance = name + "/" + std::to_string(++instances_),
            .give_up = base::seconds(20)};
  }

  void Start(const std::string& name, bool server) {
    Process& process = processes_[name];
    process.thread = {};
    process.stop = {};
    const SessionOptions session =
        Session(name, server ? pb::MEMBER_ROLE_SERVER : pb::MEMBER_ROLE_TRAINER, "127.0.0.1");
    process.thread = std::jthread([this, session, server, stop = process.stop.get_token()] {
      server ? RunServer(session, stop) : RunTrainer(session, stop);
    });
  }

  void RunTrainer(const SessionOptions& session, std::stop_token stop) {
    TrainerContext context{.spec = &spec_, .graph = &graph_};
    context.optimizer = MakeOptimizer("adagrad", 0.1).value();
    context.session = session;
    context.ip = "127.0.0.1";
    context.clock = &clock_;
    context.step_timeout = base::seconds(20);
    Member member(session, clock_);
    Trainer trainer(context, {.embedding_rows = 256}, [&](pb::SessionRequest r) { member.Send(std::move(r)); });
    const int64_t fails_at = fails_at_.exchange(0);
    if (fails_at == 0) return (void)member.Run(trainer, stop);
    FailingGpu failing(trainer, fails_at);
    ended_ = member.Run(failing, stop).status();
  }

  void RunServer(SessionOptions session, std::stop_token stop) {
    ParameterServer service("token", clock_);
    const auto server = rpc::Server::Start({}, {&service.service()}).value();
    session.address = server->address();
    ServerContext context{.tables = graph_.Parameters(true), .optimizer = MakeOptimizer("adagrad", 0.1).value()};
    context.session = session;
    context.clock = &clock_;
    context.step_timeout = base::seconds(20);
    Member member(session, clock_);
    ServerRole role(context, service, [&](pb::SessionRequest r) {
      if (session.member == "server-0" && r.has_progress()) first_server_ = r.progress().step();
      member.Send(std::move(r));
    });
    if (session.member == "server-1" && interrupted_at_ > 0) {
      InterruptedServer interrupted(role, interrupted_at_, first_server_, clock_);
      (void)member.Run(interrupted, stop);
    } else {
      (void)member.Run(role, stop);
    }
    service.Retain(0, -1);
  }

  void Kill(const std::string& name) {
    processes_.at(name).stop.request_stop();
    processes_.erase(name);  // joins
  }

  void Apply(const std::vector<StageShape>& stages, int servers) {
    pb::ApplyPlanRequest request;
    auto& plan = *request.mutable_plan();
    plan.set_generation(++plans_ * 100);
    plan.mutable_schedule()->set_micro_batches(2);
    const auto add = [&](const std::string& name, bool server, int stage, int index) {
      pb::MemberSlot& slot = *request.add_slots();
      slot.set_member(name);
      slot.set_role(server ? pb::MEMBER_ROLE_SERVER : pb::MEMBER_ROLE_TRAINER);
      slot.set_pool("cpu");
      slot.set_stage(stage);
      slot.set_index(index);
      if (!processes_.contains(name)) Start(name, server);
    };
    for (size_t s = 0; s < stages.size(); ++s) {
      auto& stage = *plan.add_stages();
      auto& range = *stage.add_operations();
      range.set_first(stages[s].first);
      range.set_end(stages[s].end);
      auto& group = *stage.add_groups();
      group.set_pool("cpu");
      group.set_units(stages[s].units);
      group.set_share(1);
      const auto synchronise = [&](int first, int end, plan::v1::SyncKind kind) {
        if (first >= end) return;
        auto& sync = *stage.add_syncs();
        sync.add_operations()->set_first(first);
        sync.mutable_operations(0)->set_end(end);
        sync.mutable_sync()->set_kind(kind);
      };
      if (servers > 0 && stages[s].first == 0) synchronise(0, 1, plan::v1::SYNC_KIND_PARAMETER_SERVER);
      synchronise(std::max(1, stages[s].first), stages[s].end, plan::v1::SYNC_KIND_ALLREDUCE);
      for (int i = 0; i < stages[s].units; ++i)
        add("t" + std::to_string(s) + "-" + std::to_string(i), false, static_cast<int>(s), i);
    }
    if (servers > 0) {
      plan.mutable_servers()->set_pool("cpu");
      plan.mutable_servers()->set_units(servers);
    }
    for (int i = 0; i < servers; ++i) add("server-" + std::to_string(i), true, 0, i);
    ASSERT_THAT(core_->ApplyPlan(request), base::IsOk());
  }

  pb::Observation WaitFor(const std::function<bool(const pb::Observation&)>& done) {
    const base::SteadyTime end = clock_.Steady() + base::seconds(60);
    while (clock_.Steady() < end) {
      pb::Observation now = core_->Observe();
      if (done(now) || now.phase() == pb::JOB_PHASE_FAILED || now.phase() == pb::JOB_PHASE_COMPLETE) return now;
      clock_.SleepFor(base::milliseconds(2), {});
    }
    ADD_FAILURE() << "the condition was not met in time: " << core_->Observe().ShortDebugString();
    return core_->Observe();
  }
  std::map<int64_t, double> Finish() {
    const pb::Observation end = WaitFor([](const auto&) { return false; });
    EXPECT_EQ(end.phase(), pb::JOB_PHASE_COMPLETE) << end.message();
    EXPECT_EQ(end.samples_done(), int64_t{kRows} * kEpochs);
    const auto losses = core_->Losses();
    EXPECT_EQ(losses.size(), static_cast<size_t>(kSteps));
    return losses;
  }
  // Compares the losses with those of a run in one process.
  void ExpectReference(const std::map<int64_t, double>& losses) {
    TearDown();
    SetUp();
    Apply({{0, 4, 1}}, 0);
    const auto reference = Finish();
    EXPECT_LT(reference.at(kSteps), 0.8 * reference.at(1));
    for (const auto& [step, loss] : losses) {
      if (std::isnan(loss)) continue;  // the members that would report it died first
      ASSERT_NEAR(loss, reference.at(step), 1e-4 * reference.at(step)) << "step " << step;
    }
  }

  struct Process {
    std::stop_source stop;
    std::jthread thread;
  };
  base::SystemClock clock_;
  std::filesystem::path folder_;
  model::JobSpec spec_;
  Graph graph_;
  std::unique_ptr<CoreService> core_;
  std::map<std::string, Process> processes_;
  std::atomic<int64_t> fails_at_ = 0;      // step at which the GPU of the next trainer fails; 0: never
  absl::Status ended_;                     // of that trainer; read it after it has ended
  int64_t interrupted_at_ = 0;             // step that server-1 does not apply at first; 0: none
  std::atomic<int64_t> first_server_ = 0;  // step that server-0 has applied
  int plans_ = 0;
  int instances_ = 0;
};

TEST(MemberTest, AFaultSaysWhetherAnExchangeBroke) {
  EXPECT_TRUE(IsExchange(base::Unavailable("connection closed by peer")));
  EXPECT_TRUE(IsExchange(base::Aborted("group stages is closed")));
  EXPECT_TRUE(IsExchange(base::DeadlineExceeded("rows did not arrive in time")));
  EXPECT_FALSE(IsExchange(base::ResourceExhausted("no space left on device")));
  EXPECT_FALSE(IsExchange(base::InvalidArgument("data.csv:641: too few columns")));
}

TEST_F(MembersTest, APipelineWithServersTrainsLikeOneProcess) {
  Apply({{0, 1, 2}, {1, 4, 2}}, 2);
  ExpectReference(Finish());
}

TEST_F(MembersTest, ARescaleInTheMiddleChangesNothing) {
  Apply({{0, 1, 1}, {1, 4, 2}}, 2);
  WaitFor([](const pb::Observation& o) { return o.step() >= 10; });
  Apply({{0, 1, 2}, {1, 2, 1}, {2, 4, 2}}, 3);
  const pb::Observation now = WaitFor([](const pb::Observation& o) { return o.switches_size() > 0; });
  ASSERT_EQ(now.switches_size(), 1) << now.ShortDebugString();
  EXPECT_FALSE(now.switches(0).recovery());
  EXPECT_LT(now.switches(0).at_step(), kSteps);
  ExpectReference(Finish());
}

TEST_F(MembersTest, AReplicaIsKilledAndTheOthersContinueFromTheSameStep) {
  Apply({{0, 1, 1}, {1, 4, 2}}, 1);
  WaitFor([](const pb::Observation& o) { return o.step() >= 10; });
  Kill("t1-1");
  ExpectReference(Finish());
}

TEST_F(MembersTest, AServerIsKilledAndTheJobStartsAgainFromTheSeed) {
  Apply({{0, 1, 1}, {1, 4, 1}}, 2);
  WaitFor([](const pb::Observation& o) { return o.step() >= 10; });
  Kill("server-1");
  Start("server-1", true);
  ExpectReference(Finish());
}

// One shard has applied a step that the other one has not, so it undoes it. If it did not, the step's gradients would
// be in half of the rows twice.
TEST_F(MembersTest, AServerThatIsAheadOfAnotherUndoesItsStep) {
  interrupted_at_ = 10;
  Apply({{0, 1, 1}, {1, 4, 1}}, 2);
  const auto losses = Finish();
  interrupted_at_ = 0;
  const pb::Observation after = core_->Observe();
  ASSERT_EQ(after.switches_size(), 1) << after.ShortDebugString();
  EXPECT_TRUE(after.switches(0).recovery());
  EXPECT_EQ(after.switches(0).at_step(), 9) << "the last step that both shards have applied";
  ExpectReference(losses);
}

// Nobody else can use the GPU from that process, so the process ends, and says why; the operator starts another one.
TEST_F(MembersTest, ATrainerWhoseGpuFailsEndsAndIsReplaced) {
  fails_at_ = 10;
  Apply({{0, 4, 1}}, 0);
  processes_.at("t0-0").thread.join();
  EXPECT_THAT(ended_,
              base::StatusIs(absl::StatusCode::kInternal,
                             "this process can compute nothing more: the GPU failed: device-side assert triggered"));
  Start("t0-0", false);
  const auto losses = Finish();
  const pb::Observation after = core_->Observe();
  ASSERT_EQ(after.switches_size(), 1) << after.ShortDebugString();
  EXPECT_EQ(after.switches(0).reason(), "t0-0 was lost: device-side assert triggered");
  ExpectReference(losses);
}

TEST_F(MembersTest, RandomKillsLoseNothing) {
  std::map<int64_t, double> losses;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    if (seed > 1) {
      TearDown();
      SetUp();
    }
    base::Rng rng(seed);
    Apply({{0, 1, 2}, {1, 4, 2}}, 2);
    int64_t at = 0;
    for (int kill = 0; kill < 3; ++kill) {
      at += static_cast<int64_t>(1 + rng.Below(40));
      WaitFor([&](const pb::Observation& o) { return o.step() >= at; });
      const auto victim = std::next(processes_.begin(), static_cast<std::ptrdiff_t>(rng.Below(processes_.size())));
      const std::string name = victim->first;
      if (core_->Observe().phase() == pb::JOB_PHASE_COMPLETE) break;
      Kill(name);
      Start(name, name.starts_with("server"));
    }
    losses = Finish();
    if (HasFailure()) return;
  }
  ExpectReference(losses);
}

}  // namespace
}  // namespace medley::worker
