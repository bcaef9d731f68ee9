#include "worker/data/table_load.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/hash.h"
#include "common/base/status.h"
#include "worker/data/digest.h"
#include "worker/data/feature_encoder.h"
#include "worker/data/memory_estimate.h"
#include "worker/data/row_split.h"
#include "worker/data/sample_key.h"
#include "worker/data/schema.h"
#include "worker/data/source.h"
#include "worker/data/table_fit.h"

namespace medley::worker {
namespace {

constexpr size_t kMostSampleFiles = 8;  // in a folder
// A file that was changed later than so before it was read may be changed again at the same time of its file system.
constexpr int64_t kTimeStep = 50'000'000;  // ns

std::string DigestOfBoth(const std::string& rows, const std::string& validation) {
  return base::HashHex(rows + validation) + base::HashHex(validation + rows);
}

class TableLoad {
 public:
  TableLoad(const model::SourceSpec& source, const model::DataSpec& spec, const Transform* transform,
            const LoadOptions& options)
      : source_(source), spec_(spec), transform_(transform), options_(options) {}

  absl::StatusOr<LoadedTable> Load() {
    MEDLEY_ASSIGN_OR_RETURN(at_, FileOf(source_, options_.root));
    MEDLEY_ASSIGN_OR_RETURN(const std::vector<std::string> paths, FindFiles(at_.path));
    MEDLEY_ASSIGN_OR_RETURN(const std::vector<FileIdentity> files, IdentitiesOf(paths));
    absl::StatusOr<LoadedTable> loaded = LoadFrom(files);
    MEDLEY_RETURN_IF_ERROR(loaded.status());
    MEDLEY_ASSIGN_OR_RETURN(const std::vector<FileIdentity> after, IdentitiesOf(paths));
    for (size_t i = 0; i < files.size(); ++i) {
      if (files[i].size == after[i].size && files[i].written == after[i].written && files[i].inode == after[i].inode) {
        continue;
      }
      return base::FailedPrecondition("{}: the file was changed while it was read; train on a file that nobody writes",
                                      paths[i]);
    }
    return loaded;
  }

 private:
  absl::StatusOr<LoadedTable> LoadFrom(const std::vector<FileIdentity>& files) {
    if (options_.place.folder.empty()) return Read();
    const absl::StatusOr<DataMemory> memory = EstimateMemory(source_, spec_, options_.root);
    if (!memory.ok() || memory->peak <= options_.place.most_in_memory) return Read();
    key_ = SampleKey(files, source_, spec_, transform_, options_.embedding_rows);
    path_ = options_.place.folder / (kSamplesPrefix + key_);
    if (options_.place.shared) {
      MEDLEY_ASSIGN_OR_RETURN(std::optional<LoadedTable> kept, Reuse());
      if (kept) return *std::move(kept);
    }
    std::string why = WhyNoPlace(options_.place.folder, memory->disk);
    if (why.empty()) {
      RemoveUnfinished(options_.place.folder);
      in_file_ = true;
      absl::StatusOr<LoadedTable> loaded = Read(files);
      if (disk_.ok()) return loaded;
      why = base::Message(disk_);
      in_file_ = false;
    }
    Say(fmt::format("the rows of {} are kept in the memory of this process, because {}", at_.path, why));
    MEDLEY_RETURN_IF_ERROR(CheckFitInMemory(*memory, at_.path, CurrentMemoryRoom()));
    return Read(files);
  }

  // The samples that this or another process has kept.
  absl::StatusOr<std::optional<LoadedTable>> Reuse() {
    auto file = SampleFile::Open(path_, key_, options_.stop, options_.on_piece);
    if (file.ok()) {
      TouchSamples(path_);
      return LoadedTable{.facts = (*file)->facts(), .rows = {}, .file = *file};
    }
    if (file.status().code() == absl::StatusCode::kCancelled) return file.status();
    if (file.status().code() == absl::StatusCode::kDataLoss) {
      Say(fmt::format("{}; the rows are read from {} again", base::Message(file.status()), at_.path));
    }
    return std::nullopt;
  }

