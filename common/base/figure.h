// Numbers for people: no exponents, commas between thousands. Not for numbers that programs read again. Pure.
#pragma once

#include <string>

namespace medley::base {

// From 1,000 on the whole number: "1,000,000,000,000"; below that `digits` significant digits without zeros at the end:
// "2.58", "0.00000015". "unknown" for what is not finite.
std::string Figure(double value, int digits = 4);

}  // namespace medley::base
