// Tests the coordinator over real gRPC on loopback, with simple members that follow orders and count samples.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <grpcpp/grpcpp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <list>
#include <thread>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "common/job_result/job_result.h"
#include "common/model/leader_term.h"
#include "common/rpc/channel.h"
#include "common/rpc/context.h"
#include "common/rpc/status.h"
#include "medley/job/v1/coordinator.grpc.pb.h"
#include "tests/unit/common/http_server/raw_client.h"
#include "tests/unit/worker/coordinator/server/one_trainer.h"
#include "tests/unit/worker/token_check.h"
#include "worker/checkpoint/reader.h"
#include "worker/checkpoint/writer.h"
#include "worker/coordinator/server/server.h"

namespace medley::worker {
namespace {

namespace fs = std::filesystem;
using base::IsOk;
using base::StatusIs;
using testing::HasSubstr;

constexpr int64_t kRows = 100;

// A trainer that holds the whole model: follows orders, keeps its state when the coordinator is lost, writes
// checkpoints.
class Trainer {
 public:
  Trainer(std::string instance, fs::path root, int64_t stop_at)
      : instance_(std::move(instance)), root_(std::move(root)), stop_at_(stop_at) {}

  // Runs one session; returns true when released.
  bool Run(int port, const std::string& token) {
    const auto stub = job::v1::MemberService::NewStub(rpc::MakeChannel("127.0.0.1:" + std::to_string(port)));
    grpc::ClientContext context;
    rpc::Prepare(context, {.token = token, .timeout = base::seconds(60), .wait_for_ready = true});
    const auto stream = stub->Session(&context);
    job::v1::SessionRequest hello;
    hello.mutable_hello()->set_member("job-0");
    hello.mutable_hello()->set_role(job::v1::MEMBER_ROLE_TRAINER);
    hello.mutable_hello()->set_pool("cpu");
    hello.mutable_hello()->set_instance(instance_);
    hello.mutable_hello()->set_held_generation(generation_);
    hello.mutable_hello()->set_held_step(step_);
    stream->Write(hello);
    job::v1::SessionResponse order;
    bool released = false;
    while (stream->Read(&order)) {
      job::v1::SessionRequest answer;
      if (order.has_release()) {
        released = true;
        break;
      }
      if (order.has_lease()) {
        if (!Train(order.lease(), *stream)) break;
      } else if (Obey(order, answer)) {
        stream->Write(answer);
      }
    }
    context.TryCancel();
    (void)stream->Finish();
    return released;
  }
  void StayOn() { stop_at_ = -1; }
  int64_t samples() const { return samples_; }
  int64_t step() const { return step_; }

 private:
  using Stream = grpc::ClientReaderWriter<job::v1::SessionRequest, job::v1::SessionResponse>;

