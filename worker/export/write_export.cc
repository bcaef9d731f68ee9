#include "worker/export/write_export.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "common/base/file.h"
#include "common/base/status.h"
#include "worker/checkpoint/reader.h"
#include "worker/export/tensor_files.h"
#include "worker/params/initialize.h"
#include "worker/params/row_lifetime.h"

namespace medley::worker {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kPieceFloats = int64_t{1} << 16;

// Copies the parameters of a checkpoint into the files of an export.
class WeightCopy {
 public:
  WeightCopy(const std::vector<ExportedTensor>& tensors, uint64_t seed, TensorFiles& files)
      : tensors_(tensors), seed_(seed), files_(files), written_(tensors.size()) {}

  // Tables start with the initial values of all rows, because a checkpoint has only those that were used.
  absl::Status WriteInitialRows() {
    std::vector<float> piece;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const ParameterSpec& spec = tensors_[i].spec;
      if (!spec.sparse) continue;
      const int64_t rows_per_piece = std::max<int64_t>(1, kPieceFloats / spec.columns);
      for (int64_t first = 0; first < spec.rows; first += rows_per_piece) {
        const int64_t rows = std::min(rows_per_piece, spec.rows - first);
        piece.resize(static_cast<size_t>(rows * spec.columns));
        for (int64_t row = 0; row < rows; ++row) {
          InitializeRow(
              spec, seed_, first + row,
              std::span(piece).subspan(static_cast<size_t>(row * spec.columns), static_cast<size_t>(spec.columns)));
        }
        MEDLEY_RETURN_IF_ERROR(files_.Write(i, first * spec.columns, piece));
      }
      written_[i] = true;
    }
    return absl::OkStatus();
  }

  absl::Status Dense(int32_t operation, std::string_view name, std::span<const float> weights) {
    const std::optional<size_t> at = Find(operation, name);
    if (!at) return base::DataLoss("the model has no parameter '{}' of operation {}", name, operation);
    const ExportedTensor& tensor = tensors_[*at];
    if (std::ssize(weights) != tensor.spec.Size()) {
      return base::DataLoss("{} has {} floats, the model needs {}", tensor.name, weights.size(), tensor.spec.Size());
    }
    written_[*at] = true;
    return files_.Write(*at, 0, weights);
  }

  // A row is its weights, then its optimizer state, then its use.
  absl::Status Rows(int32_t table, int32_t width, std::span<const uint64_t> keys, std::span<const float> values) {
    const std::optional<size_t> at = FindTable(table);
    if (!at) return base::DataLoss("the model has no table of operation {}", table);
    const ParameterSpec& spec = tensors_[*at].spec;
    if (width < spec.columns) {
      return base::DataLoss("{}: a row has {} floats, the model needs {}", tensors_[*at].name, width, spec.columns);
    }
    std::vector<float> run;  // rows whose keys follow each other are written together
    for (size_t i = 0; i < keys.size(); ++i) {
      if (keys[i] >= static_cast<uint64_t>(spec.rows)) {
        return base::DataLoss("{}: row {} is outside of the table of {} rows", tensors_[*at].name, keys[i], spec.rows);
      }
      const auto row = values.subspan(i * static_cast<size_t>(width), static_cast<size_t>(spec.columns));
      run.insert(run.end(), row.begin(), row.end());
      if (i + 1 < keys.size() && keys[i + 1] == keys[i] + 1 && std::ssize(run) < kPieceFloats) continue;
      const int64_t end = (static_cast<int64_t>(keys[i]) + 1) * spec.columns;
      MEDLEY_RETURN_IF_ERROR(files_.Write(*at, end - std::ssize(run), run));
      run.clear();
    }
    return absl::OkStatus();
  }

  absl::Status CheckComplete() const {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (!written_[i]) return base::DataLoss("the checkpoint lacks the parameter {}", tensors_[i].name);
    }
    return absl::OkStatus();
  }

 private:
  std::optional<size_t> Find(int32_t operation, std::string_view name) const {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (tensors_[i].spec.operation == operation && tensors_[i].spec.name == name) return i;
    }
    return std::nullopt;
  }

  std::optional<size_t> FindTable(int32_t operation) const {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (tensors_[i].spec.operation == operation && tensors_[i].spec.sparse) return i;
    }
    return std::nullopt;
  }

  const std::vector<ExportedTensor>& tensors_;
  const uint64_t seed_;
  TensorFiles& files_;
  std::vector<bool> written_;
};

absl::Status WriteWeights(const Volume& checkpoints, const Volume& volume, const ExportRequest& request) {
  const std::vector<ExportedTensor> tensors = TensorsOf(request.model.graph);
  MEDLEY_ASSIGN_OR_RETURN(const std::unique_ptr<TensorFiles> files,
                          TensorFiles::Create(volume, request.temporary_name, tensors));
  WeightCopy copy(tensors, request.seed, *files);
  MEDLEY_RETURN_IF_ERROR(copy.WriteInitialRows());
  CheckpointHandlers handlers;
  handlers.dense = [&](int32_t operation, std::string_view name, std::span<const float> weights,
                       std::span<const float>) { return copy.Dense(operation, name, weights); };
  const auto& embeddings = request.card.spec.training.embeddings;
  const bool counts = embeddings && embeddings->admit_after > 1;
  handlers.rows = [&](int32_t table, int32_t width, std::span<const uint64_t> keys, std::span<const float> values) {
    if (counts && static_cast<size_t>(width) == kUseFloats) return absl::OkStatus();  // keys that have no row yet
    return copy.Rows(table, width, keys, values);
  };
  MEDLEY_RETURN_IF_ERROR(ReadCheckpoint(checkpoints, request.checkpoint, std::move(handlers)));
  MEDLEY_RETURN_IF_ERROR(copy.CheckComplete());
  return files->Finish();
}

