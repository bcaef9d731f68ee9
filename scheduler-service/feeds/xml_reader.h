// A small XML document from the network, under limits: what AWS's query APIs answer. Pure.
#pragma once

#include <absl/status/status.h>

#include <functional>
#include <string>
#include <string_view>

namespace medley::sched {

inline constexpr int kMaxXmlDepth = 16;
inline constexpr size_t kMaxXmlText = 1 << 16;  // bytes of text in one element

// Calls `on_start` with the path of every element that begins ("A/B/item"; names without namespace
// prefix) and `on_end` with the path and the trimmed text of every element that ends. Both may
// refuse: their error ends the reading. Errors: InvalidArgument naming line and column; a document
// type declaration, and with it every entity but the five of XML, is refused; ResourceExhausted for
// depth and text.
absl::Status ReadXml(std::string_view body, const std::function<absl::Status(const std::string& path)>& on_start,
                     const std::function<absl::Status(const std::string& path, std::string_view text)>& on_end);

}  // namespace medley::sched
