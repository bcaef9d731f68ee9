// Client channels to Medley's own processes: plain text within a job (the token authenticates,
// NetworkPolicy isolates), TLS to services that ask for it.
//
// A channel is thread-safe and connects by itself, with backoff; make one per peer and keep it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "common/base/clock.h"

namespace grpc {
class Channel;
}  // namespace grpc

namespace medley::rpc {

// PEM texts.
struct ClientTls {
  std::string root_certificates;  // that sign the server's; empty: the system's
  std::string certificate;        // of the client, where the server asks for one
  std::string key;
};

struct ChannelOptions {
  std::optional<ClientTls> tls;  // none: plain text
  int max_message_bytes = 64 << 20;
  base::milliseconds connect_backoff_first{100};
  base::milliseconds connect_backoff_max{2000};
  // For one attempt, handshake included. A busy machine needs much more than the network does.
  base::milliseconds connect_timeout{5000};
  // Pings on an idle connection, so that a peer that vanished without FIN is noticed; 0: none.
  base::milliseconds keepalive_interval{10000};
  base::milliseconds keepalive_timeout{5000};
};

// `target`: "host:port". Shares no connection with any other channel of the process.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& target, const ChannelOptions& options = {});

// The pause of a loop that calls a peer again after a failure. Without a connection it drives the channel and
// returns as soon as there is one: gRPC lets a handshake progress only while some thread waits on the channel, so that
// calls which fail at once, with sleeps between them, may keep missing a peer that is back. With a connection (the
// peer itself ended the call) it takes all of `pause`. A stop ends it within 100 ms.
void PauseBeforeCallingAgain(grpc::Channel& channel, base::Clock& clock, base::nanoseconds pause, std::stop_token stop);

}  // namespace medley::rpc