  bool Train(const job::v1::Lease& lease, Stream& out) {
    for (const job::v1::StepLease& step : lease.steps()) {
      if (step_ == stop_at_) return false;  // dies here
      step_ = step.step();
      samples_ += step.count();
      job::v1::SessionRequest report;
      report.mutable_progress()->set_generation(generation_);
      report.mutable_progress()->set_step(step_);
      report.mutable_progress()->set_state_samples(samples_);
      report.mutable_progress()->set_loss_sum(0.25 * step.count());
      report.mutable_progress()->set_loss_samples(step.count());
      out.Write(report);
    }
    return true;
  }
  bool Obey(const job::v1::SessionResponse& order, job::v1::SessionRequest& answer) {
    if (order.has_prepare()) {
      prepare_ = order.prepare();
      answer.mutable_warmed()->set_generation(prepare_.generation());
      answer.mutable_warmed()->set_rows(kRows);
    } else if (order.has_switch_()) {
      generation_ = prepare_.generation();
      step_ = order.switch_().step();
      if (prepare_.origin() == job::v1::STATE_ORIGIN_INITIAL) samples_ = 0;
      if (prepare_.origin() == job::v1::STATE_ORIGIN_CHECKPOINT) Restore();
      answer.mutable_ready()->set_generation(generation_);
      answer.mutable_ready()->set_step(step_);
      answer.mutable_ready()->set_state_samples(samples_);
    } else if (order.has_halt()) {
      answer.mutable_halted()->set_generation(order.halt().generation());
      answer.mutable_halted()->set_applied_step(step_);
      answer.mutable_halted()->set_undo_to_step(step_);
    } else if (order.has_checkpoint()) {
      const CheckpointFileHeader header{{prepare_.plan().job_uid(), ""}, generation_, order.checkpoint().step()};
      auto writer = *CheckpointWriter::Create(root_, order.checkpoint().folder(), header);
      const std::vector<float> state = {static_cast<float>(samples_)};
      (void)writer->AddDense(0, "samples", state, {});
      const CheckpointFileEntry entry = *writer->Finish();
      answer.mutable_checkpointed()->set_step(order.checkpoint().step());
      job::v1::CheckpointFile& file = *answer.mutable_checkpointed()->add_files();
      file.set_name(entry.name);
      file.set_bytes(entry.bytes);
      file.set_digest(entry.digest);
    } else if (order.has_evaluate()) {
      answer.mutable_evaluated()->set_samples(2);
      job::v1::ScoreHistogram& histogram = *answer.mutable_evaluated()->add_histograms();
      for (int64_t n : {0, 1}) histogram.add_positives(n);
      for (int64_t n : {1, 0}) histogram.add_negatives(n);
    } else {
      return false;
    }
    return true;
  }
  void Restore() {
    CheckpointHandlers handlers;
    handlers.dense = [this](int32_t, std::string_view, std::span<const float> weights, std::span<const float>) {
      samples_ = static_cast<int64_t>(weights[0]);
      return absl::OkStatus();
    };
    EXPECT_THAT(ReadCheckpoint(root_, *ReadManifest(root_, prepare_.checkpoint()), std::move(handlers)), IsOk());
  }

  const std::string instance_;
  const fs::path root_;
  int64_t stop_at_;  // exits when it has to train a step after this one; -1: never
  job::v1::Prepare prepare_;
  int64_t generation_ = 0;
  int64_t step_ = 0;
  int64_t samples_ = 0;
};

class CoordinatorServerTest : public testing::Test {
 protected:
  void SetUp() override { root_ = *base::MakeTempDir("medley-coordinator"); }
  void TearDown() override { base::RemoveTempDir(root_); }

  CoordinatorOptions Options() const {
    CoordinatorOptions options;
    options.core.job_uid = "uid";
    options.core.epochs = 2;
    options.core.batch_size = 5;
    options.core.checkpoint_interval = base::seconds(0);
    options.core.reconnect_wait = base::seconds(60);
    options.core.fold_in_wait = base::milliseconds(10);
    options.token = "secret";
    options.checkpoint_root = root_;
    options.session_grace = base::milliseconds(50);
    options.tick = base::milliseconds(5);
    options.linger = base::seconds(5);
    options.metrics_port = 0;
    return options;
  }
  absl::Status Apply(int port, const std::string& token, int64_t leader_term = 0,
                     job::v1::ApplyPlanRequest plan = OneTrainer()) {
    const auto stub = job::v1::CoordinatorService::NewStub(rpc::MakeChannel("127.0.0.1:" + std::to_string(port)));
    grpc::ClientContext context;
    rpc::Prepare(context, {.token = token, .timeout = base::seconds(60), .wait_for_ready = true});
    job::v1::ApplyPlanResponse response;
    plan.set_leader_term(leader_term);
    return rpc::FromGrpc(stub->ApplyPlan(&context, plan, &response));
  }
  // Follows the job to its end; returns the last observation.
  job::v1::Observation Watch(int port) {
    const auto stub = job::v1::CoordinatorService::NewStub(rpc::MakeChannel("127.0.0.1:" + std::to_string(port)));
    grpc::ClientContext context;
    rpc::Prepare(context, {.token = "secret", .timeout = base::seconds(60), .wait_for_ready = true});
    const auto stream = stub->WatchObservations(&context, {});
    job::v1::WatchObservationsResponse response;
    job::v1::Observation last;
    while (stream->Read(&response)) last = response.observation();
    (void)stream->Finish();
    return last;
  }
  void ExpectComplete(const job::v1::Observation& last) {
    EXPECT_EQ(last.phase(), job::v1::JOB_PHASE_COMPLETE) << last.ShortDebugString();
    EXPECT_EQ(last.samples_done(), 2 * kRows);
    EXPECT_DOUBLE_EQ(last.metrics().at("auc"), 1.0);
  }

