// What holds for every kind of block on the test device, whose memory is GuardedMemory::OfProcess().
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <functional>

namespace medley::worker::aten {

// A step leaves no memory behind: 28 steps, the last ten of which need no more than the ten before. In the first eight
// the device records what it does again.
void ExpectNoGrowth(const std::function<absl::Status(int64_t step)>& step);

// Calls `run` until none of its allocations is left that was not made to fail once, one in each call. Each failure must
// be an error of one sentence that says what to change. Prints how many there were.
void ExpectFailedAllocationsAreSentences(const std::function<absl::Status()>& run);

}  // namespace medley::worker::aten