  absl::StatusOr<TableRows> Parse(const TableOptions& options) {
    const SampleShape shape = ShapeOf(spec_.schema);
    if (!in_file_) {
      MEDLEY_ASSIGN_OR_RETURN(ParsedTable table, ParseTable(at_, spec_.schema, options));
      return TableRows(std::move(table), shape);
    }
    absl::StatusOr<RowSpill> spill = RowSpill::Create(options_.place.folder, shape);
    MEDLEY_RETURN_IF_ERROR(OfDisk(spill.status()));
    MEDLEY_ASSIGN_OR_RETURN(spilled_at_, spill->CreatedAt());
    MEDLEY_ASSIGN_OR_RETURN(ParsedTable table,
                            ParseTableInParts(at_, spec_.schema, options, [&](const TablePiece& piece) {
                              return OfDisk(spill->Append(piece.rows));
                            }));
    return TableRows(std::move(table), shape, std::move(*spill));
  }

  absl::StatusOr<LoadedTable> Read(const std::vector<FileIdentity>& files = {}) {
    const model::SchemaSpec& schema = spec_.schema;
    LabelTransform label;
    label.classes = transform_ != nullptr ? transform_->label.classes : schema.label_classes;
    TableOptions options{.embedding_rows = options_.embedding_rows,
                         .threads = options_.threads,
                         .stop = options_.stop,
                         .on_piece = options_.on_piece,
                         .progress = options_.progress,
                         .classes = label.classes,
                         .header = {},
                         .max_bad_rows = spec_.max_bad_rows};
    if (transform_ != nullptr) options.header = transform_->header;
    MEDLEY_ASSIGN_OR_RETURN(TableRows rows, Parse(options));
    if (schema.task == model::Task::kMultiClass && label.classes.empty()) {
      MEDLEY_ASSIGN_OR_RETURN(label.classes, NumberClasses(rows, at_.path));
    }
    if (schema.task == model::Task::kBinary) {
      MEDLEY_RETURN_IF_ERROR(CheckClasses(rows, at_, schema, options_.stop));
    }
    MEDLEY_RETURN_IF_ERROR(rows.table().status);
    MEDLEY_RETURN_IF_ERROR(PutAside(rows));
    if (transform_ == nullptr && schema.task != model::Task::kOwnLoss) {
      MEDLEY_RETURN_IF_ERROR(CheckDiffer(rows, at_.path, schema, label.classes));
    }
    MEDLEY_RETURN_IF_ERROR(CheckWeights(rows, RowSet::kTraining, at_.path, schema));
    if (aside_) {
      MEDLEY_RETURN_IF_ERROR(CheckWeights(rows, RowSet::kAside, at_.path + " (spec.data.validation)", schema));
    }
    SampleFacts facts;
    facts.bad_rows = rows.table().bad_rows;
    if (transform_ != nullptr) {
      facts.transform = *transform_;
    } else {
      MEDLEY_ASSIGN_OR_RETURN(facts.transform, FitTransform(rows, schema, std::move(label)));
    }
    if (facts.transform.columns.size() != schema.numeric.size()) {
      return base::InvalidArgument("{}: the transform has {} numeric columns, the schema has {}", at_.path,
                                   facts.transform.columns.size(), schema.numeric.size());
    }
    const SampleShape shape = ShapeOf(schema);
    MEDLEY_ASSIGN_OR_RETURN(facts.digest, DigestOf(rows, RowSet::kTraining, shape, facts.transform));
    if (aside_) {
      MEDLEY_ASSIGN_OR_RETURN(const std::string aside, DigestOf(rows, RowSet::kAside, shape, facts.transform));
      facts.digest = DigestOfBoth(facts.digest, aside);
    }
    return in_file_ ? EncodeToFile(rows, std::move(facts), files) : EncodeToMemory(rows, std::move(facts));
  }

  // The rows for validation, when the source is the training data and some are put aside.
  absl::Status PutAside(TableRows& rows) {
    aside_ = transform_ == nullptr && spec_.validation && spec_.validation->fraction > 0;
    if (!aside_) return absl::OkStatus();
    rows.PutAside(*spec_.validation);
    MEDLEY_RETURN_IF_ERROR(CheckParts(*spec_.validation, rows.rows(), rows.rows(RowSet::kAside), at_.path));
    if (spec_.schema.task != model::Task::kBinary) return absl::OkStatus();
    MEDLEY_ASSIGN_OR_RETURN(const bool both, HasBothLabels(rows));
    if (both) return absl::OkStatus();
    return base::InvalidArgument("{}: spec.data.validation puts all rows of one class aside; use another seed",
                                 at_.path);
  }