  base::SystemClock clock_;
  fs::path root_;
};

TEST_F(CoordinatorServerTest, AJobFromPlanToEnd) {
  auto server = CoordinatorServer::Start(Options(), clock_);
  ASSERT_THAT(server, IsOk());
  ASSERT_THAT(Apply((*server)->port(), "secret"), IsOk());
  Trainer trainer("i1", root_, -1);
  bool released = false;
  std::jthread member([&] { released = trainer.Run((*server)->port(), "secret"); });
  ExpectComplete(Watch((*server)->port()));
  EXPECT_EQ((*server)->Wait({}), 0);
  member.join();
  EXPECT_TRUE(released);
  EXPECT_EQ(trainer.samples(), 2 * kRows);
  std::ifstream steps(root_ / "steps.jsonl");
  int lines = 0;
  for (std::string line; std::getline(steps, line);) ++lines;
  EXPECT_EQ(lines, 40);
  const auto found = FindCheckpoint(root_, "uid", "");
  ASSERT_TRUE(found.ok() && found->manifest);
  EXPECT_EQ(found->manifest->step, 40);
}

// The operator is down: nobody watches.
TEST_F(CoordinatorServerTest, ResultIsLeftForAnOperatorThatDoesNotListen) {
  CoordinatorOptions options = Options();
  options.linger = base::milliseconds(1);
  options.result_file = root_ / "termination-log";
  std::ofstream(options.result_file) << std::string(5000, 'x');  // it is mounted, and not empty
  auto server = CoordinatorServer::Start(options, clock_);
  ASSERT_THAT(server, IsOk());
  ASSERT_THAT(Apply((*server)->port(), "secret"), IsOk());
  Trainer trainer("i1", root_, -1);
  std::jthread member([&] { trainer.Run((*server)->port(), "secret"); });
  EXPECT_EQ((*server)->Wait({}), 0);
  const auto left = job_result::Parse(*base::ReadFile(options.result_file), "uid");
  ASSERT_THAT(left, IsOk());
  EXPECT_EQ(left->phase, job_result::Phase::kComplete);
  EXPECT_EQ(left->step, 40);
  EXPECT_EQ(left->samples, 2 * kRows);
  EXPECT_EQ(left->samples_total, 2 * kRows);
  EXPECT_EQ(left->last_checkpoint_step, 40);
  EXPECT_EQ(left->metrics.at("auc"), 1.0);
}

TEST_F(CoordinatorServerTest, JobEndsWhereItsResultCannotBeWritten) {
  CoordinatorOptions options = Options();
  options.linger = base::milliseconds(1);
  options.result_file = root_;  // a folder
  auto server = CoordinatorServer::Start(options, clock_);
  ASSERT_THAT(server, IsOk());
  ASSERT_THAT(Apply((*server)->port(), "secret"), IsOk());
  Trainer trainer("i1", root_, -1);
  std::jthread member([&] { trainer.Run((*server)->port(), "secret"); });
  EXPECT_EQ((*server)->Wait({}), 0);
}

TEST_F(CoordinatorServerTest, CoordinatorThatIsStoppedLeavesNoResult) {
  CoordinatorOptions options = Options();
  options.result_file = root_ / "termination-log";
  auto server = CoordinatorServer::Start(options, clock_);
  ASSERT_THAT(server, IsOk());
  ASSERT_THAT(Apply((*server)->port(), "secret"), IsOk());
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ((*server)->Wait(stop.get_token()), -1);
  EXPECT_FALSE(fs::exists(options.result_file));
}

// The only holder of the state dies: its replacement starts from the last checkpoint, or from the seed.
TEST_F(CoordinatorServerTest, ALostTrainerIsReplaced) {
  auto server = CoordinatorServer::Start(Options(), clock_);
  ASSERT_THAT(server, IsOk());
  ASSERT_THAT(Apply((*server)->port(), "secret"), IsOk());
  Trainer first("i1", root_, 23);
  Trainer second("i2", root_, -1);
  std::jthread members([&] {
    EXPECT_FALSE(first.Run((*server)->port(), "secret"));
    EXPECT_TRUE(second.Run((*server)->port(), "secret"));
  });
  const job::v1::Observation last = Watch((*server)->port());
  ExpectComplete(last);
  EXPECT_EQ(last.restarts(), 1);
  ASSERT_EQ(last.switches_size(), 1);
  EXPECT_TRUE(last.switches(0).recovery());
  EXPECT_EQ((*server)->Wait({}), 0);
  members.join();
  EXPECT_EQ(second.samples(), 2 * kRows);
}

// The coordinator dies and restarts from its journal; the trainer keeps its state.
TEST_F(CoordinatorServerTest, ARestartedCoordinatorContinues) {
  Trainer trainer("i1", root_, 17);
  {
    auto server = CoordinatorServer::Start(Options(), clock_);
    ASSERT_THAT(server, IsOk());
    ASSERT_THAT(Apply((*server)->port(), "secret"), IsOk());
    EXPECT_FALSE(trainer.Run((*server)->port(), "secret"));
    EXPECT_EQ(trainer.step(), 17);
    (*server)->Stop();
  }
  auto server = CoordinatorServer::Start(Options(), clock_);
  ASSERT_THAT(server, IsOk());
  trainer.StayOn();
  std::jthread member([&] { EXPECT_TRUE(trainer.Run((*server)->port(), "secret")); });
  ASSERT_THAT(Apply((*server)->port(), "secret"), IsOk());
  const job::v1::Observation last = Watch((*server)->port());
  ExpectComplete(last);
  EXPECT_GE(last.restarts(), 1);
  ASSERT_EQ(last.switches_size(), 1);
  EXPECT_EQ(last.switches(0).at_step(), 17);  // from the trainer's state, not from a checkpoint
  EXPECT_EQ((*server)->Wait({}), 0);
  member.join();
  EXPECT_EQ(trainer.samples(), 2 * kRows);
}

// Issue 12: a second run with other hyper-parameters reported the results of the first, whose journal it found.
TEST_F(CoordinatorServerTest, TheJournalOfAnotherTrainingIsRefused) {
  CoordinatorOptions options = Options();
  options.core.job_digest = "aaaa";
  options.job_settings = R"({"training": {"epochs": 3, "batchSize": 8}})";
  {
    auto server = CoordinatorServer::Start(options, clock_);
    ASSERT_THAT(server, IsOk());
    ASSERT_THAT(Apply((*server)->port(), "secret"), IsOk());
  }
  options.core.job_digest = "bbbb";
  options.job_settings = R"({"training": {"epochs": 5, "batchSize": 8}})";
  EXPECT_THAT(CoordinatorServer::Start(options, clock_),
              StatusIs(absl::StatusCode::kInvalidArgument,  // permanent: no restart helps
                       HasSubstr("the journal in " + root_.string() +
                                 " belongs to a job with other settings: spec.training.epochs is 3 in its job and 5 in "
                                 "this job. Empty the folder")));
  for (const char* damaged :
       {"", "{", "[]", R"({"digest": "cccc", "settings": {}})", R"({"digest": "aaaa"})", "\xff"}) {
    std::ofstream(root_ / "job.json") << damaged;
    EXPECT_THAT(
        CoordinatorServer::Start(options, clock_),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("job.json does not say which. Empty the folder")))
        << damaged;
  }
  fs::remove(root_ / "job.json");
  EXPECT_THAT(CoordinatorServer::Start(options, clock_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("job.json does not say which. Empty the folder")));
  // "": a coordinator that does not know its own. Digests of two versions of Medley say nothing about each other.
  for (const char* same : {"aaaa", "", "2-bbbb"}) {
    options.core.job_digest = same;
    EXPECT_THAT(CoordinatorServer::Start(options, clock_), IsOk());
  }
}

TEST_F(CoordinatorServerTest, ContinuesFromTheCheckpointOfAnotherJob) {
  const fs::path first = root_ / "first", second = root_ / "second";
  const auto run = [&](const fs::path& folder, const std::string& uid, int epochs) {
    CoordinatorOptions options = Options();
    options.core.job_uid = uid;
    options.core.epochs = epochs;
    options.checkpoint_root = folder;
    if (uid != "uid") options.continue_from = first.string();
    auto server = CoordinatorServer::Start(options, clock_);
    EXPECT_THAT(server, IsOk());
    job::v1::ApplyPlanRequest plan = OneTrainer();
    plan.mutable_plan()->set_job_uid(uid);
    EXPECT_THAT(Apply((*server)->port(), "secret", 0, plan), IsOk());
    Trainer trainer("i-" + uid, folder, -1);
    std::jthread member([&] { trainer.Run((*server)->port(), "secret"); });
    const job::v1::Observation last = Watch((*server)->port());
    EXPECT_EQ((*server)->Wait({}), last.phase() == job::v1::JOB_PHASE_COMPLETE ? 0 : 2);
    return last;
  };
  ExpectComplete(run(first, "uid", 2));
  const job::v1::Observation continued = run(second, "other", 3);
  EXPECT_EQ(continued.phase(), job::v1::JOB_PHASE_COMPLETE) << continued.ShortDebugString();
  EXPECT_EQ(continued.samples_done(), 3 * kRows);
  std::ifstream steps(second / "steps.jsonl");
  int lines = 0;
  for (std::string line; std::getline(steps, line);) ++lines;
  EXPECT_EQ(lines, 20) << "the third epoch alone";
  // Nothing is left to train, which is said and not reported as this job's success.
  const job::v1::Observation refused = run(root_ / "third", "third", 2);
  EXPECT_EQ(refused.phase(), job::v1::JOB_PHASE_FAILED);
  EXPECT_THAT(refused.message(), HasSubstr("it has trained 2 epochs, this job trains 2; raise spec.training.epochs"));
}

TEST_F(CoordinatorServerTest, RefusesWithoutTheToken) {
  auto server = CoordinatorServer::Start(Options(), clock_);
  ASSERT_THAT(server, IsOk());
  EXPECT_THAT(Apply((*server)->port(), "wrong"), StatusIs(absl::StatusCode::kUnauthenticated));
  ExpectEveryMethodNeedsTheToken("127.0.0.1:" + std::to_string((*server)->port()),
                                 *job::v1::ApplyPlanRequest::descriptor()->file(), 8);
}

// Otherwise anyone could make the coordinator keep as many large messages as it has connections.
TEST_F(CoordinatorServerTest, ChecksTheTokenBeforeItReadsARequest) {
  auto server = CoordinatorServer::Start(Options(), clock_);
  ASSERT_THAT(server, IsOk());
  const std::string address = "127.0.0.1:" + std::to_string((*server)->port());
  for (const char* method : {"CoordinatorService/ApplyPlan", "CoordinatorService/WatchObservations",
                             "CoordinatorService/Drain", "CoordinatorService/Suspend", "CoordinatorService/HandOver",
                             "MemberService/Session", "MemberService/PutRendezvous", "MemberService/GetRendezvous"}) {
    ExpectRefusedBeforeTheRequest(address, "/medley.job.v1." + std::string(method));
  }
}

TEST_F(CoordinatorServerTest, G7_AnOlderLeaderIsRefusedAlsoAfterARestart) {
  for (const bool restarted : {false, true}) {
    SCOPED_TRACE(restarted);
    auto server = CoordinatorServer::Start(Options(), clock_);
    ASSERT_THAT(server, IsOk());
    const int port = (*server)->port();
    if (!restarted) {
      ASSERT_THAT(Apply(port, "secret", 3), IsOk());
    }
    EXPECT_EQ(model::NewerTerm(Apply(port, "secret", 2)), 3);
    const auto stub = job::v1::CoordinatorService::NewStub(rpc::MakeChannel("127.0.0.1:" + std::to_string(port)));
    job::v1::DrainRequest drain;
    drain.set_leader_term(2);
    job::v1::DrainResponse drained;
    grpc::ClientContext draining;
    rpc::Prepare(draining, {.token = "secret", .timeout = base::seconds(60)});
    EXPECT_EQ(model::NewerTerm(rpc::FromGrpc(stub->Drain(&draining, drain, &drained))), 3);
    job::v1::SuspendRequest suspend;
    suspend.set_leader_term(2);
    job::v1::SuspendResponse suspended;
    grpc::ClientContext suspending;
    rpc::Prepare(suspending, {.token = "secret", .timeout = base::seconds(60)});
    EXPECT_EQ(model::NewerTerm(rpc::FromGrpc(stub->Suspend(&suspending, suspend, &suspended))), 3);
    EXPECT_THAT(Apply(port, "secret", 3), IsOk());
  }
}

TEST_F(CoordinatorServerTest, APortInUseIsNamed) {
  auto server = CoordinatorServer::Start(Options(), clock_);
  ASSERT_THAT(server, IsOk());
  CoordinatorOptions options = Options();
  options.checkpoint_root = root_ / "other";
  options.port = (*server)->port();
  const std::string address = "127.0.0.1:" + std::to_string(options.port);
  EXPECT_THAT(CoordinatorServer::Start(options, clock_), StatusIs(absl::StatusCode::kUnavailable, HasSubstr(address)));
}

// Issue 13: 25 silent connections blocked the last one for 12 s.
TEST_F(CoordinatorServerTest, SilentConnectionsDoNotBlockTheMetrics) {
  auto server = CoordinatorServer::Start(Options(), clock_);
  ASSERT_THAT(server, IsOk());
  std::list<http_server::RawClient> silent;
  for (int i = 0; i < 300; ++i) {
    silent.emplace_back((*server)->metrics_port());
    if (i % 2 == 0) silent.back().Send("GET /metrics HTTP/1.1\r\nHo");
  }
  http_server::RawClient client((*server)->metrics_port());
  client.Send(http_server::Get("/metrics"));
  EXPECT_THAT(client.Response(), HasSubstr("medley_coordinator_phase"));
}

TEST_F(CoordinatorServerTest, ServesMetrics) {
  auto server = CoordinatorServer::Start(Options(), clock_);
  ASSERT_THAT(server, IsOk());
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>((*server)->metrics_port()));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const std::string request = "GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n";
  ASSERT_EQ(send(fd, request.data(), request.size(), 0), static_cast<ssize_t>(request.size()));
  std::string page;
  char buffer[4096];
  for (ssize_t n = 0; (n = recv(fd, buffer, sizeof buffer, 0)) > 0;) page.append(buffer, static_cast<size_t>(n));
  close(fd);
  EXPECT_THAT(page, HasSubstr("200 OK"));
  EXPECT_THAT(page, HasSubstr("medley_coordinator_phase 1"));
  EXPECT_THAT(page, HasSubstr("medley_build_info{component=\"coordinator\""));
}

}  // namespace
}  // namespace medley::worker
