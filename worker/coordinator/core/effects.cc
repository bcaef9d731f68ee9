#include "worker/coordinator/core/effects.h"

namespace medley::worker {

void Effects::Send(const job::v1::Peer& to, job::v1::SessionResponse message) {
  Add(SendCommand{to.slot().member(), to.instance(), std::move(message)});
}

void Effects::Log(bool warning, std::string message) { Add(LogCommand{warning, std::move(message)}); }

}  // namespace medley::worker
