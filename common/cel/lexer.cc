#include "common/cel/lexer.h"

#include <array>
#include <cctype>

#include "common/base/status.h"
#include "common/base/utf8.h"

namespace medley::cel {
namespace {

constexpr std::array<std::string_view, 6> kPairs = {"==", "!=", "<=", ">=", "&&", "||"};
constexpr std::string_view kSingles = "+-*/%<>!?:.,()[]{}";

bool IsWordStart(char c) { return c == '_' || std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool IsWordPart(char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool IsFigure(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

void AppendRune(uint32_t rune, std::string& out) {
  if (rune < 0x80) {
    out += static_cast<char>(rune);
  } else if (rune < 0x800) {
    out += static_cast<char>(0xC0 | (rune >> 6));
    out += static_cast<char>(0x80 | (rune & 0x3F));
  } else if (rune < 0x10000) {
    out += static_cast<char>(0xE0 | (rune >> 12));
    out += static_cast<char>(0x80 | ((rune >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (rune & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (rune >> 18));
    out += static_cast<char>(0x80 | ((rune >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((rune >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (rune & 0x3F));
  }
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  absl::StatusOr<std::vector<Token>> Run() {
    std::vector<Token> tokens;
    while (true) {
      SkipBlanks();
      Token token;
      token.position = at_;
      if (at_ == text_.size()) {
        tokens.push_back(token);
        return tokens;
      }
      MEDLEY_RETURN_IF_ERROR(Next(token));
      tokens.push_back(std::move(token));
    }
  }

 private:
  char Peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  absl::Status Fail(std::string_view what) const { return base::InvalidArgument("character {}: {}", at_ + 1, what); }

  void SkipBlanks() {
    while (at_ < text_.size()) {
      if (std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
        ++at_;
      } else if (Peek() == '/' && Peek(1) == '/') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else {
        return;
      }
    }
  }

  absl::Status Next(Token& token) {
    bool raw = false;
    bool bytes = false;
    size_t prefix = 0;
    for (char c = Peek(); prefix < 2 && (c == 'r' || c == 'R' || c == 'b' || c == 'B'); c = Peek(prefix)) {
      ((c == 'r' || c == 'R') ? raw : bytes) = true;
      ++prefix;
    }
    if (const char quote = Peek(prefix); quote == '"' || quote == '\'') {
      at_ += prefix;
      token.kind = bytes ? Token::Kind::kBytes : Token::Kind::kString;
      return String(raw, bytes, token.text);
    }
    if (IsWordStart(Peek())) {
      const size_t start = at_;
      while (IsWordPart(Peek())) ++at_;
      token.kind = Token::Kind::kName;
      token.text = text_.substr(start, at_ - start);
      return absl::OkStatus();
    }
    if (IsFigure(Peek()) || (Peek() == '.' && IsFigure(Peek(1)))) return Number(token);
    return Symbol(token);
  }

  absl::Status Symbol(Token& token) {
    token.kind = Token::Kind::kSymbol;
    for (const std::string_view pair : kPairs) {
      if (text_.substr(at_, 2) != pair) continue;
      token.text = pair;
      at_ += 2;
      return absl::OkStatus();
    }
    if (kSingles.find(Peek()) == std::string_view::npos) return Fail("a character that no expression has");
    token.text = Peek();
    ++at_;
    return absl::OkStatus();
  }

  absl::Status Number(Token& token) {
    const size_t start = at_;
    const bool hex = Peek() == '0' && (Peek(1) == 'x' || Peek(1) == 'X');
    token.kind = Token::Kind::kInt;
    if (hex) {
      at_ += 2;
      while (std::isxdigit(static_cast<unsigned char>(Peek())) != 0) ++at_;
    } else {
      while (IsFigure(Peek())) ++at_;
      if (Peek() == '.' && IsFigure(Peek(1))) {
        token.kind = Token::Kind::kDouble;
        ++at_;
        while (IsFigure(Peek())) ++at_;
      }
      if (Peek() == 'e' || Peek() == 'E') {
        const size_t sign = Peek(1) == '+' || Peek(1) == '-' ? 1 : 0;
        if (!IsFigure(Peek(1 + sign))) return Fail("an exponent without figures");
        token.kind = Token::Kind::kDouble;
        at_ += 1 + sign;
        while (IsFigure(Peek())) ++at_;
      }
    }
    token.text = text_.substr(start, at_ - start);
    if (token.kind == Token::Kind::kInt && (Peek() == 'u' || Peek() == 'U')) {
      token.kind = Token::Kind::kUint;
      ++at_;
    }
    if (IsWordPart(Peek())) return Fail("a letter after a number");
    return absl::OkStatus();
  }

  absl::Status String(bool raw, bool bytes, std::string& out) {
    const std::string triple(3, Peek());
    const bool is_long = text_.substr(at_, 3) == triple;
    const std::string end = is_long ? triple : triple.substr(0, 1);
    at_ += end.size();
    while (true) {
      if (at_ >= text_.size()) return Fail("a string without an end");
      if (text_.substr(at_, end.size()) == end) break;
      if (!is_long && (Peek() == '\n' || Peek() == '\r')) return Fail("a string that goes over lines");
      if (Peek() == '\\' && !raw) {
        MEDLEY_RETURN_IF_ERROR(Escape(bytes, out));
      } else {
        out += text_[at_++];
      }
    }
    at_ += end.size();
    return absl::OkStatus();
  }

  absl::Status Escape(bool bytes, std::string& out) {
    static constexpr std::string_view kNames = "abfnrtv\\'\"`?";
    static constexpr std::string_view kValues = "\a\b\f\n\r\t\v\\'\"`?";
    ++at_;
    const char c = Peek();
    if (const size_t known = kNames.find(c); known != std::string_view::npos && c != '\0') {
      out += kValues[known];
      ++at_;
      return absl::OkStatus();
    }
    int digits = 0;
    int base = 16;
    if (c == 'x' || c == 'X') digits = 2;
    if (c == 'u' && !bytes) digits = 4;
    if (c == 'U' && !bytes) digits = 8;
    if (digits == 0 && c >= '0' && c <= '3') {
      digits = 3;
      base = 8;
    } else {
      ++at_;
    }
    if (digits == 0) return Fail("an unknown escape in a string");
    uint32_t rune = 0;
    for (int i = 0; i < digits; ++i, ++at_) {
      const char d = Peek();
      const bool fits = base == 8 ? d >= '0' && d <= '7' : std::isxdigit(static_cast<unsigned char>(d)) != 0;
      if (!fits) return Fail("an escape in a string with too few digits");
      const int lower = std::tolower(static_cast<unsigned char>(d));
      rune = rune * static_cast<uint32_t>(base) + static_cast<uint32_t>(lower <= '9' ? lower - '0' : lower - 'a' + 10);
    }
    if (bytes) {
      out += static_cast<char>(rune);
      return absl::OkStatus();
    }
    if (rune > 0x10FFFF || (rune >= 0xD800 && rune < 0xE000)) return Fail("an escape that is no character");
    AppendRune(rune, out);
    return absl::OkStatus();
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<Token>> Tokenize(std::string_view text) {
  if (!base::IsUtf8(text)) return base::InvalidArgument("the expression is not UTF-8");
  return Lexer(text).Run();
}

}  // namespace medley::cel
