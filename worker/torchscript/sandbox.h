// Gives up the rights of this process, for good.
#pragma once

#include <absl/status/status.h>

#include <cstdint>

namespace medley::worker::torchscript {

struct Limits {
  int64_t memory_bytes = int64_t{8} << 30;  // of address space that is added
  int cpu_seconds = 120;
};

// From here on the process can compute, use memory, and read and write what is open; it cannot open files or sockets,
// start processes or threads, or look at other processes: such calls fail with EPERM. Errors: Internal, when the kernel
// refuses; then nothing may be parsed.
absl::Status GiveUpRights(const Limits& limits);

}  // namespace medley::worker::torchscript
