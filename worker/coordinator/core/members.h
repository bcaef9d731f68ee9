// The processes that are connected, and which of them are leaving.
#pragma once

#include <map>
#include <string>

#include "worker/coordinator/core/generation.h"

namespace medley::worker {

struct MembersState {
  std::map<std::string, ConnectedMember> all;  // by member
};

}  // namespace medley::worker
