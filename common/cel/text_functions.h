// The functions of texts. As `Function::call` (functions.h): `args` begins with the target. Pure.
#pragma once

#include "common/cel/functions.h"

namespace medley::cel {

// What reading a text costs.
inline uint64_t TextCost(std::string_view text) { return text.size() / 10; }
// Unicode characters, in which CEL counts lengths and places.
int64_t Characters(std::string_view text);

Value Matches(std::span<const Value> args, Budget& budget);
Value StartsWith(std::span<const Value> args, Budget& budget);
Value EndsWith(std::span<const Value> args, Budget& budget);
Value Contains(std::span<const Value> args, Budget& budget);
Value Substring(std::span<const Value> args, Budget& budget);
Value CharacterAt(std::span<const Value> args, Budget& budget);
Value IndexOf(std::span<const Value> args, Budget& budget);
Value LastIndexOf(std::span<const Value> args, Budget& budget);
Value Split(std::span<const Value> args, Budget& budget);
Value JoinTexts(std::span<const Value> args, Budget& budget);
Value Replace(std::span<const Value> args, Budget& budget);
Value Trim(std::span<const Value> args, Budget& budget);
Value LowerAscii(std::span<const Value> args, Budget& budget);
Value UpperAscii(std::span<const Value> args, Budget& budget);
Value FindText(std::span<const Value> args, Budget& budget);

}  // namespace medley::cel
