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

// Encodes every byte but A-Z a-z 0-9 - . _ ~, so that the result may be any one part of a path or of a query.
std::string UrlEncode(std::string_view text);

// "k=v&k=v", names and values encoded.
std::string QueryEncode(const QueryFields& fields);

// What a path stands for: "%2F" becomes "/", and "+" stays. Nothing when an escape is broken.
std::optional<std::string> UrlDecode(std::string_view text);

// The fields of "k=v&k&=v", decoded; "+" is a space and empty parts are left out. Nothing when an escape is broken.
std::optional<QueryFields> QueryDecode(std::string_view text);

}  // namespace medley::base
