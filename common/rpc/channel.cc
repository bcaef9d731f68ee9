#include "common/rpc/channel.h"

#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/time.h>

#include <algorithm>

#include "common/rpc/certificate_provider.h"
#include "common/rpc/deadline.h"

namespace medley::rpc {
namespace {

std::shared_ptr<grpc::ChannelCredentials> ClientCredentials(const MutualTls& tls) {
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(tls.provider().certificates);
  options.watch_identity_key_cert_pairs();
  options.watch_root_certs();
  return grpc::experimental::TlsCredentials(options);
}

}  // namespace

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& target, const ChannelOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(options.max_message_bytes);
  arguments.SetMaxSendMessageSize(options.max_send_bytes);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const int first = static_cast<int>(options.connect_backoff_first.count());
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, first);
  // Despite its name, this option is the minimum time that gRPC gives one attempt to connect.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, static_cast<int>(options.connect_timeout.count()));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, static_cast<int>(options.connect_backoff_max.count()));
  if (options.keepalive_interval.count() > 0) {
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(options.keepalive_interval.count()));
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, static_cast<int>(options.keepalive_timeout.count()));
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  }
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY,
                   0);  // ignore proxies that the environment names
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (options.mutual_tls) {
    credentials = ClientCredentials(*options.mutual_tls);
    // What the certificate of the server must name, instead of the address.
    arguments.SetSslTargetNameOverride(options.mutual_tls->name());
  } else if (options.tls) {
    credentials = grpc::SslCredentials({options.tls->root_certificates, options.tls->key, options.tls->certificate});
    if (!options.tls->server_name.empty()) arguments.SetSslTargetNameOverride(options.tls->server_name);
  }
  return grpc::CreateCustomChannel(target, credentials, arguments);
}

void PauseBeforeCallingAgain(grpc::Channel& channel, base::Clock& clock, base::nanoseconds pause,
                             std::stop_token stop) {
  if (channel.GetState(/*try_to_connect=*/true) == GRPC_CHANNEL_READY) {
    clock.SleepFor(pause, stop);
    return;
  }
  constexpr base::nanoseconds kSlice = base::milliseconds(100);
  while (pause > base::nanoseconds(0) && !stop.stop_requested()) {
    const base::nanoseconds slice = std::min(pause, kSlice);
    if (channel.WaitForConnected(DeadlineIn(slice))) return;
    pause -= slice;
  }
}

}  // namespace medley::rpc
