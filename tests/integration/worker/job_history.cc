#include "tests/integration/worker/job_history.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace medley::worker {

const JobHistory& JobHistoryFile::Read() {
  std::ifstream file(path_, std::ios::binary);
  struct stat state {};
  const bool exists = file && stat(path_.c_str(), &state) == 0;
  bool same = exists && state.st_ino == file_ && state.st_size >= read_;
  const auto length = static_cast<int64_t>(last_.size());
  if (same && length > 0) {
    std::string before(last_.size(), '\0');
    same = file.seekg(read_ - length) && file.read(before.data(), length) && before == last_;
  }
  if (!same) {
    history_ = {};
    file_ = exists ? state.st_ino : 0;
    read_ = 0;
    last_.clear();
    file.clear();
    file.seekg(0);
  }
  if (!exists) return history_;
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    Add(text.substr(at, end - at));
    last_ = text.substr(at, end + 1 - at);
    read_ += static_cast<int64_t>(last_.size());
  }
  return history_;
}

void JobHistoryFile::Add(const std::string& line) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (json.is_discarded()) return;
  if (json.contains("rollback_to")) {
    const size_t kept = std::min(history_.losses.size(), json["rollback_to"].get<size_t>());
    history_.losses.resize(kept);
    history_.generations.resize(kept);
    const auto last = static_cast<int64_t>(kept);
    history_.drains.erase(history_.drains.upper_bound(last), history_.drains.end());
    history_.agreements.erase(history_.agreements.upper_bound(last), history_.agreements.end());
    return;
  }
  if (json.contains("drained")) {
    history_.drains.insert(json["drained"].get<int64_t>());
    return;
  }
  const auto generation = json["generation"].get<int64_t>();
  EXPECT_EQ(json["step"].get<size_t>(), history_.losses.size() + 1) << line;
  if (!history_.generations.empty() && history_.generations.back() != generation) {
    history_.drains.insert(std::ssize(history_.generations));
  }
  history_.losses.push_back(json["loss"].is_number() ? json["loss"].get<double>() : std::nan(""));
  history_.generations.push_back(generation);
  if (json.contains("agreed")) history_.agreements.insert(std::ssize(history_.losses));
}

}  // namespace medley::worker
