#include "worker/app/torch_program.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "common/base/status.h"

namespace medley::worker {

absl::Status BecomeTorchProgram(char** argv) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return base::Internal("finding this program: {}", error.message());
  const std::filesystem::path program = self.parent_path() / "medley-worker-torch";
  ::execv(program.c_str(), argv);
  if (errno == ENOENT) {
    return base::NotFound(
        "models that came from PyTorch, and all models on GPUs, are computed by medley-worker-torch, which is not in "
        "{}: "
        "install it beside medley-worker (./dev programs builds both)",
        self.parent_path().string());
  }
  return base::Internal("starting {}: {}", program.string(), std::strerror(errno));
}

}  // namespace medley::worker
