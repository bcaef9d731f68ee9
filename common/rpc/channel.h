// Client channels to Medley's own processes: plain text (the token authenticates, NetworkPolicy
// isolates).
//
// A channel is thread-safe and connects by itself, with backoff; make one per peer and keep it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/clock.h"

namespace grpc {
class Channel;
}  // namespace grpc

namespace medley::rpc {

struct ChannelOptions {
  int max_message_bytes = 64 << 20;
  base::milliseconds connect_backoff_first{100};
  base::milliseconds connect_backoff_max{2000};
  // Pings on an idle connection, so that a peer that vanished without FIN is noticed; 0: none.
  base::milliseconds keepalive_interval{10000};
  base::milliseconds keepalive_timeout{5000};
};

// `target`: "host:port". Shares no connection with any other channel of the process.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& target,
                                           const ChannelOptions& options = {});

}  // namespace medley::rpc
