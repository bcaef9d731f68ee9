// What an error of the system says about the disk of cold rows. Pure.
#pragma once

#include <absl/status/status.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "common/base/status.h"

namespace medley::worker {

// "WHAT in FILE: the disk is full: ..." (ResourceExhausted) where there is no room, or else Unavailable.
inline absl::Status DiskError(int error, std::string_view what, const std::filesystem::path& file) {
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    return base::ResourceExhausted("{} in {}: the disk is full: {}", what, file.string(), std::strerror(error));
  }
  return base::Unavailable("{} in {}: {}", what, file.string(), std::strerror(error));
}

}  // namespace medley::worker
