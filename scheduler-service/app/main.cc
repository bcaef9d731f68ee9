// medley-scheduler: the scheduling service. Starts, serves until SIGTERM or SIGINT, leaves with 0; with 1 and a
// sentence when an address is in use or an option is wrong.
#include <CLI/CLI.hpp>
#include <grpcpp/impl/codegen/service_type.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <thread>

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/rpc/server.h"
#include "scheduler-service/catalog/price_file.h"
#include "scheduler-service/serve_grpc/service.h"
#include "scheduler-service/serve_rest/rest_server.h"

namespace medley::sched {
namespace {

struct Flags {
  std::string grpc_listen = "127.0.0.1:7070";
  std::string rest_listen = "127.0.0.1:7071";
  std::string prices;
  std::string port_file;
  double poll_seconds = 2;
  int max_concurrent = 4;
  std::string log_level = "info";
};

struct Address {
  std::string host;
  int port = 0;
};

absl::StatusOr<Address> ParseAddress(const std::string& text, const std::string& flag) {
  const size_t colon = text.rfind(':');
  Address address;
  if (colon != std::string::npos && colon + 1 < text.size() &&
      text.find_first_not_of("0123456789", colon + 1) == std::string::npos && text.size() - colon <= 6) {
    address.host = colon == 0 ? "0.0.0.0" : text.substr(0, colon);
    address.port = std::stoi(text.substr(colon + 1));
    if (address.port <= 65535) return address;
  }
  return base::InvalidArgument("{}: '{}' is not HOST:PORT", flag, text);
}

// Blocks until a signal to end arrives. Every thread inherits the mask that BlockSignals set.
sigset_t BlockSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  return set;
}

absl::Status WritePorts(const std::string& path, const rpc::Server& grpc, const RestServer& rest) {
  if (path.empty()) return absl::OkStatus();
  return base::WriteFileAtomic(path, fmt::format("{{\"grpc\": {}, \"rest\": {}}}\n", grpc.port(), rest.port()));
}

// `stop` is requested at the end, so that streams and planning end before the servers do.
absl::Status Serve(const Flags& flags, const sigset_t& signals, std::stop_source& stop) {
  MEDLEY_ASSIGN_OR_RETURN(const Address grpc_at, ParseAddress(flags.grpc_listen, "--grpc-listen"));
  MEDLEY_ASSIGN_OR_RETURN(const Address rest_at, ParseAddress(flags.rest_listen, "--rest-listen"));
  base::SystemClock clock;
  metrics::Registry metrics;
  CatalogStore catalog;
  const Registry planners = BuiltinPlanners();
  Handlers handlers(planners, catalog, metrics, clock, {.max_concurrent = flags.max_concurrent});
  UseRestThreads(4);
  const bool wants_prices = !flags.prices.empty();
  const auto ready = [&] { return !wants_prices || catalog.Get()->revision > 0; };
  std::optional<PriceFileFeed> feed;
  if (wants_prices) {
    feed.emplace(flags.prices, catalog, metrics, clock);
    static_cast<void>(feed->Poll());  // logged; a file that is not good yet is looked at again
  }
  const std::unique_ptr<grpc::Service> service = MakeGrpcService(handlers, stop.get_token());
  MEDLEY_ASSIGN_OR_RETURN(const std::unique_ptr<rpc::Server> grpc_server,
                          rpc::Server::Start({.host = grpc_at.host, .port = grpc_at.port}, {service.get()}));
  MEDLEY_ASSIGN_OR_RETURN(const std::unique_ptr<RestServer> rest_server,
                          RestServer::Start({.host = rest_at.host, .port = rest_at.port}, handlers, metrics, ready,
                                            stop.get_token()));
  MEDLEY_RETURN_IF_ERROR(WritePorts(flags.port_file, *grpc_server, *rest_server));
  log::Info("serving", {{"grpc", grpc_server->address()},
                        {"rest", fmt::format("{}:{}", rest_at.host, rest_server->port())}});
  std::optional<std::jthread> polling;
  if (feed) {
    polling.emplace([&](std::stop_token token) { feed->Run(base::FromSeconds(flags.poll_seconds), token); });
  }
  int signal = 0;
  sigwait(&signals, &signal);
  log::Info("stopping", {{"signal", std::to_string(signal)}});
  stop.request_stop();
  grpc_server->Stop();
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Medley's scheduling service: which layers on which kind of machine, and how many of each.");
  app.add_option("--grpc-listen", flags.grpc_listen, "HOST:PORT for gRPC; port 0: a free one")->capture_default_str();
  app.add_option("--rest-listen", flags.rest_listen, "HOST:PORT for REST and /metrics; port 0: a free one")
      ->capture_default_str();
  app.add_option("--prices", flags.prices, "price file (YAML, JSON or CSV), watched for changes");
  app.add_option("--port-file", flags.port_file, "write the ports here as JSON once serving");
  app.add_option("--poll-seconds", flags.poll_seconds, "how often to look at the price file")
      ->check(CLI::Range(0.01, 3600.0))
      ->capture_default_str();
  app.add_option("--max-concurrent", flags.max_concurrent, "plans made at once")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--log-level", flags.log_level, "debug, info, warn, error, off")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  log::Configure("scheduler", log::ParseLevel(flags.log_level));
  const sigset_t signals = BlockSignals();
  const auto stop = std::make_unique<std::stop_source>();
  const absl::Status status = Serve(flags, signals, *stop);
  if (status.ok()) return 0;
  std::fprintf(stderr, "medley-scheduler: %s\n", base::Message(status).c_str());
  return 1;
}

}  // namespace
}  // namespace medley::sched

int main(int argc, char** argv) { return medley::sched::Main(argc, argv); }
