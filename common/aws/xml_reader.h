// Parses XML responses of AWS's query APIs, with limits. Pure.
#pragma once

#include <absl/status/status.h>

#include <functional>
#include <string>
#include <string_view>

namespace medley::aws {

inline constexpr int kMaxXmlDepth = 16;
inline constexpr size_t kMaxXmlText = 1 << 16;  // bytes of text in one element

// Calls `on_start` with the path of every element that begins ("A/B/item"; names without namespace prefix) and `on_end`
// with the path and the trimmed text of every element that ends. An error from either of them ends the parsing and is
// returned. Other errors: InvalidArgument naming line and column, also for a document type declaration, so entities
// other than XML's predefined five cannot occur; ResourceExhausted for too many levels or too much text.
absl::Status ReadXml(std::string_view body, const std::function<absl::Status(const std::string& path)>& on_start,
                     const std::function<absl::Status(const std::string& path, std::string_view text)>& on_end);

}  // namespace medley::aws
