#include "worker/app/become_program.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

#include "common/base/status.h"

namespace medley::worker {

absl::Status Become(OtherProgram which, char** argv) {
  const bool torch = which == OtherProgram::kTorch;
  const std::string name = torch ? "medley-worker-torch" : "medley-agent";
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return base::Internal("finding this program: {}", error.message());
  const std::filesystem::path program = self.parent_path() / name;
  ::execv(program.c_str(), argv);
  if (errno == ENOENT) {
    return base::NotFound(
        "{} {}, which is not in {}: install it beside medley-worker (./dev programs builds both)",
        torch ? "models that came from PyTorch, and all models on GPUs, are computed by" : "spec.program is run by",
        name, self.parent_path().string());
  }
  return base::Internal("starting {}: {}", program.string(), std::strerror(errno));
}

}  // namespace medley::worker
