// Finds what a user meant by a word that does not exist: "did you mean `objective`?". Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace medley::base {

// Returns the candidate that is closest to `word`, or "" when none is close. Upper and lower case count as equal. One
// edit inserts, removes or replaces a character or swaps two neighbours; close means at most one edit for every three
// characters of `word`. Ties go to the first candidate. Words of more than 64 characters are close to nothing.
std::string Closest(std::string_view word, const std::vector<std::string>& candidates);

// "; did you mean `objective`?", or "" when no candidate is close.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace medley::base
