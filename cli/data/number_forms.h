// Texts that people mean as numbers and that worker/data/number.h does not read as such. Pure.
#pragma once

#include <string>
#include <string_view>

namespace medley::cli {

// "12,5": a comma where a point should be, or something else that people write in numbers: "$1,234.50", "1 234", "5 %".
bool LooksLikeNumber(const std::string& text);

// The unit behind a number: "kg" of "12.5 kg". Empty: the text is no number with a unit.
std::string UnitOf(const std::string& text);

bool IsHexadecimal(const std::string& text);

}  // namespace medley::cli
