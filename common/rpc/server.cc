#include "common/rpc/server.h"

#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>
#include <grpcpp/support/time.h>

#include "common/base/host_port.h"
#include "common/base/status.h"
#include "common/http2_front/front.h"
#include "common/rpc/certificate_provider.h"
#include "common/rpc/deadline.h"

namespace medley::rpc {
namespace {

constexpr int kMaxReadChunk = 256 << 10;
constexpr int kHandshakeMillis = 20000;

std::shared_ptr<grpc::ServerCredentials> CredentialsOf(const MutualTls& tls) {
  grpc::experimental::TlsServerCredentialsOptions options(tls.provider().certificates);
  options.watch_identity_key_cert_pairs();
  options.watch_root_certs();
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  return grpc::experimental::TlsServerCredentials(options);
}

std::optional<http2_front::TlsOptions> TlsOf(const ServerOptions& options) {
  if (options.mutual_tls) return options.mutual_tls->provider().server;
  if (!options.tls) return std::nullopt;
  return http2_front::TlsOptions{.certificate = {.file = options.tls->certificate, .text = {}},
                                 .key = {.file = options.tls->key, .text = {}},
                                 .client_ca = {.file = options.tls->client_ca, .text = {}}};
}

http2_front::FrontOptions FrontOf(const ServerOptions& options) {
  http2_front::FrontOptions out{.host = options.host, .port = options.port};
  out.max_connections = options.max_connections;
  out.budget.max_calls = options.max_calls;
  out.budget.threads = options.answers_in_threads ? options.max_threads : 0;
  out.limits.max_open = options.max_calls_per_connection;
  out.tls = TlsOf(options);
  return out;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options,
                                                      const std::vector<grpc::Service*>& services) {
  if (options.max_threads < 2 || options.port < 0 || options.port > 65535 || options.max_memory_bytes < 1 ||
      options.max_connections < 1 || options.max_calls < 1) {
    return base::InvalidArgument(
        "server options: port must be in 0..65535, is {}; max_threads must be at least 2, is {}; max_memory_bytes, "
        "max_connections and max_calls must be above 0, are {}, {} and {}",
        options.port, options.max_threads, options.max_memory_bytes, options.max_connections, options.max_calls);
  }
  std::unique_ptr<http2_front::Front> front;
  grpc::ServerBuilder builder;
  int port = 0;
  if (options.mutual_tls && options.trust_certificates) {
    builder.AddListeningPort(base::JoinHostPort(options.host, options.port), CredentialsOf(*options.mutual_tls), &port);
    // Refuse to share the port: otherwise a second process on it would silently receive half of the calls.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMillis);
  } else {  // gRPC itself listens on no port
    front = std::make_unique<http2_front::Front>(FrontOf(options));
    MEDLEY_RETURN_IF_ERROR(front->Bind());
    port = front->port();
  }
  grpc::ResourceQuota quota("medley");
  quota.SetMaxThreads(options.max_threads);
  quota.Resize(static_cast<size_t>(options.max_memory_bytes));
  // Clients ping idle connections. By default the server closes a connection after two such pings.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  if (options.keepalive_interval.count() > 0) {
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(options.keepalive_interval.count()));
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, static_cast<int>(options.keepalive_timeout.count()));
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  }
  // By default a connection may keep 4 MiB that it has read, and a client opens as many connections as it likes.
  builder.AddChannelArgument(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kMaxReadChunk);
  if (options.read_ahead_bytes > 0) {
    builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, options.read_ahead_bytes);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // it would raise this bound
  }
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.max_calls_per_connection);
  builder.SetResourceQuota(quota);
  builder.SetMaxReceiveMessageSize(options.max_message_bytes);
  builder.SetMaxSendMessageSize(options.max_send_bytes);
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 4);
  for (grpc::Service* service : services) builder.RegisterService(service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    return base::Unavailable("listening on {}: the address is in use or cannot be bound",
                             base::JoinHostPort(options.host, options.port));
  }
  if (front) front->Start([behind = server.get()](int fd) { grpc::AddInsecureChannelFromFd(behind, fd); });
  return std::unique_ptr<Server>(new Server(std::move(server), std::move(front), options.host, port));
}

Server::Server(std::unique_ptr<grpc::Server> server, std::unique_ptr<http2_front::Front> front, std::string host,
               int port)
    : server_(std::move(server)), front_(std::move(front)), host_(std::move(host)), port_(port) {}

Server::~Server() { Stop(); }

std::string Server::address() const { return base::JoinHostPort(host_, port_); }

void Server::Stop(base::nanoseconds grace) {
  if (front_) front_->Close();
  server_->Shutdown(DeadlineIn(grace));
  server_->Wait();
  if (front_) front_->Stop();
}

}  // namespace medley::rpc
