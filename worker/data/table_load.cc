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

class TableLoad {
 public:
  // Without a target the rows are in memory.
  TableLoad(const SourceFile& at, const model::DataSpec& spec, const Transform* transform, const LoadOptions& options,
            SampleTarget* target)
      : at_(at), spec_(spec), transform_(transform), options_(options), target_(target) {}

  absl::StatusOr<LoadedSamples> Read() {
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
    return target_ != nullptr ? EncodeToFile(rows, std::move(facts)) : EncodeToMemory(rows, std::move(facts));
  }

 private:
  absl::StatusOr<TableRows> Parse(const TableOptions& options) {
    const SampleShape shape = ShapeOf(spec_.schema);
    if (target_ == nullptr) {
      MEDLEY_ASSIGN_OR_RETURN(ParsedTable table, ParseTable(at_, spec_.schema, options));
      return TableRows(std::move(table), shape);
    }
    absl::StatusOr<RowSpill> spill = RowSpill::Create(target_->folder(), shape);
    MEDLEY_RETURN_IF_ERROR(target_->OfDisk(spill.status()));
    MEDLEY_ASSIGN_OR_RETURN(ParsedTable table,
                            ParseTableInParts(at_, spec_.schema, options, [&](const TablePiece& piece) {
                              return target_->OfDisk(spill->Append(piece.rows));
                            }));
    return TableRows(std::move(table), shape, std::move(*spill), options_.on_piece);
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

  absl::StatusOr<LoadedSamples> EncodeToMemory(TableRows& rows, SampleFacts facts) const {
    const FeatureEncoder encoder(facts.transform, spec_.schema, options_.embedding_rows);
    LoadedSamples loaded;
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

  absl::StatusOr<LoadedSamples> EncodeToFile(TableRows& rows, SampleFacts facts) {
    const FeatureEncoder encoder(facts.transform, spec_.schema, options_.embedding_rows);
    const SampleCounts counts{.shape = ShapeOf(spec_.schema),
                              .weights = HasWeights(spec_.schema),
                              .samples = {rows.rows(), rows.rows(RowSet::kAside)}};
    MEDLEY_ASSIGN_OR_RETURN(const std::unique_ptr<SampleFileWriter> writer, target_->Create(counts, facts));
    for (const RowSet set : Sets()) {
      MEDLEY_RETURN_IF_ERROR(rows.Take(set, false, [&](ParsedRows& piece) -> absl::Status {
        if (options_.stop.stop_requested()) return base::Cancelled("reading {} was stopped", at_.path);
        Batch batch;
        batch.shape = counts.shape;
        encoder.Encode(piece, batch);
        return target_->OfDisk(writer->Append(set, batch));
      }));
    }
    return target_->Finish(*writer, std::move(facts));
  }

  const SourceFile& at_;
  const model::DataSpec& spec_;
  const Transform* const transform_;
  const LoadOptions& options_;
  SampleTarget* const target_;
  bool aside_ = false;
};

}  // namespace

absl::StatusOr<LoadedSamples> LoadTable(const model::SourceSpec& source, const model::DataSpec& spec,
                                        const Transform* transform, const LoadOptions& options) {
  MEDLEY_ASSIGN_OR_RETURN(const SourceFile at, FileOf(source, options.root));
  SampleSource samples{.name = at.path, .paths = {}};
  MEDLEY_ASSIGN_OR_RETURN(samples.paths, FindFiles(at.path));
  return LoadSamples(samples, source, spec, transform, options, [&](SampleTarget* target, const LoadOptions& how) {
    return TableLoad(at, spec, transform, how, target).Read();
  });
}

}  // namespace medley::worker
