// Texts as programs in Go write them, for messages that must be those of the Kubernetes API server. Pure.
#pragma once

#include <string>
#include <string_view>

namespace medley::base {

// As %q: in double quotes, with escapes for what cannot be printed.
std::string GoQuote(std::string_view text);

// As %v: the shortest decimal that reads back as the same double, as in 0.5, 1e-07 and 1e+06. `exponent_from`: from
// this power of ten on, numbers have an exponent: 6, and 21 in JSON.
std::string GoNumber(double value, int exponent_from = 6);

}  // namespace medley::base
