// LibTorch loads 280 libraries, which costs a process half a second and 150 MB. So only the processes that compute a
// model from PyTorch, or any model on a GPU, load it (docs/adr/0052-libtorch-only-where-it-computes.md).
#pragma once

#include <absl/status/status.h>

namespace medley::worker {

// Continues as the program medley-worker-torch, which lies beside this one, with the same arguments and environment;
// process, open files and limits stay the same. Call it before any thread exists. Returns only after an error: NotFound
// when the program is missing, Internal when it cannot be started.
absl::Status BecomeTorchProgram(char** argv);

}  // namespace medley::worker