absl::Status WriteFolder(const Volume& checkpoints, const Volume& volume, const ExportRequest& request) {
  const std::filesystem::path folder = volume / request.temporary_name;
  Files& files = volume.files();
  MEDLEY_RETURN_IF_ERROR(files.RemoveFolder(folder));
  MEDLEY_RETURN_IF_ERROR(files.CreateFolder(folder));
  MEDLEY_RETURN_IF_ERROR(WriteWeights(checkpoints, volume, request));
  if (!request.program.bytes.empty()) {
    MEDLEY_RETURN_IF_ERROR(files.WriteAtomic(folder / kProgramFile, request.program.bytes));
  }
  MEDLEY_RETURN_IF_ERROR(files.WriteAtomic(folder / kSchemaFile, SchemaJson(request.model)));
  MEDLEY_RETURN_IF_ERROR(files.WriteAtomic(folder / kCardFile, Markdown(request.card, request.model)));
  if (!request.log.empty()) MEDLEY_RETURN_IF_ERROR(files.WriteAtomic(folder / kLogFile, request.log));
  return files.WriteAtomic(folder / kModelFile, ModelJson(request.model, request.card.origin));
}

// Gives the finished folder its name. A process that was paused before this, while another one published, finds its
// folder removed, and puts the other one's back.
absl::Status Publish(const Volume& volume, const ExportRequest& request) {
  Files& files = volume.files();
  const std::filesystem::path made = volume / request.temporary_name;
  const std::filesystem::path folder = volume / request.folder;
  const std::filesystem::path old = volume / ("old-" + request.temporary_name);
  MEDLEY_RETURN_IF_ERROR(files.RemoveFolder(old));
  const absl::Status moved = files.Rename(folder, old);
  if (!moved.ok() && !absl::IsNotFound(moved)) return moved;
  const absl::Status published = files.Rename(made, folder);
  if (!published.ok() && moved.ok()) (void)files.Rename(old, folder);
  MEDLEY_RETURN_IF_ERROR(published);
  return files.RemoveFolder(old);
}

// Copies a finished folder of this machine into the store. An earlier model is not complete any more from the
// beginning, and the new one is with its last object. Another coordinator may lead meanwhile, so that is looked at
// before each.
absl::Status PublishObjects(const fs::path& made, const Volume& volume, const ExportRequest& request,
                            absl::FunctionRef<absl::Status()> may_publish) {
  Files& files = volume.files();
  const fs::path folder = volume / request.folder;
  std::vector<fs::path> names;
  std::error_code error;
  for (fs::recursive_directory_iterator at(made, error), end; !error && at != end; at.increment(error)) {
    if (at->is_regular_file()) names.push_back(fs::relative(at->path(), made));
  }
  if (error) return base::ErrnoStatus(error.value(), "listing " + made.string());
  std::ranges::sort(names, {}, [](const fs::path& name) { return std::pair(name == kModelFile, name); });
  MEDLEY_RETURN_IF_ERROR(may_publish());
  MEDLEY_RETURN_IF_ERROR(files.RemoveFolder(folder));
  for (const fs::path& name : names) {
    MEDLEY_RETURN_IF_ERROR(may_publish());
    MEDLEY_RETURN_IF_ERROR(CopyFile(files, made / name, folder / name));
  }
  return absl::OkStatus();
}

// The files are made on this machine, because their parts are written in another order than they have.
absl::Status WriteObjects(const Volume& volume, const ExportRequest& request,
                          absl::FunctionRef<absl::Status()> may_publish) {
  MEDLEY_ASSIGN_OR_RETURN(const fs::path disk, base::MakeTempDir("medley-export"));
  absl::Status status = WriteFolder(volume, Volume(disk), request);
  if (status.ok()) status = PublishObjects(disk / request.temporary_name, volume, request, may_publish);
  std::error_code ignored;
  fs::remove_all(disk, ignored);
  return status;
}

}  // namespace

absl::Status WriteExport(const Volume& volume, const ExportRequest& request,
                         absl::FunctionRef<absl::Status()> may_publish) {
  if (volume.of_objects()) {
    return base::Annotate(WriteObjects(volume, request, may_publish),
                          "writing the model into " + (volume / request.folder).string());
  }
  absl::Status status = WriteFolder(volume, volume, request);
  if (status.ok()) status = may_publish();
  if (status.ok()) status = Publish(volume, request);
  if (status.ok()) return status;
  (void)volume.files().RemoveFolder(volume / request.temporary_name);
  return base::Annotate(status, "writing the model into " + (volume / request.folder).string());
}

}  // namespace medley::worker
