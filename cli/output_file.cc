#include "cli/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "common/base/file.h"
#include "common/base/status.h"

namespace medley::cli {
namespace {

constexpr std::string_view kKept = "/dev/fd/";

struct CloseStream {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

absl::Status OpenStandardOutput(const std::vector<std::string*>& files) {
  std::string* chosen = nullptr;
  for (std::string* file : files) {
    if (*file != "-") continue;
    if (chosen != nullptr) return base::InvalidArgument("two files are '-': only one can be standard output");
    chosen = file;
  }
  if (chosen == nullptr) return absl::OkStatus();
  std::fflush(stdout);
  const int kept = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (kept < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return base::ErrnoStatus(errno, "keeping standard output");
  *chosen = fmt::format("{}{}", kKept, kept);
  return absl::OkStatus();
}

bool IsStream(const std::string& file) {
  struct stat info = {};
  return file.starts_with(kKept) || (stat(file.c_str(), &info) == 0 && !S_ISREG(info.st_mode));
}

absl::Status WriteOutput(const std::string& file, std::string_view bytes) {
  struct stat info = {};
  const bool folder = stat(file.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  if (folder || !IsStream(file)) return base::WriteFileAtomic(file, bytes);
  // Not opened again, which a socket does not allow, and which begins a file anew.
  const bool kept = file.starts_with(kKept);
  const std::unique_ptr<std::FILE, CloseStream> out(kept ? fdopen(dup(std::atoi(file.c_str() + kKept.size())), "wb")
                                                         : std::fopen(file.c_str(), "wb"));
  if (out == nullptr) return base::ErrnoStatus(errno, "opening " + file);
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), out.get()) == bytes.size();
  if (!written || std::fflush(out.get()) != 0) return base::ErrnoStatus(errno, "writing " + file);
  return absl::OkStatus();
}

std::string JsonText(std::string_view text) {
  return nlohmann::json(std::string(text)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void PrintJsonError(std::string_view message) {
  std::printf("{\"error\": %s}\n", JsonText(message).c_str());
  std::fflush(stdout);
}

}  // namespace medley::cli
