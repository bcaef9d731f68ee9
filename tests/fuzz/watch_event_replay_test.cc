// The fuzzer's corpus and 10,000 mutations of it with a fixed seed, in every test run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "tests/fuzz/watch_event_fuzz.h"

namespace medley::kube {
namespace {

constexpr uint64_t kSeed = 42;
constexpr int kMutations = 10'000;

std::vector<std::string> Corpus() {
  const char* root = std::getenv("MEDLEY_SOURCE_DIR");
  const std::filesystem::path folder =
      std::filesystem::path(root == nullptr ? "." : root) / "tests/fuzz/corpus/watch_event";
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::string> inputs;
  for (const auto& file : files) inputs.push_back(*base::ReadFile(file));
  return inputs;
}

std::string Mutate(std::string input, const std::vector<std::string>& corpus, base::Rng& rng) {
  for (uint64_t n = 1 + rng.Below(4); n > 0; --n) {
    const size_t at = input.empty() ? 0 : rng.Below(input.size());
    switch (rng.Below(5)) {
      case 0:
        if (!input.empty()) input[at] = static_cast<char>(rng.Below(256));
        break;
      case 1: input.insert(at, 1, "\n\"{}[],:\\\0e9"[rng.Below(12)]); break;
      case 2: input.erase(at, 1 + rng.Below(8)); break;
      case 3: input += input.substr(at); break;
      default: {
        const std::string& other = corpus[rng.Below(corpus.size())];
        input.insert(at, other.substr(rng.Below(other.size() + 1)));
      }
    }
    if (input.size() > 8192) input.resize(8192);
  }
  return input;
}

TEST(WatchEventFuzz, CorpusAndMutations) {
  std::cerr << "seed " << kSeed << "\n";
  const std::vector<std::string> corpus = Corpus();
  ASSERT_GE(corpus.size(), 5u);
  for (const std::string& input : corpus) FuzzWatchEvent(input);
  base::Rng rng(kSeed);
  for (int i = 0; i < kMutations; ++i) {
    FuzzWatchEvent(Mutate(corpus[rng.Below(corpus.size())], corpus, rng));
  }
}

}  // namespace
}  // namespace medley::kube
