#include "worker/data/row_scanner.h"

#include <array>
#include <bit>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "worker/data/csv.h"

namespace medley::worker {
namespace {

// One bit for each of the 64 characters at `text`: whether it is the delimiter, the end of a line or a quote. SSE2 is a
// part of x86-64.
uint64_t MarksOf(const char* text, char delimiter) {
#if defined(__SSE2__)
  const __m128i delimiters = _mm_set1_epi8(delimiter), ends = _mm_set1_epi8('\n'), quotes = _mm_set1_epi8('"');
  uint64_t marks = 0;
  for (size_t part = 0; part < 4; ++part) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text + 16 * part));
    const __m128i any = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(bytes, delimiters), _mm_cmpeq_epi8(bytes, ends)),
                                     _mm_cmpeq_epi8(bytes, quotes));
    marks |= static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(any))) << (16 * part);
  }
  return marks;
#else
  uint64_t marks = 0;
  for (size_t i = 0; i < 64; ++i) {
    const char c = text[i];
    marks |= static_cast<uint64_t>(c == delimiter || c == '\n' || c == '"') << i;
  }
  return marks;
#endif
}

}  // namespace

void RowScanner::Load(size_t block) {
  block_ = block;
  const size_t bytes = text_.size() - block;
  if (bytes >= kBlock) {
    marks_ = MarksOf(text_.data() + block, delimiter_);
    return;
  }
  std::array<char, kBlock> last = {};
  std::memcpy(last.data(), text_.data() + block, bytes);
  marks_ = MarksOf(last.data(), delimiter_) & ((uint64_t{1} << bytes) - 1);
}

void RowScanner::Continue(std::string_view rest) {
  line_ = text_.size() - rest.size();
  block_ = kNoBlock;
}

RowScanner::Line RowScanner::Next(std::vector<std::string_view>& values) {
  if (line_ == text_.size()) return Line::kEnd;
  values.clear();
  if (block_ == kNoBlock) Load(line_);
  size_t field = line_;
  while (true) {
    while (marks_ == 0) {
      if (text_.size() - block_ <= kBlock) {  // the text ends without an end of line
        values.push_back(Trim(text_.substr(field)));
        line_bytes_ = text_.size() - line_;
        line_ = text_.size();
        return Line::kFields;
      }
      Load(block_ + kBlock);
    }
    const size_t at = block_ + static_cast<size_t>(std::countr_zero(marks_));
    const char mark = text_[at];
    if (mark == '"') {
      block_ = kNoBlock;  // the marks before it are used up
      return Line::kQuotes;
    }
    marks_ &= marks_ - 1;
    values.push_back(Trim(text_.substr(field, at - field)));
    field = at + 1;
    if (mark != '\n') continue;
    line_bytes_ = at - line_;
    line_ = field;
    return Line::kFields;
  }
}

}  // namespace medley::worker
