// Says each sentence once: what `medley` prints about a job comes from conditions and Events, which repeat one another.
// Pure; not thread-safe.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace medley::cli {

// Splits at ". " before a capital letter. The sentences keep their dots.
std::vector<std::string> SentencesOf(std::string_view text);

// The text without the reason (a word such as "ProfileFailed: ") that may begin it.
std::string_view WithoutReason(std::string_view text);

class Once {
 public:
  // The sentences that were not said before, which are said from now on; empty: all were. A reason that begins the text
  // is no part of its sentence, and stays where a sentence stays.
  std::string Rest(std::string_view text);
  void Said(std::string_view text) { Rest(text); }

 private:
  std::set<std::string> said_;
};

}  // namespace medley::cli
