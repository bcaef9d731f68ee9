#include "worker/coordinator/server/server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/service_type.h>

#include <thread>
#include <utility>

#include "common/base/log.h"
#include "common/base/status.h"
#include "common/rpc/server.h"
#include "worker/claim/claims.h"
#include "worker/coordinator/server/engine.h"
#include "worker/coordinator/server/metrics_page.h"
#include "worker/coordinator/server/services.h"

namespace medley::worker {

namespace {
constexpr base::nanoseconds kStopPoll = base::milliseconds(100);
// A plan of 4,000 operations takes less than 1 MiB.
constexpr int kMaxMessageBytes = 8 << 20;
constexpr int kReadAheadBytes = 16 << 10;
constexpr int64_t kMaxMemoryBytes = int64_t{128} << 20;
}  // namespace

struct CoordinatorServer::State {
  std::unique_ptr<Engine> engine;
  std::unique_ptr<grpc::Service> coordinator;
  std::unique_ptr<grpc::Service> member;
  std::unique_ptr<rpc::Server> server;
  std::unique_ptr<MetricsPage> metrics;
};

absl::StatusOr<std::unique_ptr<CoordinatorServer>> CoordinatorServer::Start(CoordinatorOptions options,
                                                                            base::Clock& clock, std::stop_token stop) {
  if (options.token.empty()) return base::InvalidArgument("the coordinator needs the job's token");
  if (options.core.epochs < 1 || options.core.batch_size < 1) {
    return base::InvalidArgument("the coordinator needs epochs and batch size above 0, not {} and {}",
                                 options.core.epochs, options.core.batch_size);
  }
  if (options.term < 0 || (options.term > 0 && options.address.empty())) {
    return base::InvalidArgument("a coordinator of term {} needs an address, not '{}'", options.term, options.address);
  }
  auto state = std::make_unique<State>();
  MEDLEY_ASSIGN_OR_RETURN(state->engine, Engine::Start(options, clock, std::move(stop)));
  Engine& engine = *state->engine;
  state->coordinator = MakeCoordinatorService(engine, options.token);
  state->member = MakeMemberService(engine, options.token);
  const rpc::ServerOptions serve = {.host = options.host,
                                    .port = options.port,
                                    .max_threads = 1024,
                                    .answers_in_threads = true,
                                    .max_message_bytes = kMaxMessageBytes,
                                    .max_memory_bytes = kMaxMemoryBytes,
                                    .read_ahead_bytes = kReadAheadBytes,
                                    .mutual_tls = options.tls,
                                    .keepalive_interval = options.keepalive_interval};
  MEDLEY_ASSIGN_OR_RETURN(state->server, rpc::Server::Start(serve, {state->coordinator.get(), state->member.get()}));
  if (options.metrics_port >= 0) {
    MEDLEY_ASSIGN_OR_RETURN(http_server::Readers readers,
                            http_server::Readers::OfDigests(options.metrics_token_digests));
    MEDLEY_ASSIGN_OR_RETURN(state->metrics, MetricsPage::Start(options.host, options.metrics_port, std::move(readers),
                                                               [&engine] { return engine.Observe(); }));
  }
  base::log::Info("the coordinator listens", {{"address", state->server->address()}});
  return std::unique_ptr<CoordinatorServer>(new CoordinatorServer(std::move(state)));
}

CoordinatorServer::CoordinatorServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

CoordinatorServer::~CoordinatorServer() { Stop(); }

int CoordinatorServer::port() const { return state_->server->port(); }

int CoordinatorServer::metrics_port() const { return state_->metrics ? state_->metrics->port() : 0; }

bool CoordinatorServer::trains() const { return state_->engine->trains(); }

int CoordinatorServer::Wait(std::stop_token stop) { return state_->engine->Wait(stop); }

void CoordinatorServer::Stop() {
  state_->engine->Stop();
  if (state_->server) state_->server->Stop();
}

absl::StatusOr<int> RunCoordinator(CoordinatorOptions options, base::Clock& clock, std::stop_token stop) {
  const base::nanoseconds notice = options.notice;
  absl::StatusOr<std::unique_ptr<CoordinatorServer>> started =
      CoordinatorServer::Start(std::move(options), clock, stop);
  if (absl::IsAborted(started.status())) {
    base::log::Warn(base::Message(started.status()));
    return kSuperseded;
  }
  if (!started.ok()) return started.status();
  const std::unique_ptr<CoordinatorServer> server = *std::move(started);
  std::stop_source end;
  const std::jthread leave([&](std::stop_token over) {
    while (!stop.stop_requested() && clock.SleepFor(kStopPoll, over)) {
    }
    const base::SteadyTime deadline = clock.Steady() + notice;
    while (clock.Steady() < deadline && server->trains() && clock.SleepFor(kStopPoll, over)) {
    }
    end.request_stop();
  });
  const int exit_code = server->Wait(end.get_token());
  server->Stop();
  return exit_code;
}

}  // namespace medley::worker
