#include "cli/once.h"

#include <algorithm>
#include <cctype>

namespace medley::cli {
namespace {

bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsLetter(char c) { return IsUpper(c) || (c >= 'a' && c <= 'z'); }

// Two sentences that differ in their dot, or in the size of their first letter, are the same.
std::string Key(std::string_view sentence) {
  while (!sentence.empty() && sentence.back() == '.') sentence.remove_suffix(1);
  std::string key(sentence);
  if (!key.empty()) key[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(key[0])));
  return key;
}

}  // namespace

std::vector<std::string> SentencesOf(std::string_view text) {
  std::vector<std::string> sentences;
  size_t begin = 0;
  for (size_t at = text.find(". "); at != std::string_view::npos; at = text.find(". ", at + 1)) {
    if (at + 2 >= text.size() || !IsUpper(text[at + 2])) continue;
    sentences.emplace_back(text.substr(begin, at + 1 - begin));
    begin = at + 2;
  }
  if (begin < text.size()) sentences.emplace_back(text.substr(begin));
  return sentences;
}

std::string_view WithoutReason(std::string_view text) {
  const size_t colon = text.find(": ");
  if (colon == std::string_view::npos || colon == 0 || !IsUpper(text[0])) return text;
  const std::string_view word = text.substr(0, colon);
  if (!std::all_of(word.begin(), word.end(), IsLetter)) return text;
  return text.substr(colon + 2);
}

std::string Once::Rest(std::string_view text) {
  std::string_view sentences = text;
  for (std::string_view shorter = WithoutReason(sentences); shorter.size() < sentences.size();
       shorter = WithoutReason(sentences)) {
    sentences = shorter;
  }
  std::string rest;
  for (const std::string& sentence : SentencesOf(sentences)) {
    if (said_.insert(Key(sentence)).second) rest += (rest.empty() ? "" : " ") + sentence;
  }
  return rest.empty() ? "" : std::string(text.substr(0, text.size() - sentences.size())) + rest;
}

}  // namespace medley::cli
