// MNIST as files that a job reads, arranged so that each replica of a stage sees only some of the digits.
//
// Trainers read the rows of a batch in the order of a permutation (worker/data/permutation.h), and replicas with equal
// shares take equal parts of a batch, one after another. So the row of each position is chosen here by the replica that
// will read it.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace medley::bench {

struct Digits {
  int width = 0;
  int height = 0;
  std::vector<std::vector<uint8_t>> images;  // width * height each
  std::vector<uint8_t> labels;
};

// Reads the idx.gz files `prefix`-images-idx3-ubyte.gz and `prefix`-labels-idx1-ubyte.gz.
// Errors: NotFound, InvalidArgument.
absl::StatusOr<Digits> ReadDigits(const std::filesystem::path& prefix);

// The digits that each replica holds. Empty: every replica sees all.
using Holdings = std::vector<std::vector<int>>;

// `rows` images for one epoch of batches of `batch` rows, drawn with the seed of the job. Images of a digit are used
// one after another, then again from the first.
Digits Arrange(const Digits& all, const Holdings& holdings, int64_t rows, int batch, uint64_t seed);

// Images in the middle of black ones of `side` x `side`, the same in each of `channels`.
struct Canvas {
  int side = 28;
  int channels = 1;
};

// Writes `folder`/`name`-images and `folder`/`name`-labels as idx files. Errors: Internal.
absl::Status WriteDigits(const Digits& digits, const Canvas& canvas, const std::filesystem::path& folder,
                         const std::string& name);

}  // namespace medley::bench
