// Writes one data file of a checkpoint: streams sections into a temporary file in the same folder, fsyncs and renames
// it.
//
//   MEDLEY_ASSIGN_OR_RETURN(auto writer, CheckpointWriter::Create(volume, folder, header));
//   writer->AddDense(operation, "weight", weights, optimizer_state);
//   MEDLEY_ASSIGN_OR_RETURN(CheckpointFileEntry entry, writer->Finish());  // an element of Checkpointed.files
//
// Not thread-safe; one owner. The final name appears only in Finish; without it the destructor removes the temporary
// file.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "common/base/hasher.h"
#include "worker/checkpoint/files.h"
#include "worker/checkpoint/header.h"
#include "worker/checkpoint/layout.h"

namespace medley::worker {

class CheckpointWriter {
 public:
  // Creates the folder if necessary. The file's name is FileName(header). Errors: those of the file system;
  // InvalidArgument for a folder with a slash.
  static absl::StatusOr<std::unique_ptr<CheckpointWriter>> Create(const Volume& volume, std::string_view folder,
                                                                  const CheckpointFileHeader& header);
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Adds one named span of an operation's dense parameters and its optimizer state (any length; may be empty).
  absl::Status AddDense(int32_t operation, std::string_view name, std::span<const float> weights,
                        std::span<const float> state);
  // Adds rows of a table. `width` is the number of floats per row, weights and optimizer state together;
  // values.size() == keys.size() * width. A table may be added in several pieces of at most 2^28 floats each.
  absl::Status AddRows(int32_t table, int32_t width, std::span<const uint64_t> keys, std::span<const float> values);
  // Fsyncs and renames the file. Call once.
  absl::StatusOr<CheckpointFileEntry> Finish();

 private:
  CheckpointWriter(Files& files, std::filesystem::path path, std::string name, std::string temporary, int fd);
  absl::Status Write(const void* data, size_t bytes);
  absl::Status WriteSection(std::string_view header, std::span<const std::span<const std::byte>> payload);

  Files& files_;
  const std::filesystem::path path_;
  const std::string name_;
  const std::string temporary_;
  int fd_;
  base::Hasher hasher_;
  int64_t bytes_ = 0;
  std::string buffer_;
  absl::Status Flush();
};

}  // namespace medley::worker
