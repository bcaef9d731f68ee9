#include "worker/checkpoint/writer.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "worker/checkpoint/format.h"

namespace medley::worker {

namespace checkpoint_format {

uint32_t Crc32(uint32_t crc, const void* data, size_t bytes) {
  if (bytes == 0) return crc;  // zlib would return the initial CRC for a null pointer
  return static_cast<uint32_t>(crc32_z(crc, static_cast<const Bytef*>(data), bytes));
}

}  // namespace checkpoint_format

namespace fmtn = checkpoint_format;

namespace {

constexpr size_t kBuffer = size_t{1} << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointWriter>> CheckpointWriter::Create(const Volume& volume,
                                                                           std::string_view folder,
                                                                           const CheckpointFileHeader& identity) {
  if (folder.empty() || folder == "." || folder == ".." || folder.find('/') != std::string_view::npos) {
    return base::InvalidArgument("'{}' is not a plain folder name", folder);
  }
  MEDLEY_ASSIGN_OR_RETURN(const std::string header, EncodeHeader(identity));
  const std::string name = FileName(identity);
  const std::filesystem::path dir = volume / folder;
  MEDLEY_RETURN_IF_ERROR(volume.files().CreateFolder(dir));
  std::string temporary = (dir / name).string() + ".tmp.XXXXXX";
  MEDLEY_ASSIGN_OR_RETURN(const int fd, volume.files().CreateTemporary(temporary));
  std::unique_ptr<CheckpointWriter> writer(new CheckpointWriter(volume.files(), dir / name, name, temporary, fd));
  MEDLEY_RETURN_IF_ERROR(writer->Write(header.data(), header.size()));
  return writer;
}

CheckpointWriter::CheckpointWriter(Files& files, std::filesystem::path path, std::string name, std::string temporary,
                                   int fd)
    : files_(files), path_(std::move(path)), name_(std::move(name)), temporary_(std::move(temporary)), fd_(fd) {}

CheckpointWriter::~CheckpointWriter() {
  if (fd_ < 0) return;
  files_.Close(fd_);
  (void)files_.Remove(temporary_);
}

absl::Status CheckpointWriter::Flush() {
  const absl::Status status = files_.Write(fd_, buffer_);
  buffer_.clear();
  return base::Annotate(status, temporary_);
}

absl::Status CheckpointWriter::Write(const void* data, size_t bytes) {
  if (fd_ < 0) return base::FailedPrecondition("checkpoint file {} is already finished", path_.string());
  hasher_.Add({static_cast<const char*>(data), bytes});
  bytes_ += static_cast<int64_t>(bytes);
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const size_t n = std::min(bytes, kBuffer - buffer_.size());
    buffer_.append(at, n);
    at += n;
    bytes -= n;
    if (buffer_.size() == kBuffer) MEDLEY_RETURN_IF_ERROR(Flush());
  }
  return absl::OkStatus();
}

absl::Status CheckpointWriter::WriteSection(std::string_view header,
                                            std::span<const std::span<const std::byte>> payload) {
  MEDLEY_RETURN_IF_ERROR(Write(header.data(), header.size()));
  uint32_t crc = 0;
  for (std::span<const std::byte> part : payload) {
    crc = fmtn::Crc32(crc, part.data(), part.size());
    MEDLEY_RETURN_IF_ERROR(Write(part.data(), part.size()));
  }
  return Write(&crc, sizeof crc);
}

namespace {

std::string MakeHeader(const fmtn::SectionHeader& section, std::string_view name) {
  std::string header;
  fmtn::Append(header, section);
  const uint32_t crc = fmtn::Crc32(fmtn::Crc32(0, header.data(), header.size()), name.data(), name.size());
  fmtn::Append(header, crc);
  header += name;
  return header;
}

}  // namespace

absl::Status CheckpointWriter::AddDense(int32_t operation, std::string_view name, std::span<const float> weights,
                                        std::span<const float> state) {
  if (name.size() > fmtn::kMaxName || weights.size() > fmtn::kMaxFloats || state.size() > fmtn::kMaxFloats) {
    return base::InvalidArgument("checkpoint: span '{}' of operation {} is too large for a section (2^28 floats)", name,
                                 operation);
  }
  const fmtn::SectionHeader section = {.kind = fmtn::kDense,
                                       .id = operation,
                                       .name_bytes = static_cast<uint32_t>(name.size()),
                                       .count_a = weights.size(),
                                       .count_b = state.size()};
  const std::span<const std::byte> payload[] = {std::as_bytes(weights), std::as_bytes(state)};
  return WriteSection(MakeHeader(section, name), payload);
}

absl::Status CheckpointWriter::AddRows(int32_t table, int32_t width, std::span<const uint64_t> keys,
                                       std::span<const float> values) {
  if (width <= 0 || values.size() != keys.size() * static_cast<size_t>(width) || values.size() > fmtn::kMaxFloats) {
    return base::InvalidArgument("checkpoint: table {}: {} keys of width {} do not match {} values", table, keys.size(),
                                 width, values.size());
  }
  const fmtn::SectionHeader section = {.kind = fmtn::kRows,
                                       .id = table,
                                       .width = static_cast<uint32_t>(width),
                                       .count_a = keys.size(),
                                       .count_b = values.size()};
  const std::span<const std::byte> payload[] = {std::as_bytes(keys), std::as_bytes(values)};
  return WriteSection(MakeHeader(section, ""), payload);
}

absl::StatusOr<CheckpointFileEntry> CheckpointWriter::Finish() {
  std::string end;
  fmtn::Append(end, fmtn::kEnd);
  fmtn::Append(end, fmtn::Crc32(0, end.data(), end.size()));
  MEDLEY_RETURN_IF_ERROR(Write(end.data(), end.size()));
  MEDLEY_RETURN_IF_ERROR(Flush());
  MEDLEY_RETURN_IF_ERROR(base::Annotate(files_.Sync(fd_), temporary_));
  MEDLEY_RETURN_IF_ERROR(files_.Rename(temporary_, path_));
  files_.Close(fd_);
  fd_ = -1;
  return CheckpointFileEntry{name_, bytes_, hasher_.Hex()};
}

}  // namespace medley::worker
