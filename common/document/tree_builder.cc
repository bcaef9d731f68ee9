#include "common/document/tree_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace medley::document {

using nlohmann::json;

namespace {

// Code points that are no characters in any plane (Unicode, 23.7). JSON can write them, YAML cannot.
bool HasNoncharacter(std::string_view text) {
  const auto at = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0; };
  for (size_t i = 0; i < text.size(); ++i) {
    const unsigned lead = at(i);
    if (lead == 0xEF) {
      if (at(i + 1) == 0xB7 && at(i + 2) >= 0x90 && at(i + 2) <= 0xAF) return true;  // U+FDD0 to U+FDEF
      if (at(i + 1) == 0xBF && at(i + 2) >= 0xBE) return true;                       // U+FFFE, U+FFFF
    } else if (lead >= 0xF0 && (at(i + 1) & 0x0F) == 0x0F && at(i + 2) == 0xBF && at(i + 3) >= 0xBE) {
      return true;
    }
  }
  return false;
}

constexpr char kNoncharacter[] = "has a code point that is no character, such as U+FFFF";

}  // namespace

TreeBuilder::TreeBuilder(const Limits& limits, size_t text_bytes, std::vector<std::string>* duplicates)
    : limits_(limits), extra_budget_(kAliasFactor * text_bytes), duplicates_(duplicates) {}

bool TreeBuilder::Key(std::string name) {
  if (HasNoncharacter(name)) return Fail(kNoncharacter);
  Frame& frame = frames_.back();
  cost_ += name.size() + 1;
  frame.key = std::move(name);
  frame.has_key = true;
  if (!frame.tree->contains(frame.key)) return true;
  if (duplicates_ == nullptr) return Fail("is given twice");
  duplicates_->push_back(Path());
  return true;
}

bool TreeBuilder::Put(json value, size_t anchor) {
  if (ExpectsKey()) return Fail("the name of a field must be a string");
  if (value.is_string() && HasNoncharacter(value.get_ref<const std::string&>())) return Fail(kNoncharacter);
  const size_t cost = 1 + (value.is_string() ? value.get_ref<const std::string&>().size() : 0);
  if (!Count(1, cost)) return false;
  const json* const placed = Insert(std::move(value));
  if (!frames_.empty()) frames_.back().has_key = false;
  return Remember(anchor, *placed, 0, 1, cost);
}

bool TreeBuilder::Open(json empty, size_t anchor) {
  if (ExpectsKey()) return Fail("the name of a field must be a string");
  if (frames_.size() >= static_cast<size_t>(limits_.depth)) {
    return FailPlainly(fmt::format("nested deeper than {} levels", limits_.depth));
  }
  const size_t values = values_, cost = cost_;
  if (!Count(1, 2)) return false;
  frames_.push_back({.tree = Insert(std::move(empty)), .anchor = anchor, .values_before = values, .cost_before = cost});
  return true;
}

bool TreeBuilder::Close() {
  const Frame frame = std::move(frames_.back());
  frames_.pop_back();
  if (!frames_.empty()) {
    frames_.back().height = std::max(frames_.back().height, frame.height + 1);
    frames_.back().has_key = false;
  }
  return Remember(frame.anchor, *frame.tree, frame.height + 1, values_ - frame.values_before,
                  cost_ - frame.cost_before);
}

bool TreeBuilder::Alias(size_t anchor) {
  const auto found = anchors_.find(anchor);
  if (found == anchors_.end()) return Fail("an alias may not refer to a value that contains it");
  const Anchored& anchored = found->second;
  if (ExpectsKey()) {
    return anchored.tree.is_string() ? Key(anchored.tree.get<std::string>())
                                     : Fail("the name of a field must be a string");
  }
  if (frames_.size() + static_cast<size_t>(anchored.height) > static_cast<size_t>(limits_.depth)) {
    return FailPlainly(fmt::format("nested deeper than {} levels", limits_.depth));
  }
  extra_ += anchored.cost;
  if (extra_ > extra_budget_) {
    return FailPlainly(fmt::format("aliases make the document more than {} times as large as it is", kAliasFactor));
  }
  if (!Count(anchored.values, anchored.cost)) return false;
  Insert(anchored.tree);
  if (!frames_.empty()) {
    frames_.back().height = std::max(frames_.back().height, anchored.height);
    frames_.back().has_key = false;
  }
  return true;
}

bool TreeBuilder::Fail(const std::string& what) {
  const std::string path = Path();
  return FailPlainly(path.empty() ? what : path + ": " + what);
}

bool TreeBuilder::FailPlainly(const std::string& what) {
  if (failure_.empty()) failure_ = what;
  return false;
}

json TreeBuilder::Take() {
  anchors_.clear();
  frames_.clear();
  return std::exchange(root_, json());
}

// Where the value that comes next belongs.
std::string TreeBuilder::Path() const {
  std::string path;
  for (size_t i = 0; i < frames_.size(); ++i) {
    const Frame& frame = frames_[i];
    if (frame.tree->is_array()) {
      // The last element of every list but the innermost is the one that is open.
      path += fmt::format("[{}]", frame.tree->size() - (i + 1 < frames_.size() ? 1 : 0));
    } else if (frame.has_key) {
      path += (path.empty() ? "" : ".") + frame.key;
    }
  }
  return path;
}

bool TreeBuilder::Count(size_t values, size_t cost) {
  values_ += values;
  cost_ += cost;
  return values_ <= limits_.values || FailPlainly(fmt::format("more than {} values", limits_.values));
}

// The copy that an anchor keeps counts as what an alias adds, or nested anchors would make many of a large text.
bool TreeBuilder::Remember(size_t anchor, const json& tree, int height, size_t values, size_t cost) {
  if (anchor == 0) return true;
  extra_ += cost;
  if (extra_ > extra_budget_) {
    return FailPlainly(fmt::format("anchors make the document more than {} times as large as it is", kAliasFactor));
  }
  anchors_[anchor] = {tree, height, values, cost};
  return true;
}

// A value does not move while it is open: nothing is added to a list before its last element is closed.
json* TreeBuilder::Insert(json value) {
  if (frames_.empty()) {
    root_ = std::move(value);
    return &root_;
  }
  Frame& frame = frames_.back();
  if (frame.tree->is_array()) {
    frame.tree->push_back(std::move(value));
    return &frame.tree->back();
  }
  json& slot = (*frame.tree)[frame.key];
  slot = std::move(value);
  return &slot;
}

}  // namespace medley::document
