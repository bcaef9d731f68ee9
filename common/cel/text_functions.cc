#include "common/cel/text_functions.h"

#include <absl/strings/ascii.h>
#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <vector>

namespace medley::cel {
namespace {

using Args = std::span<const Value>;

bool AreTexts(Args args) {
  return std::ranges::all_of(args, [](const Value& each) { return each.kind() == Kind::kString; });
}

bool BeginsCharacter(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

// The byte at which character `index` begins; the size of the text for the one behind the last.
size_t ByteOf(std::string_view text, int64_t index) {
  size_t at = 0;
  while (at < text.size()) {
    if (BeginsCharacter(text[at]) && index-- == 0) return at;
    ++at;
  }
  return at;
}

// Texts and their cost, with `call` for two of them.
template <typename Call>
Value OfTwo(Args args, Budget& budget, const Call& call) {
  if (!AreTexts(args)) return Value::NoOverload();
  if (!budget.Spend(TextCost(args[0].text()))) return SpentOut();
  return call(args[0].text(), args[1].text());
}

Value OutOfRange(int64_t index) { return Value::Failed(fmt::format("index out of range: {}", index)); }

Value Find(Args args, Budget& budget, bool last) {
  if (!AreTexts(args.first(2))) return Value::NoOverload();
  const std::string_view text = args[0].text();
  if (!budget.Spend(TextCost(text) + TextCost(args[1].text()) + 1)) return SpentOut();
  const int64_t length = Characters(text);
  int64_t from = last ? length : 0;
  if (args.size() > 2) {
    const auto* given = args[2].As<int64_t>();
    if (given == nullptr) return Value::NoOverload();
    if (*given < 0 || *given > length) return OutOfRange(*given);
    from = *given;
  }
  const size_t at =
      last ? text.rfind(args[1].text(), ByteOf(text, from)) : text.find(args[1].text(), ByteOf(text, from));
  return Value(at == std::string_view::npos ? int64_t{-1} : Characters(text.substr(0, at)));
}

template <typename Change>
Value Changed(Args args, Budget& budget, const Change& change) {
  if (!AreTexts(args)) return Value::NoOverload();
  if (!budget.Spend(TextCost(args[0].text()))) return SpentOut();
  return Value::OwnedText(change(args[0].text()));
}

re2::StringPiece Piece(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

int64_t Characters(std::string_view text) { return std::ranges::count_if(text, BeginsCharacter); }

Value Matches(Args args, Budget& budget) {
  if (!AreTexts(args)) return Value::NoOverload();
  const std::string_view pattern = args[1].text();
  if (!budget.Spend((TextCost(args[0].text()) + 1) * (pattern.size() / 4 + 1))) return SpentOut();
  const RE2 compiled(Piece(pattern), RE2::Quiet);
  if (!compiled.ok()) return Value::Failed("error parsing regexp: " + compiled.error());
  return Value(RE2::PartialMatch(Piece(args[0].text()), compiled));
}

Value StartsWith(Args args, Budget& budget) {
  return OfTwo(args, budget, [](auto text, auto prefix) { return Value(text.starts_with(prefix)); });
}
Value EndsWith(Args args, Budget& budget) {
  return OfTwo(args, budget, [](auto text, auto suffix) { return Value(text.ends_with(suffix)); });
}
Value Contains(Args args, Budget& budget) {
  return OfTwo(args, budget, [](auto text, auto part) { return Value(text.find(part) != std::string_view::npos); });
}

Value Substring(Args args, Budget& budget) {
  const auto* start = args[1].As<int64_t>();
  const auto* end = args.size() > 2 ? args[2].As<int64_t>() : nullptr;
  if (args[0].kind() != Kind::kString || start == nullptr || (args.size() > 2 && end == nullptr)) {
    return Value::NoOverload();
  }
  const std::string_view text = args[0].text();
  if (!budget.Spend(TextCost(text))) return SpentOut();
  const int64_t length = Characters(text);
  const int64_t to = end == nullptr ? length : *end;
  if (end != nullptr && *start > to) {
    return Value::Failed(fmt::format("invalid substring range. start: {}, end: {}", *start, to));
  }
  if (*start < 0 || *start > length) return OutOfRange(*start);
  if (to < 0 || to > length) return OutOfRange(to);
  const size_t first = ByteOf(text, *start);
  return Value(Value::Text{text.substr(first, ByteOf(text, to) - first), args[0].As<Value::Text>()->owner});
}

Value CharacterAt(Args args, Budget& budget) {
  const auto* index = args[1].As<int64_t>();
  if (args[0].kind() != Kind::kString || index == nullptr) return Value::NoOverload();
  const std::string_view text = args[0].text();
  if (!budget.Spend(TextCost(text))) return SpentOut();
  if (*index < 0 || *index > Characters(text)) return OutOfRange(*index);
  const size_t first = ByteOf(text, *index);
  return Value(Value::Text{text.substr(first, ByteOf(text, *index + 1) - first), args[0].As<Value::Text>()->owner});
}

Value IndexOf(Args args, Budget& budget) { return Find(args, budget, false); }
Value LastIndexOf(Args args, Budget& budget) { return Find(args, budget, true); }

Value Split(Args args, Budget& budget) {
  if (!AreTexts(args.first(2))) return Value::NoOverload();
  const auto* given = args.size() > 2 ? args[2].As<int64_t>() : nullptr;
  if (args.size() > 2 && given == nullptr) return Value::NoOverload();
  const int64_t most = given == nullptr ? -1 : *given;
  const std::string_view text = args[0].text();
  const std::string_view separator = args[1].text();
  if (!budget.Spend(text.size() + 1)) return SpentOut();
  auto parts = std::make_shared<std::vector<Value>>();
  const auto owner = args[0].As<Value::Text>()->owner;
  size_t from = 0;
  while (most != 0) {
    const bool is_last = most > 0 && static_cast<int64_t>(parts->size()) + 1 == most;
    size_t at = is_last             ? text.npos
                : separator.empty() ? ByteOf(text.substr(from), 1) + from
                                    : text.find(separator, from);
    if (separator.empty() && at >= text.size()) at = text.npos;
    if (!separator.empty() || from < text.size()) {
      parts->push_back(Value(Value::Text{text.substr(from, at == text.npos ? at : at - from), owner}));
    }
    if (at == text.npos) break;
    from = at + separator.size();
  }
  return Value(Value::List(std::move(parts)));
}

Value JoinTexts(Args args, Budget& budget) {
  if (!args[0].is_list() || (args.size() > 1 && args[1].kind() != Kind::kString)) return Value::NoOverload();
  std::string joined;
  for (size_t i = 0; i < args[0].size(); ++i) {
    const Value item = args[0].Item(i);
    if (item.kind() != Kind::kString) return Value::NoOverload();
    if (i > 0 && args.size() > 1) joined += args[1].text();
    joined += item.text();
    if (!budget.Spend(TextCost(item.text()) + (args.size() > 1 ? TextCost(args[1].text()) : 0) + 1)) return SpentOut();
  }
  return Value::OwnedText(std::move(joined));
}

Value Replace(Args args, Budget& budget) {
  if (!AreTexts(args.first(3))) return Value::NoOverload();
  const auto* most = args.size() > 3 ? args[3].As<int64_t>() : nullptr;
  if (args.size() > 3 && most == nullptr) return Value::NoOverload();
  const std::string_view text = args[0].text();
  const std::string_view old = args[1].text();
  const std::string_view replacement = args[2].text();
  int64_t left = most == nullptr ? -1 : *most;
  std::string out;
  size_t from = 0;
  while (left != 0 && from <= text.size()) {
    const size_t at = text.find(old, from);
    if (at == text.npos) break;
    if (!budget.Spend(TextCost(replacement) + (at - from) / 10 + 1)) return SpentOut();
    out += text.substr(from, at - from);
    out += replacement;
    if (old.empty() && at < text.size()) out += text[at];
    from = at + std::max<size_t>(old.size(), 1);
    --left;
  }
  if (from < text.size()) out += text.substr(from);
  return Value::OwnedText(std::move(out));
}

Value Trim(Args args, Budget& budget) {
  return Changed(args, budget, [](std::string_view text) {
    while (!text.empty() && absl::ascii_isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
    while (!text.empty() && absl::ascii_isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
    return std::string(text);
  });
}
Value LowerAscii(Args args, Budget& budget) {
  return Changed(args, budget, [](std::string_view text) { return absl::AsciiStrToLower(std::string(text)); });
}
Value UpperAscii(Args args, Budget& budget) {
  return Changed(args, budget, [](std::string_view text) { return absl::AsciiStrToUpper(std::string(text)); });
}

Value FindText(Args args, Budget& budget) {
  if (!AreTexts(args)) return Value::NoOverload();
  if (!budget.Spend((TextCost(args[0].text()) + 1) * (args[1].text().size() / 4 + 1))) return SpentOut();
  const RE2 compiled(Piece(args[1].text()), RE2::Quiet);
  if (!compiled.ok()) return Value::Failed("error parsing regexp: " + compiled.error());
  re2::StringPiece found;
  const re2::StringPiece text = Piece(args[0].text());
  if (!compiled.Match(text, 0, text.size(), RE2::UNANCHORED, &found, 1)) return Value::OwnedText("");
  return Value::OwnedText(std::string(found.data(), found.size()));
}

}  // namespace medley::cel
