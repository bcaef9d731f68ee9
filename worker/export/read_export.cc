#include "worker/export/read_export.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/document/parse.h"

namespace medley::worker {
namespace {

absl::Status Truncated() { return base::InvalidArgument("the file is truncated"); }

absl::StatusOr<nlohmann::json> ReadHeader(std::ifstream& file) {
  char bytes[sizeof(uint64_t)];
  uint64_t length = 0;
  if (!file.read(bytes, sizeof bytes)) return Truncated();
  std::memcpy(&length, bytes, sizeof length);
  if (length > static_cast<uint64_t>(kMostJsonBytes)) return base::InvalidArgument("the header is too long");
  std::string text(length, '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(length))) return Truncated();
  MEDLEY_ASSIGN_OR_RETURN(nlohmann::json header,
                          document::ParseJson(text, {.bytes = size_t{kMostJsonBytes}, .values = kMostJsonValues}));
  if (!header.is_object()) return base::InvalidArgument("the header is not a JSON object");
  return header;
}

// The offset of a tensor's values behind the header.
absl::StatusOr<int64_t> OffsetOf(const nlohmann::json& header, const ExportedTensor& tensor) {
  const auto found = header.find(tensor.name);
  if (found == header.end() || !found->is_object()) return base::InvalidArgument("there is no tensor {}", tensor.name);
  const nlohmann::json shape = found->value("shape", nlohmann::json());
  const nlohmann::json offsets = found->value("data_offsets", nlohmann::json());
  if (found->value("dtype", nlohmann::json()) != "F32" || shape != nlohmann::json(tensor.shape)) {
    return base::InvalidArgument("tensor {} has another type or shape than {} says", tensor.name, kModelFile);
  }
  const bool whole = offsets.is_array() && offsets.size() == 2 && offsets[0].is_number_unsigned() &&
                     offsets[1].is_number_unsigned() && offsets[1] == offsets[0].get<int64_t>() + tensor.bytes();
  if (!whole) return base::InvalidArgument("the data_offsets of tensor {} are wrong", tensor.name);
  return offsets[0].get<int64_t>();
}

}  // namespace

absl::StatusOr<Weights> ReadWeights(const std::filesystem::path& path, const std::vector<ExportedTensor>& tensors) {
  MEDLEY_RETURN_IF_ERROR(base::CheckRegularFile(path));
  std::ifstream file(path, std::ios::binary);
  if (!file) return base::ErrnoStatus(errno, "opening");
  MEDLEY_ASSIGN_OR_RETURN(const nlohmann::json header, ReadHeader(file));
  const int64_t values = file.tellg();
  file.seekg(0, std::ios::end);
  const int64_t size = file.tellg();
  Weights weights;
  for (const ExportedTensor& tensor : tensors) {
    MEDLEY_ASSIGN_OR_RETURN(const int64_t offset, OffsetOf(header, tensor));
    if (offset > size || tensor.bytes() > size - values - offset) return Truncated();
    std::vector<float>& to = weights[tensor.name];
    to.resize(static_cast<size_t>(tensor.spec.Size()));
    file.seekg(values + offset);
    if (!file.read(reinterpret_cast<char*>(to.data()), tensor.bytes())) return Truncated();
  }
  return weights;
}

absl::StatusOr<LoadedModel> ReadExport(const std::filesystem::path& folder) {
  for (const std::string_view name : {kModelFile, kSchemaFile}) {
    const absl::Status regular = base::CheckRegularFile(folder / name);
    if (absl::IsInvalidArgument(regular)) return regular;
  }
  const auto model = base::ReadFile(folder / kModelFile, kMostJsonBytes);
  if (absl::IsNotFound(model.status())) {
    return base::NotFound("{} is not an exported model: it has no {}", folder.string(), kModelFile);
  }
  MEDLEY_RETURN_IF_ERROR(model.status());
  MEDLEY_ASSIGN_OR_RETURN(const std::string schema, base::ReadFile(folder / kSchemaFile, kMostJsonBytes));
  LoadedModel loaded;
  auto parsed = ParseExportedModel(*model, schema);
  if (!parsed.ok()) return base::Annotate(parsed.status(), folder.string());
  loaded.model = *std::move(parsed);
  loaded.folder = folder;
  if (loaded.model.FromPyTorch()) return loaded;
  auto weights = ReadWeights(folder / kWeightsFile, TensorsOf(loaded.model.graph));
  if (!weights.ok()) return base::Annotate(weights.status(), (folder / kWeightsFile).string());
  loaded.weights = *std::move(weights);
  return loaded;
}

}  // namespace medley::worker
