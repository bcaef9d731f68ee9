// Errors: absl::Status with fmt-formatted messages.
//
// A message says what was tried, on which object, and why it failed; lower case, no trailing dot:
//   return base::NotFound("pool '{}' named by spec.resources.pools[{}]", name, i);
// All functions are pure and thread-safe.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

namespace medley::base {

// Takes a std::string_view, which does not convert implicitly to the string_view type of Debian's absl.
absl::Status MakeStatus(absl::StatusCode code, std::string_view message);

// The message of a status as a std::string.
std::string Message(const absl::Status& status);

// "CODE: message", for logs and conditions.
std::string ToString(const absl::Status& status);

// Puts "context: " before the message and keeps the code. OK stays OK.
absl::Status Annotate(const absl::Status& status, std::string_view context);

// Makes a status from errno (ENOENT is NotFound, EACCES is PermissionDenied, ...) with strerror's text in the message.
absl::Status ErrnoStatus(int error, std::string_view what);

#define MEDLEY_DEFINE_ERROR(Name, code)                                            \
  template <typename... Args>                                                      \
  [[nodiscard]] absl::Status Name(fmt::format_string<Args...> f, Args&&... args) { \
    return MakeStatus(code, fmt::format(f, std::forward<Args>(args)...));          \
  }
MEDLEY_DEFINE_ERROR(InvalidArgument, absl::StatusCode::kInvalidArgument)
MEDLEY_DEFINE_ERROR(NotFound, absl::StatusCode::kNotFound)
MEDLEY_DEFINE_ERROR(AlreadyExists, absl::StatusCode::kAlreadyExists)
MEDLEY_DEFINE_ERROR(FailedPrecondition, absl::StatusCode::kFailedPrecondition)
MEDLEY_DEFINE_ERROR(Unavailable, absl::StatusCode::kUnavailable)
MEDLEY_DEFINE_ERROR(DeadlineExceeded, absl::StatusCode::kDeadlineExceeded)
MEDLEY_DEFINE_ERROR(ResourceExhausted, absl::StatusCode::kResourceExhausted)
MEDLEY_DEFINE_ERROR(PermissionDenied, absl::StatusCode::kPermissionDenied)
MEDLEY_DEFINE_ERROR(Unauthenticated, absl::StatusCode::kUnauthenticated)
MEDLEY_DEFINE_ERROR(Aborted, absl::StatusCode::kAborted)
MEDLEY_DEFINE_ERROR(Cancelled, absl::StatusCode::kCancelled)
MEDLEY_DEFINE_ERROR(DataLoss, absl::StatusCode::kDataLoss)
MEDLEY_DEFINE_ERROR(OutOfRange, absl::StatusCode::kOutOfRange)
MEDLEY_DEFINE_ERROR(Unimplemented, absl::StatusCode::kUnimplemented)
MEDLEY_DEFINE_ERROR(Internal, absl::StatusCode::kInternal)
#undef MEDLEY_DEFINE_ERROR

// Used by MEDLEY_CHECK: prints the source line, the expression and the message to stderr, then aborts.
[[noreturn]] void CheckFailed(const char* file, int line, const char* expression, std::string_view message);

}  // namespace medley::base

#define MEDLEY_CONCAT_INNER(a, b) a##b
#define MEDLEY_CONCAT(a, b) MEDLEY_CONCAT_INNER(a, b)

#define MEDLEY_RETURN_IF_ERROR(expression)                                \
  do {                                                                    \
    if (absl::Status medley_status = (expression); !medley_status.ok()) { \
      return medley_status;                                               \
    }                                                                     \
  } while (false)

#define MEDLEY_ASSIGN_OR_RETURN(declaration, expression) \
  MEDLEY_ASSIGN_OR_RETURN_INNER(MEDLEY_CONCAT(medley_or_, __LINE__), declaration, expression)
#define MEDLEY_ASSIGN_OR_RETURN_INNER(temporary, declaration, expression) \
  auto temporary = (expression);                                          \
  if (!temporary.ok()) return temporary.status();                         \
  declaration = std::move(temporary).value()

// Aborts if an invariant is broken. Never use it to check input, network data or data of the API server.
#define MEDLEY_CHECK(condition, message)                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      ::medley::base::CheckFailed(__FILE__, __LINE__, #condition, (message)); \
    }                                                                         \
  } while (false)
