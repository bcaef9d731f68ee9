// The links between pools, as profiles and requests list them: by pair, in each direction.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/model/link_speed.h"
#include "common/model/profile.h"

namespace medley::model {

// How fast messages from pools[a] to pools[b] are, at [a * pools.size() + b]; nullopt where that is unknown. A link
// holds in both directions, unless the other direction has its own, wherever that stands in the list; of several of one
// direction the slowest counts. A speed of 0 is unknown. Between pools that were not measured together, the slower of
// the links within both counts. Ends that are in no pool are ignored; `pools` are unique. Pure.
std::vector<std::optional<LinkSpeed>> PoolLinks(std::span<const std::string> pools, std::span<const Link> links);

}  // namespace medley::model
