// Reads a TorchScript model without running anything of it in this process.
#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "worker/exported/program.h"
#include "worker/torchscript/sample.h"

namespace medley::worker::torchscript {

struct ReadLimits {
  std::chrono::seconds time{150};
  int64_t bytes = int64_t{4} << 30;  // of the lowered model
};

// The path of the program medley-torchscript: beside this one, or for tests in the folder of programs beside theirs.
// Error: Internal when it does not exist.
absl::StatusOr<std::string> ReaderProgram();

// Starts the program medley-torchscript, which lies beside this one, on the file, and reads what it writes: it has an
// empty environment, no other open files, and no rights but computing (sandbox.h). Blocks until it has ended. Errors:
// NotFound (file); those of Lower, with the path; DeadlineExceeded; ResourceExhausted; InvalidArgument when it died;
// Internal when it cannot be started.
absl::StatusOr<exported::Program> ReadTorchScript(const std::string& path, const std::vector<SampleInput>& inputs,
                                                  const ReadLimits& limits = {});

// The same as an archive, as torch.export.save would write it; it has not been checked.
absl::StatusOr<std::shared_ptr<const std::string>> LowerTorchScript(const std::string& path,
                                                                    const std::vector<SampleInput>& inputs,
                                                                    const ReadLimits& limits = {});

}  // namespace medley::worker::torchscript
