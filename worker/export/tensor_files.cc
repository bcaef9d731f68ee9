#include "worker/export/tensor_files.h"

#include <unistd.h>

#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/base/status.h"

namespace medley::worker {
namespace {

static_assert(std::endian::native == std::endian::little, "both formats are little-endian");

constexpr size_t kAlignedTo = 64;

size_t PaddedTo(size_t size) { return (size + kAlignedTo - 1) / kAlignedTo * kAlignedTo; }

std::string_view BytesOf(std::span<const float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

}  // namespace

std::string SafetensorsHeader(const std::vector<ExportedTensor>& tensors) {
  nlohmann::ordered_json json = {{"__metadata__", {{"format", "medley-model"}}}};
  int64_t offset = 0;
  for (const ExportedTensor& tensor : tensors) {
    json[tensor.name] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, offset + tensor.bytes()}}};
    offset += tensor.bytes();
  }
  std::string text = json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.resize(PaddedTo(text.size() + sizeof(uint64_t)) - sizeof(uint64_t), ' ');
  const uint64_t length = text.size();
  char bytes[sizeof length];
  std::memcpy(bytes, &length, sizeof length);
  return std::string(bytes, sizeof bytes) + text;
}

std::string NumpyHeader(const ExportedTensor& tensor) {
  std::string shape;
  for (const int64_t size : tensor.shape) shape += std::to_string(size) + ", ";
  std::string text = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + shape + "), }";
  constexpr size_t kBefore = 10;  // magic, version, length
  text.resize(PaddedTo(text.size() + 1 + kBefore) - kBefore - 1, ' ');
  text += '\n';
  const auto length = static_cast<uint16_t>(text.size());
  char bytes[sizeof length];
  std::memcpy(bytes, &length, sizeof length);
  return std::string("\x93NUMPY\x01\x00", 8) + std::string(bytes, sizeof bytes) + text;
}

absl::StatusOr<std::unique_ptr<TensorFiles>> TensorFiles::Create(const Volume& volume, std::string_view folder,
                                                                 std::vector<ExportedTensor> tensors) {
  std::unique_ptr<TensorFiles> made(new TensorFiles(volume.files()));
  const std::filesystem::path root = volume / folder;
  MEDLEY_RETURN_IF_ERROR(volume.files().CreateFolder(root / kNumpyFolder));
  const std::string header = SafetensorsHeader(tensors);
  MEDLEY_ASSIGN_OR_RETURN(made->safetensors_, made->CreateFile(root / kWeightsFile, header));
  auto offset = static_cast<int64_t>(header.size());
  for (const ExportedTensor& tensor : tensors) {
    Place& place = made->places_.emplace_back();
    place.offset = offset;
    place.size = tensor.spec.Size();
    offset += tensor.bytes();
    const std::string npy = NumpyHeader(tensor);
    place.npy_offset = static_cast<int64_t>(npy.size());
    MEDLEY_ASSIGN_OR_RETURN(place.npy, made->CreateFile(root / kNumpyFolder / (tensor.name + ".npy"), npy));
  }
  return made;
}

TensorFiles::~TensorFiles() {
  if (safetensors_ >= 0) close(safetensors_);
  for (const Place& place : places_) {
    if (place.npy >= 0) close(place.npy);
  }
}

absl::StatusOr<int> TensorFiles::CreateFile(const std::filesystem::path& path, std::string_view header) {
  MEDLEY_ASSIGN_OR_RETURN(const int fd, files_.Create(path));
  const absl::Status written = files_.WriteAt(fd, 0, header);
  if (written.ok()) return fd;
  close(fd);
  return base::Annotate(written, path.string());
}

absl::Status TensorFiles::Write(size_t tensor, int64_t first, std::span<const float> values) {
  const Place& place = places_.at(tensor);
  MEDLEY_CHECK(first >= 0 && first + std::ssize(values) <= place.size, "the values lie outside of the tensor");
  const int64_t at = first * static_cast<int64_t>(sizeof(float));
  MEDLEY_RETURN_IF_ERROR(files_.WriteAt(safetensors_, place.offset + at, BytesOf(values)));
  return files_.WriteAt(place.npy, place.npy_offset + at, BytesOf(values));
}

absl::Status TensorFiles::Finish() {
  MEDLEY_RETURN_IF_ERROR(files_.Sync(safetensors_));
  for (const Place& place : places_) MEDLEY_RETURN_IF_ERROR(files_.Sync(place.npy));
  return absl::OkStatus();
}

}  // namespace medley::worker
