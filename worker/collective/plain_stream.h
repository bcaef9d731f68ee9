// A connection in plain text: of a job without certificates (worker.tls.enabled: false). Who reads the network reads
// it, and who can change it is believed.
#pragma once

#include <memory>

#include "worker/collective/peer_stream.h"

namespace medley::worker {

// Over a connected, non-blocking socket, which the stream owns.
std::unique_ptr<PeerStream> MakePlainStream(int socket);

}  // namespace medley::worker
