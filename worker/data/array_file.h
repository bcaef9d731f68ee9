// Reads the samples of files that hold arrays, in bounded memory.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "worker/data/array_format.h"

namespace medley::worker {

// What a file is expected to hold.
struct ArraySource {
  std::string path;    // or a pattern of FindFiles: the samples of all files one after the other
  std::string format;  // that holds arrays (common/model/data_format.h)
  // For raw: all it holds are elements of this type, little-endian.
  ElementType storage = ElementType::kUint8;
  std::vector<int64_t> shape;  // of one sample
};

// Reads the samples of all files of a source, one after the other. Move-only; not thread-safe.
class ArrayReader {
 public:
  // Errors: those of FindFiles.
  static absl::StatusOr<ArrayReader> Open(ArraySource source);
  ArrayReader(ArrayReader&& other) noexcept;
  ArrayReader& operator=(ArrayReader&& other) noexcept;
  ~ArrayReader();

  // Replaces `numbers` by the elements of the next samples, at most `most` of them; returns how many there are, fewer
  // only at the end. Elements are exact, but for integers beyond 2^53.
  //
  // Errors: those of TextFile, ParseIdx and ParseNpy, with the path before; InvalidArgument for samples of another
  // shape, and for a file that has more or fewer elements than its header says.
  absl::StatusOr<int64_t> Read(int64_t most, std::vector<double>& numbers);

  // The bytes of all files, and of these the ones that have been read, compressed or not.
  int64_t bytes() const;
  int64_t consumed() const;

 private:
  struct State;
  explicit ArrayReader(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

// Calls `values` for pieces of the array, in order. A piece holds whole samples. Returns the number of samples. Errors:
// those of ArrayReader and of `values`.
absl::StatusOr<int64_t> ReadArray(const ArraySource& source,
                                  absl::FunctionRef<absl::Status(std::span<const double>)> values);

// The number of samples by the headers, or by the lengths where these are shorter. What is compressed is not read: its
// raw format counts at least as many samples as its compressed bytes hold. Errors: as above, for the headers.
absl::StatusOr<int64_t> CountSamples(const ArraySource& source);

// Looks at the header of the first file alone: OK when samples of it have the expected shape.
absl::Status CheckArray(const ArraySource& source);

}  // namespace medley::worker
