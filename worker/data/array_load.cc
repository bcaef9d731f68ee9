#include "worker/data/array_load.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "common/base/memory_limit.h"
#include "common/base/status.h"
#include "worker/data/array_dataset.h"
#include "worker/data/digest.h"
#include "worker/data/row_split.h"
#include "worker/data/schema.h"

namespace medley::worker {
namespace {

// A few compressed bytes can be more samples than any machine holds.
template <typename T>
absl::Status Reserve(std::vector<T>& values, int64_t samples, int width) {
  // Linux gives more memory than it has, and ends a process that uses it.
  static const auto kMachine = static_cast<size_t>(base::MemoryLimit());
  const size_t size = static_cast<size_t>(samples) * static_cast<size_t>(width);
  try {
    if (size > kMachine / sizeof(T)) throw std::bad_alloc();
    values.reserve(size);
  } catch (const std::exception&) {
    return base::OutOfRange(
        "there is no memory for {} numbers: give the units of the pool more memory, or train on a part of the data",
        size);
  }
  return absl::OkStatus();
}

template <typename T>
void AddTo(std::vector<T>& all, const std::vector<T>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

class ArrayLoad {
 public:
  ArrayLoad(const model::SourceSpec& source, const model::DataSpec& spec, const Transform* transform,
            const LoadOptions& options)
      : source_(source),
        spec_(spec),
        arrays_{.root = options.root,
                .stop = options.stop,
                .on_piece = options.on_piece,
                .progress = options.progress,
                .classes = transform != nullptr ? transform->label.classes : std::vector<std::string>(),
                .test = transform != nullptr},
        aside_(transform == nullptr && spec.validation && spec.validation->fraction > 0) {}

  absl::StatusOr<LoadedSamples> Read(SampleTarget* target) {
    MEDLEY_ASSIGN_OR_RETURN(scan_, ScanArrays(source_, spec_.schema, arrays_));
    arrays_.classes = scan_.classes;
    return target != nullptr ? ReadToFile(*target) : ReadToMemory();
  }

 private:
  absl::StatusOr<LoadedSamples> ReadToMemory() {
    LoadedSamples loaded;
    Batch& rows = loaded.rows[static_cast<size_t>(RowSet::kTraining)];
    rows.shape = ShapeOf(spec_.schema);
    MEDLEY_RETURN_IF_ERROR(Reserve(rows.ids, scan_.samples, rows.shape.fields));
    MEDLEY_RETURN_IF_ERROR(Reserve(rows.numerics, scan_.samples, rows.shape.numerics));
    MEDLEY_RETURN_IF_ERROR(Reserve(rows.labels, scan_.samples, rows.shape.labels));
    MEDLEY_RETURN_IF_ERROR(ForEachPiece([&](Batch& piece) {
      rows.samples += piece.samples;
      AddTo(rows.ids, piece.ids);
      AddTo(rows.numerics, piece.numerics);
      AddTo(rows.labels, piece.labels);
      return absl::OkStatus();
    }));
    loaded.facts.transform.label.classes = scan_.classes;
    loaded.facts.digest = DigestOf(rows, scan_.classes);
    if (!aside_) return loaded;
    Batch& aside = loaded.rows[static_cast<size_t>(RowSet::kAside)];
    aside = TakeValidation(*spec_.validation, rows);
    MEDLEY_RETURN_IF_ERROR(CheckParts(*spec_.validation, rows.samples, aside.samples, source_.uri));
    return loaded;
  }

  absl::StatusOr<LoadedSamples> ReadToFile(SampleTarget& target) {
    SampleCounts counts{.shape = ShapeOf(spec_.schema), .weights = false, .samples = {scan_.samples, 0}};
    if (aside_) {
      for (int64_t row = 0; row < scan_.samples; ++row) {
        counts.samples[1] += IsForValidation(spec_.validation->fraction, spec_.validation->seed, row) ? 1 : 0;
      }
      counts.samples[0] -= counts.samples[1];
      MEDLEY_RETURN_IF_ERROR(CheckParts(*spec_.validation, counts.samples[0], counts.samples[1], source_.uri));
    }
    SampleFacts facts;
    facts.transform.label.classes = scan_.classes;
    facts.digest.resize(kDigestDigits, '0');  // it follows from the samples
    MEDLEY_ASSIGN_OR_RETURN(const std::unique_ptr<SampleFileWriter> writer, target.Create(counts, facts));
    int64_t first = 0;
    const auto append = [&](Batch& piece) -> absl::Status {
      const int64_t begin = std::exchange(first, first + piece.samples);
      if (aside_) {
        const Batch aside = TakeValidation(*spec_.validation, piece, begin);
        MEDLEY_RETURN_IF_ERROR(target.OfDisk(writer->Append(RowSet::kAside, aside)));
      }
      return target.OfDisk(writer->Append(RowSet::kTraining, piece));
    };
    MEDLEY_RETURN_IF_ERROR(ForEachPiece(append));
    auto digest = DigestOf(*writer, aside_ ? &*spec_.validation : nullptr, scan_.classes, arrays_.on_piece);
    MEDLEY_RETURN_IF_ERROR(target.OfDisk(digest.status()));
    facts.digest = *digest;
    writer->SetDigest(*std::move(digest));
    return target.Finish(*writer, std::move(facts));
  }

  // The files may have become shorter or longer since they were scanned.
  absl::Status ForEachPiece(absl::FunctionRef<absl::Status(Batch& piece)> use) const {
    int64_t samples = 0;
    const auto changed = [&] {
      return base::FailedPrecondition("{}: has another number of samples than when it was counted ({})",
                                      source_.labels.empty() ? source_.uri : source_.labels, scan_.samples);
    };
    const auto read = ReadArrays(source_, spec_.schema, arrays_, [&](Batch& piece) -> absl::Status {
      samples += piece.samples;
      return samples > scan_.samples ? changed() : use(piece);
    });
    MEDLEY_RETURN_IF_ERROR(read.status());
    return samples == scan_.samples ? absl::OkStatus() : changed();
  }

  const model::SourceSpec& source_;
  const model::DataSpec& spec_;
  ArrayOptions arrays_;
  const bool aside_;
  ArrayScan scan_;
};

}  // namespace

absl::StatusOr<LoadedSamples> LoadArrays(const model::SourceSpec& source, const model::DataSpec& spec,
                                         const Transform* transform, const LoadOptions& options) {
  SampleSource samples{.name = source.uri.empty() ? source.labels : source.uri, .paths = {}};
  MEDLEY_ASSIGN_OR_RETURN(samples.paths, ArrayPaths(source, spec.schema, options.root));
  return LoadSamples(samples, source, spec, transform, options, [&](SampleTarget* target, const LoadOptions& how) {
    return ArrayLoad(source, spec, transform, how).Read(target);
  });
}

}  // namespace medley::worker
