// How failures are worded: the cause first, once, then where it was seen. Pure.
#pragma once

#include <string>
#include <string_view>

namespace medley::ops {

// The cause in the last line of a worker's log: without the program and role that begin it
// ("medley-worker: profiler: "), and the message of a line of structured (JSON) log. Empty: the line says nothing.
std::string CauseIn(std::string_view last_line);

// "CAUSE. CIRCUMSTANCES." with one dot each; `circumstances` alone, where there is no cause.
std::string CauseFirst(std::string_view cause, std::string_view circumstances);

}  // namespace medley::ops
