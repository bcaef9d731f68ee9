// Percent-encoding of URLs and of forms (RFC 3986, application/x-www-form-urlencoded). Pure and thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace medley::base {

// The names and values of a query or a form, in the order of the text.
using QueryFields = std::vector<std::pair<std::string, std::string>>;

// Encodes every byte except A-Z a-z 0-9 - . _ ~, so that the result can be one segment of a path, or one name or value
// of a query.
std::string UrlEncode(std::string_view text);

// "k=v&k=v", names and values encoded.
std::string QueryEncode(const QueryFields& fields);

// Decodes a path: "%2F" becomes "/", and "+" stays. nullopt when an escape is invalid.
std::optional<std::string> UrlDecode(std::string_view text);

// The fields of "k=v&k&=v", decoded; "+" is a space and empty parts are left out. nullopt when an escape is invalid.
std::optional<QueryFields> QueryDecode(std::string_view text);

}  // namespace medley::base
