// Writes the weights of an export twice: all tensors into one safetensors file, and each into a NumPy file.
//
// Values may be written in any order and again, so a table is written while a checkpoint is read, in bounded memory.
// Not thread-safe; one owner. Errors are those of the file system.
//
//   safetensors: u64 length of the header, JSON header, values (https://github.com/huggingface/safetensors)
//   .npy:        magic, version 1.0, header, values (numpy.lib.format)
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "worker/checkpoint/files.h"
#include "worker/export/exported_model.h"

namespace medley::worker {

// The headers of both formats, padded so that values are aligned to 64 bytes. Pure.
std::string SafetensorsHeader(const std::vector<ExportedTensor>& tensors);
std::string NumpyHeader(const ExportedTensor& tensor);

class TensorFiles {
 public:
  // Creates the files in `folder`, which is relative to the volume, and writes their headers.
  static absl::StatusOr<std::unique_ptr<TensorFiles>> Create(const Volume& volume, std::string_view folder,
                                                             std::vector<ExportedTensor> tensors);
  ~TensorFiles();
  TensorFiles(const TensorFiles&) = delete;
  TensorFiles& operator=(const TensorFiles&) = delete;

  // Writes values of a tensor, beginning at its float `first`. first + values.size() is at most the tensor's size.
  absl::Status Write(size_t tensor, int64_t first, std::span<const float> values);
  // Fsyncs the files. Call once, at the end.
  absl::Status Finish();

 private:
  struct Place {
    int npy = -1;            // file descriptor
    int64_t npy_offset = 0;  // of the values
    int64_t offset = 0;      // of the values in the safetensors file
    int64_t size = 0;        // floats
  };
  explicit TensorFiles(Files& files) : files_(files) {}
  absl::StatusOr<int> CreateFile(const std::filesystem::path& path, std::string_view header);

  Files& files_;
  int safetensors_ = -1;
  std::vector<Place> places_;
};

}  // namespace medley::worker
