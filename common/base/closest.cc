#include "common/base/closest.h"

#include <algorithm>

namespace medley::base {
namespace {

constexpr size_t kLongest = 64;

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// The optimal string alignment distance: Levenshtein's, with swaps of neighbours as one edit.
size_t Edits(std::string_view a, std::string_view b) {
  std::vector<size_t> before, above, row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before = std::move(above);
    above = row;
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = Lower(a[i - 1]) == Lower(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && Lower(a[i - 1]) == Lower(b[j - 2]) && Lower(a[i - 2]) == Lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string Closest(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.size() > kLongest) return "";
  size_t fewest = word.size() / 3 + 1;
  std::string closest;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongest) continue;
    const size_t edits = Edits(word, candidate);
    if (edits < fewest) {
      fewest = edits;
      closest = candidate;
    }
  }
  return closest;
}

std::string DidYouMean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string closest = Closest(word, candidates);
  return closest.empty() ? "" : "; did you mean `" + closest + "`?";
}

}  // namespace medley::base
