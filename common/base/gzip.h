// Decompresses small files. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace medley::base {

// Whether the bytes begin as a gzip file does.
bool IsGzip(std::string_view bytes);

// The content of a gzip file of one member. Errors: InvalidArgument for a file that is damaged, incomplete, larger than
// 4 GiB, or followed by something else; ResourceExhausted above `max_bytes` of content.
absl::StatusOr<std::string> Gunzip(std::string_view bytes, int64_t max_bytes);

}  // namespace medley::base