  // Those for validation first, because the others are freed as they are encoded.
  std::vector<RowSet> Sets() const {
    return aside_ ? std::vector{RowSet::kAside, RowSet::kTraining} : std::vector{RowSet::kTraining};
  }

  absl::StatusOr<LoadedTable> EncodeToMemory(TableRows& rows, SampleFacts facts) const {
    const FeatureEncoder encoder(facts.transform, spec_.schema, options_.embedding_rows);
    LoadedTable loaded;
    for (const RowSet set : Sets()) {
      Batch& batch = loaded.rows[static_cast<size_t>(set)];
      batch.shape = ShapeOf(spec_.schema);
      const auto count = [&](int width) { return static_cast<size_t>(rows.rows(set)) * static_cast<size_t>(width); };
      batch.ids.reserve(count(batch.shape.fields));
      batch.numerics.reserve(count(batch.shape.numerics));
      batch.labels.reserve(count(batch.shape.labels));
      if (HasWeights(spec_.schema)) batch.weights.reserve(count(1));
      MEDLEY_RETURN_IF_ERROR(rows.Take(set, set == RowSet::kTraining, [&](ParsedRows& piece) {
        encoder.Encode(piece, batch);
        return absl::OkStatus();
      }));
    }
    loaded.facts = std::move(facts);
    return loaded;
  }

  absl::StatusOr<LoadedTable> EncodeToFile(TableRows& rows, SampleFacts facts, const std::vector<FileIdentity>& files) {
    const FeatureEncoder encoder(facts.transform, spec_.schema, options_.embedding_rows);
    const SampleCounts counts{.shape = ShapeOf(spec_.schema),
                              .weights = HasWeights(spec_.schema),
                              .samples = {rows.rows(), rows.rows(RowSet::kAside)}};
    auto writer = SampleFileWriter::Create(options_.place.folder, options_.place.shared, counts, facts);
    MEDLEY_RETURN_IF_ERROR(OfDisk(writer.status()));
    for (const RowSet set : Sets()) {
      MEDLEY_RETURN_IF_ERROR(rows.Take(set, false, [&](ParsedRows& piece) -> absl::Status {
        if (options_.stop.stop_requested()) return base::Cancelled("reading {} was stopped", at_.path);
        Batch batch;
        batch.shape = counts.shape;
        encoder.Encode(piece, batch);
        if (options_.on_piece) options_.on_piece();
        return OfDisk((*writer)->Append(set, batch));
      }));
    }
    auto file = (*writer)->Finish(key_, MayShare(files) ? path_ : std::filesystem::path());
    MEDLEY_RETURN_IF_ERROR(OfDisk(file.status()));
    RemoveOldSamples(options_.place.folder, kMostSampleFiles);
    return LoadedTable{.facts = std::move(facts), .rows = {}, .file = *std::move(file)};
  }

  // Whether the identity of the files would be another one if they had been changed since they were identified.
  bool MayShare(const std::vector<FileIdentity>& files) const {
    for (const FileIdentity& file : files) {
      if (file.changed + kTimeStep > spilled_at_) return false;
    }
    std::vector<std::string> paths;
    for (const FileIdentity& file : files) paths.push_back(file.path);
    const auto after = IdentitiesOf(paths);
    return after.ok() && *after == files;
  }

  // Remembers an error of the file of samples: the rows can still be read into memory.
  absl::Status OfDisk(absl::Status status) {
    if (!status.ok()) disk_ = status;
    return status;
  }

  void Say(const std::string& sentence) const {
    if (options_.say) options_.say(sentence);
  }

  const model::SourceSpec& source_;
  const model::DataSpec& spec_;
  const Transform* const transform_;
  const LoadOptions& options_;
  SourceFile at_;
  std::string key_;
  std::filesystem::path path_;
  bool in_file_ = false;
  bool aside_ = false;
  int64_t spilled_at_ = 0;  // ns since 1970
  absl::Status disk_;
};

}  // namespace

absl::StatusOr<LoadedTable> LoadTable(const model::SourceSpec& source, const model::DataSpec& spec,
                                      const Transform* transform, const LoadOptions& options) {
  return TableLoad(source, spec, transform, options).Load();
}

}  // namespace medley::worker
