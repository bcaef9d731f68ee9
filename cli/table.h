// A text table with aligned columns. Not thread-safe.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace medley::cli {

class Table {
 public:
  explicit Table(std::vector<std::string> header) { Add(std::move(header)); }
  // Adds a row with as many cells as the header has.
  void Add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  std::string Text() const {
    std::vector<size_t> width(rows_[0].size(), 0);
    for (const auto& row : rows_) {
      for (size_t c = 0; c + 1 < row.size(); ++c) width[c] = std::max(width[c], row[c].size());
    }
    std::string out;
    for (const auto& row : rows_) {
      for (size_t c = 0; c < row.size(); ++c) {
        out += row[c];
        if (c + 1 < row.size()) out.append(width[c] - row[c].size() + 2, ' ');
      }
      out.erase(out.find_last_not_of(' ') + 1);
      out += '\n';
    }
    return out;
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace medley::cli
