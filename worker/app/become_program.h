// The programs that medley-worker becomes: each has libraries that it has not, or is without those that it has.
#pragma once

#include <absl/status/status.h>

namespace medley::worker {

enum class OtherProgram {
  kTorch,  // medley-worker-torch, with LibTorch, for models that came from PyTorch, and for all models on GPUs
  kAgent,  // medley-agent, which takes little memory, for jobs with spec.program
};

// Continues as this program, which lies beside this one, with the same arguments and environment; does not return then.
// Errors: NotFound (it is not installed), Internal.
absl::Status Become(OtherProgram which, char** argv);

}  // namespace medley::worker
