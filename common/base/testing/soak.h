// How many rounds of a repeated or random test run: a few in `./dev test`, all in `./dev soak`, which sets MEDLEY_SOAK.
//
// A test whose rounds are alike, such as one with a seed for each, runs a fixed share of them in every test run. What a
// round checks is the same in both.
#pragma once

#include <cstdlib>

namespace medley::base {

inline int Rounds(int few, int all) { return std::getenv("MEDLEY_SOAK") == nullptr ? few : all; }

}  // namespace medley::base
