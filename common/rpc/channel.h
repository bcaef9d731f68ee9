// Client channels to Medley's processes. Channels within a job use mutual TLS unless its Secret has no CA. Channels to
// services can use TLS.
//
// A channel is thread-safe and reconnects automatically, with backoff. Make one per peer and keep it.
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

class MutualTls;

// PEM texts, not file names.
struct ClientTls {
  std::string root_certificates;  // that sign the server's certificate; empty: the system's
  std::string certificate;        // of the client, if the server asks for one
  std::string key;
  std::string server_name;  // that the server's certificate must have; empty: the host of the target
};

struct ChannelOptions {
  std::optional<ClientTls> tls;                           // nullopt: plain text
  std::shared_ptr<const MutualTls> mutual_tls = nullptr;  // takes the place of `tls`
  int max_message_bytes = 64 << 20;                       // of a received message
  int max_send_bytes = 64 << 20;
  base::milliseconds connect_backoff_first{100};
  base::milliseconds connect_backoff_max{2000};
  // For one attempt to connect, handshake included. A busy machine needs much more time than the network does.
  base::milliseconds connect_timeout{5000};
  // Interval of pings on an idle connection, which detect a peer that vanished without closing it; 0: no pings.
  base::milliseconds keepalive_interval{10000};
  base::milliseconds keepalive_timeout{5000};
};

// `target`: "host:port", or "unix:path". The channel shares no connection with other channels of the process.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& target, const ChannelOptions& options = {});

// Waits before a loop calls a failed peer again. Without a connection it makes the channel connect and returns as soon
// as it is connected: gRPC advances a handshake only while some thread waits on the channel, so calls that fail at once
// with sleeps between them could keep missing a peer that has come back. With a connection (the peer itself ended the
// call) it waits the whole `pause`. A stop request ends it within 100 ms.
void PauseBeforeCallingAgain(grpc::Channel& channel, base::Clock& clock, base::nanoseconds pause, std::stop_token stop);

}  // namespace medley::rpc
