// Why no plan exists, in the words of a job's manifest and its pools. Pure.
#pragma once

#include <string>
#include <vector>

#include "common/model/reason.h"
#include "operator/lifecycle/pools.h"

namespace medley::ops::lifecycle {

// A reason of the scheduling service; one about a pool's units or memory says what bounds them.
std::string InWords(const model::Reason& reason, const UsablePools& pools);

// All of them, and of which pools only units that are held may be used; not empty without reasons either.
std::string InWords(const std::vector<model::Reason>& reasons, const UsablePools& pools);

// "4 units of pool gpu: 8 are in use by jobs a, b", or "". The reasons are constraints that cannot hold together, so
// one that other jobs lift when they end is enough.
std::string WaitsFor(const std::vector<model::Reason>& reasons, const UsablePools& pools);

}  // namespace medley::ops::lifecycle
