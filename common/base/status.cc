#include "common/base/status.h"

#include <absl/strings/cord.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace medley::base {

absl::Status MakeStatus(absl::StatusCode code, std::string_view message) {
  return absl::Status(code, absl::string_view(message.data(), message.size()));
}

std::string Message(const absl::Status& status) { return std::string(status.message()); }

std::string ToString(const absl::Status& status) {
  return std::string(absl::StatusCodeToString(status.code())) +
         (status.message().empty() ? "" : ": " + Message(status));
}

absl::Status Annotate(const absl::Status& status, std::string_view context) {
  if (status.ok()) return status;
  absl::Status annotated = MakeStatus(status.code(), fmt::format("{}: {}", context, Message(status)));
  status.ForEachPayload(
      [&](absl::string_view type, const absl::Cord& payload) { annotated.SetPayload(type, payload); });
  return annotated;
}

absl::Status ErrnoStatus(int error, std::string_view what) {
  absl::StatusCode code = absl::StatusCode::kInternal;
  switch (error) {
    case ENOENT:
      code = absl::StatusCode::kNotFound;
      break;
    case EEXIST:
      code = absl::StatusCode::kAlreadyExists;
      break;
    case EACCES:
    case EPERM:
      code = absl::StatusCode::kPermissionDenied;
      break;
    case ENOSPC:
    case ENOMEM:
    case EMFILE:
      code = absl::StatusCode::kResourceExhausted;
      break;
    case EADDRINUSE:
      code = absl::StatusCode::kAlreadyExists;
      break;
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
      code = absl::StatusCode::kUnavailable;
      break;
    case EINVAL:
      code = absl::StatusCode::kInvalidArgument;
      break;
    case ETIMEDOUT:
      code = absl::StatusCode::kDeadlineExceeded;
      break;
    default:
      break;
  }
  return MakeStatus(code, fmt::format("{}: {}", what, std::strerror(error)));
}

void CheckFailed(const char* file, int line, const char* expression, std::string_view message) {
  std::fprintf(stderr, "%s:%d: check failed: %s: %.*s\n", file, line, expression, static_cast<int>(message.size()),
               message.data());
  std::fflush(stderr);
  std::abort();
}

}  // namespace medley::base
