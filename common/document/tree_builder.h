// Builds a tree from a parser's events and holds its limits. Internal to common/document.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/document/parse.h"

namespace medley::document {

// Key, Put, Open, Close and Alias return false when parsing must stop. Call only failure() after that: it has the
// reason.
class TreeBuilder {
 public:
  // `text_bytes`: the size of what is parsed. `duplicates` is borrowed and may be null (parse.h).
  TreeBuilder(const Limits& limits, size_t text_bytes, std::vector<std::string>* duplicates);

  // Whether the next scalar is the name of a field.
  bool ExpectsKey() const { return !frames_.empty() && frames_.back().tree->is_object() && !frames_.back().has_key; }
  bool Key(std::string name);
  // `anchor`: the number by which Alias finds the value; 0: none.
  bool Put(nlohmann::json value, size_t anchor = 0);
  bool Open(nlohmann::json empty, size_t anchor = 0);
  bool Close();
  bool Alias(size_t anchor);
  // Records the error `what` for the value that comes next. Returns false.
  bool Fail(const std::string& what);

  const std::string& failure() const { return failure_; }
  // Returns the document and starts the next one, which counts against the same limits.
  nlohmann::json Take();

 private:
  struct Frame {  // an open object or list
    nlohmann::json* tree;
    std::string key;  // of an object: the field whose value is read
    bool has_key = false;
    size_t anchor = 0;
    int height = 0;            // levels below this one
    size_t values_before = 0;  // counters before it began
    size_t cost_before = 0;
  };
  struct Anchored {
    nlohmann::json tree;
    int height;
    size_t values;
    size_t cost;
  };

  std::string Path() const;
  bool FailPlainly(const std::string& what);
  bool Count(size_t values, size_t cost);
  bool Remember(size_t anchor, const nlohmann::json& tree, int height, size_t values, size_t cost);
  nlohmann::json* Insert(nlohmann::json value);

  const Limits limits_;
  const size_t extra_budget_;
  std::vector<std::string>* const duplicates_;
  nlohmann::json root_;
  std::vector<Frame> frames_;  // outermost first
  std::map<size_t, Anchored> anchors_;
  size_t values_ = 0;
  size_t cost_ = 0;   // approximate bytes of text that the values would take
  size_t extra_ = 0;  // of cost_: what anchors keep and aliases add
  std::string failure_;
};

}  // namespace medley::document
