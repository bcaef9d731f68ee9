#include "scheduler-service/app/program.h"

#include <grpcpp/impl/codegen/service_type.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>

#include "common/base/file.h"
#include "common/base/host_port.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/certificates/certificates.h"
#include "common/certificates/renewed_files.h"
#include "common/rpc/server.h"
#include "scheduler-service/catalog/config.h"
#include "scheduler-service/feeds/factory.h"
#include "scheduler-service/handlers/handlers.h"
#include "scheduler-service/handlers/learned_state_store.h"
#include "scheduler-service/planner/builtin.h"
#include "scheduler-service/remote_planner/remote_planner.h"
#include "scheduler-service/serve_grpc/service.h"
#include "scheduler-service/serve_rest/rest_server.h"
#include "scheduler-service/web/web_page.h"

namespace medley::sched {
namespace {

constexpr base::seconds kLastPlanning{5};  // planners check their stop tokens more often than this
constexpr base::seconds kLastCalls{1};

absl::Status WritePorts(const std::string& path, const rpc::Server& grpc, const RestServer& rest) {
  if (path.empty()) return absl::OkStatus();
  return base::WriteFileAtomic(path, fmt::format("{{\"grpc\": {}, \"rest\": {}}}\n", grpc.port(), rest.port()));
}

Handlers::Options HandlerOptions(const ServiceOptions& options) {
  return {.admission = Admission::ForClasses(options.max_concurrent, options.max_waiting,
                                             base::FromSeconds(options.max_wait_seconds)),
          .cache_bytes = static_cast<size_t>(options.cache_mib) << 20,
          .max_planning = base::FromSeconds(options.max_planning_seconds)};
}

base::milliseconds Milliseconds(double seconds) { return base::milliseconds(static_cast<int64_t>(seconds * 1000)); }

RestOptions MakeRestOptions(const ServiceOptions& options, const Address& address, const BearerTokens& tokens) {
  RestOptions out;
  out.host = address.host.empty() ? "0.0.0.0" : address.host;
  out.port = address.port;
  out.names = options.rest_hosts;
  out.max_body_bytes = int64_t{options.max_body_kib} << 10;
  if (!options.tls_cert.empty()) out.tls = {options.tls_cert, options.tls_key, options.tls_client_ca};
  out.tokens = tokens;
  out.open_paths = options.open_paths;
  out.receive = Milliseconds(options.receive_seconds);
  out.max_connections = options.max_connections;
  return out;
}

// For requests that are not read yet: of callers without the token, and of those that wait for a place.
constexpr int64_t kGrpcMemoryBytes = int64_t{64} << 20;
constexpr int kReadAheadBytes = 16 << 10;
constexpr int kGrpcThreads = 1024;  // calls that are open at the same time: streams, and those that wait for a place

rpc::ServerOptions MakeGrpcOptions(const ServiceOptions& options, const Address& address) {
  rpc::ServerOptions out;
  out.host = address.host.empty() ? "::" : address.host;  // of both families
  out.port = address.port;
  out.max_threads = kGrpcThreads;
  out.answers_in_threads = true;
  out.max_message_bytes = options.max_body_kib << 10;
  out.max_memory_bytes = kGrpcMemoryBytes;
  out.read_ahead_bytes = kReadAheadBytes;
  if (!options.tls_cert.empty()) out.tls = {options.tls_cert, options.tls_key, options.tls_client_ca};
  return out;
}

absl::StatusOr<CatalogConfig> ReadCatalogConfig(const ServiceOptions& options, base::Clock& clock) {
  if (options.catalog_config.empty()) return OneFileConfig(options.prices, base::FromSeconds(options.poll_seconds));
  return LoadCatalogConfig(options.catalog_config, HttpFeedFactories(clock));
}

// Reads the CA again for each certificate: it may have been replaced.
absl::StatusOr<std::unique_ptr<certificates::RenewedFiles>> SignOwnCertificate(const ServiceOptions& options,
                                                                               base::Clock& clock) {
  MEDLEY_ASSIGN_OR_RETURN(const std::string authority, base::ReadFile(options.tls_ca_cert));
  const auto make = [cert = options.tls_ca_cert, key = options.tls_ca_key, names = options.tls_names](
                        base::WallTime now, base::nanoseconds lifetime) -> absl::StatusOr<certificates::KeyPair> {
    certificates::KeyPair ca;
    MEDLEY_ASSIGN_OR_RETURN(ca.certificate, base::ReadFile(cert));
    MEDLEY_ASSIGN_OR_RETURN(ca.key, base::ReadFile(key));
    return certificates::Issue(ca, names, {now - std::chrono::hours(1), now + lifetime});
  };
  auto files =
      certificates::RenewedFiles::Start(authority, make, base::FromSeconds(options.tls_lifetime_seconds), clock);
  if (!files.ok()) return base::Annotate(files.status(), "--tls-ca-cert, --tls-ca-key, --tls-name");
  return files;
}

}  // namespace

absl::Status Serve(const ServiceOptions& given, const std::function<void()>& wait_for_end) {
  ServiceOptions options = given;
  MEDLEY_ASSIGN_OR_RETURN(const Address grpc_at, ParseAddress(options.grpc_listen, "--grpc-listen"));
  MEDLEY_ASSIGN_OR_RETURN(const Address rest_at, ParseAddress(options.rest_listen, "--rest-listen"));
  MEDLEY_RETURN_IF_ERROR(CheckSecurity(options, grpc_at, rest_at));
  BearerTokens tokens;
  if (!options.token_file.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(tokens, BearerTokens::Load(options.token_file));
  }
  if (!options.operator_token_file.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(BearerTokens own, BearerTokens::Load(options.operator_token_file));
    tokens.SetOperator(std::move(own));
  }
  std::stop_source drain, stop;  // `drain` ends streams, `stop` also ends planning
  base::SystemClock clock;
  std::unique_ptr<certificates::RenewedFiles> own_certificate;  // until the servers have ended
  if (!options.tls_ca_cert.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(own_certificate, SignOwnCertificate(options, clock));
    options.tls_cert = options.tls_key = own_certificate->identity();
  }
  metrics::Registry metrics;
  CatalogStore catalog;
  Registry planners = BuiltinPlanners();
  if (!options.planners.empty()) {
    MEDLEY_RETURN_IF_ERROR(AddRemotePlanners(options.planners, options.insecure, planners));
  }
  MEDLEY_ASSIGN_OR_RETURN(const HardwareCatalog hardware, HardwareCatalog::Builtin());
  LearnedStateStore learned_state(options.state_dir, options.learn_online, metrics);
  MEDLEY_RETURN_IF_ERROR(learned_state.Open());
  Handlers handlers({planners, catalog, hardware, learned_state, metrics, clock}, HandlerOptions(options));
  RequestIds ids(static_cast<uint64_t>(clock.Now().time_since_epoch().count()));
  const bool wants_prices = !options.prices.empty() || !options.catalog_config.empty();
  std::atomic<bool> serving{false};  // true once both protocols are served
  const auto ready = [&] {
    return serving && !drain.stop_requested() && (!wants_prices || catalog.Get()->revision > 0);
  };
  std::optional<Poller> poller;
  if (wants_prices) {
    MEDLEY_ASSIGN_OR_RETURN(CatalogConfig config, ReadCatalogConfig(options, clock));
    poller.emplace(std::move(config.poller), std::move(config.feeds), catalog, metrics, clock);
    poller->Start();  // an invalid price file is not an error here: the poller reads it again
  }
  const auto service =
      MakeGrpcService(handlers, ids, drain.get_token(), stop.get_token(), {.max_watches = 64, .tokens = tokens});
  MEDLEY_ASSIGN_OR_RETURN(const WebPage page, WebPage::Make());
  // REST starts first because its errors explain invalid certificates.
  MEDLEY_ASSIGN_OR_RETURN(std::unique_ptr<RestServer> rest_server,
                          RestServer::Start(MakeRestOptions(options, rest_at, tokens),
                                            {handlers, ids, metrics, clock, ready, stop.get_token(), page.files()}));
  MEDLEY_ASSIGN_OR_RETURN(const std::unique_ptr<rpc::Server> grpc_server,
                          rpc::Server::Start(MakeGrpcOptions(options, grpc_at), {service.get()}));
  serving = true;
  MEDLEY_RETURN_IF_ERROR(WritePorts(options.port_file, *grpc_server, *rest_server));
  base::log::Info("serving", {{"grpc", grpc_server->address()},
                              {"rest", base::JoinHostPort(rest_at.host, rest_server->port())},
                              {"tls", options.tls_cert.empty() ? "false" : "true"},
                              {"token", tokens.required() ? "true" : "false"}});
  std::jthread learned_state_thread([&](std::stop_token token) { learned_state.Run(clock, std::move(token)); });
  wait_for_end();

  base::log::Info("stopping", {{"running", std::to_string(handlers.admission().running())}});
  drain.request_stop();
  handlers.admission().Close();
  const bool finished = handlers.admission().WaitIdle(base::FromSeconds(options.grace_seconds));
  stop.request_stop();
  handlers.admission().WaitIdle(kLastPlanning);
  grpc_server->Stop(kLastCalls);
  rest_server->WaitAnswered(kLastCalls);  // finished responses may still be in transit
  rest_server.reset();
  if (poller) poller->Stop();
  learned_state_thread = {};  // stops and joins
  learned_state.Save();
  base::log::Info("stopped", {{"all_finished", finished ? "true" : "false"}});
  return absl::OkStatus();
}

}  // namespace medley::sched
