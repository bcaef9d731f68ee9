// The recorded bodies in tests/data/prices/feeds. The README there names their sources.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "common/base/status.h"

namespace medley::sched {

inline std::string PriceData(const std::string& name) {
  const char* root = std::getenv("MEDLEY_SOURCE_DIR");
  auto text = base::ReadFile(std::filesystem::path(root == nullptr ? "." : root) / "tests/data/prices/feeds" / name);
  MEDLEY_CHECK(text.ok(), base::ToString(text.status()));
  return *std::move(text);
}

// The rows of a CSV file, which must not contain quotes, without the header.
inline std::vector<std::vector<std::string>> PriceRows(const std::string& name) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream text(PriceData(name));
  for (std::string line; std::getline(text, line);) {
    std::vector<std::string> row;
    std::istringstream fields(line);
    for (std::string field; std::getline(fields, field, ',');) row.push_back(field);
    rows.push_back(std::move(row));
  }
  rows.erase(rows.begin());
  return rows;
}

}  // namespace medley::sched
