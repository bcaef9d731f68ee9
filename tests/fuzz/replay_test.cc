// Runs a fuzz target with its corpus and with mutations of it, with a fixed seed, in every test run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "common/base/file.h"
#include "common/base/rng.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace medley {
namespace {

constexpr uint64_t kSeed = 42;
constexpr size_t kMostBytes = 8192;

std::vector<std::string> Corpus() {
  const char* folder = std::getenv("MEDLEY_FUZZ_CORPUS");
  if (folder == nullptr) return {};
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
    switch (rng.Below(6)) {
      case 0:
        if (!input.empty()) input[at] = static_cast<char>(rng.Below(256));
        break;
      case 1:
        input.insert(at, 1, "\n\"{}[],:\\-0e9.<>&*"[rng.Below(19)]);
        break;
      case 2:
        input.erase(at, 1 + rng.Below(8));
        break;
      case 3:
        input += input.substr(at);
        break;
      case 4:
        input.insert(at, input.substr(rng.Below(input.size() + 1), rng.Below(60)));
        break;
      default: {
        const std::string& other = corpus[rng.Below(corpus.size())];
        input.insert(at, other.substr(rng.Below(other.size() + 1), rng.Below(2000)));
      }
    }
    if (input.size() > kMostBytes) input.resize(kMostBytes);
  }
  return input;
}

void Feed(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

TEST(FuzzReplay, CorpusAndMutationsDoNotCrash) {
  const std::vector<std::string> corpus = Corpus();
  ASSERT_FALSE(corpus.empty()) << "MEDLEY_FUZZ_CORPUS names no folder with inputs";
  const char* count = std::getenv("MEDLEY_FUZZ_MUTATIONS");
  const int mutations = count == nullptr ? 10'000 : std::atoi(count);
  ASSERT_GT(mutations, 0);
  for (const std::string& input : corpus) Feed(input);
  base::Rng rng(kSeed);
  for (int i = 0; i < mutations; ++i) Feed(Mutate(corpus[rng.Below(corpus.size())], corpus, rng));
  std::cout << "seed " << kSeed << ": " << corpus.size() << " inputs, " << mutations << " mutations\n";
}

}  // namespace
}  // namespace medley
