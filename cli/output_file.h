// Files that commands write. Thread-safe.
#pragma once

#include <absl/status/status.h>

#include <string>
#include <string_view>
#include <vector>

namespace medley::cli {

// For the options that name files to write, "-" means standard output: it becomes a path that WriteOutput knows, and
// what the command prints from then on goes to standard error, so that the file is all that standard output holds.
// Errors: InvalidArgument when two files are "-"; Internal when no file descriptor is left.
absl::Status OpenStandardOutput(const std::vector<std::string*>& files);

// Whether a path that OpenStandardOutput left is no regular file: standard output, a device or a named pipe, which
// cannot be written beside and renamed.
bool IsStream(const std::string& file);

// Writes a whole file: atomically, or in place if it IsStream. Errors: those of the file system.
absl::Status WriteOutput(const std::string& file, std::string_view bytes);

// An error for programs that read the output: prints {"error": "MESSAGE"} and a newline to standard output.
void PrintJsonError(std::string_view message);

// A text as a JSON string, with quotes; invalid UTF-8 is replaced.
std::string JsonText(std::string_view text);

}  // namespace medley::cli
