// Bytes of users in places that hold text only: strings of protobuf, JSON, conditions and Events of Kubernetes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace medley::base {

// Whether the bytes are UTF-8 by RFC 3629: no surrogates, no overlong forms, nothing above U+10FFFF.
bool IsUtf8(std::string_view bytes);

// The text itself when it is UTF-8; otherwise with every byte that belongs to no character written as \xNN, so that a
// reader still sees it: "caf\xe9" is a word in Latin-1. Not reversible.
std::string EscapeInvalidUtf8(std::string_view bytes);

// The same for a value in a message to people: control characters are escaped too, and of more than `most` bytes the
// first ones are followed by "..." and the number of all.
std::string Printable(std::string_view bytes, size_t most = 120);

}  // namespace medley::base
