// Limits for parsing what a price source sends. Internal to feeds/.
#pragma once

#include "common/document/parse.h"

namespace medley::sched {

// Lists of prices are shallow and long.
inline constexpr document::Limits kAnswerLimits{.bytes = size_t{64} << 20, .depth = 32, .values = 4'000'000};

}  // namespace medley::sched
