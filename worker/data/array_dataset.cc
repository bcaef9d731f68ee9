#include "worker/data/array_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "common/base/status.h"
#include "common/model/job_spec.h"
#include "worker/data/array_file.h"
#include "worker/data/schema.h"
#include "worker/data/source.h"

namespace medley::worker {
namespace {

int64_t CountOf(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

absl::StatusOr<std::string> PathOf(const std::string& uri, const std::string& root) {
  constexpr std::string_view kScheme = "file://";
  if (uri.starts_with("file:///")) return root + uri.substr(kScheme.size());
  return base::InvalidArgument("data source '{}': the URI must start with file:///", uri);
}

absl::StatusOr<ArraySource> SourceOf(const model::SourceSpec& source, const model::InputSpec& input,
                                     const std::string& root) {
  const auto file = source.files.find(input.name);
  MEDLEY_ASSIGN_OR_RETURN(std::string path, PathOf(file == source.files.end() ? source.uri : file->second, root));
  const std::string storage = !input.storage.empty() ? input.storage : input.type;
  return ArraySource{std::move(path), source.format, ElementNamed(storage), input.shape};
}

// Turns stored numbers into those of the model, as the input says.
class Conversion {
 public:
  explicit Conversion(const model::InputSpec& input) : scale_(input.scale) {
    const size_t channels = input.shape.empty() ? 1 : static_cast<size_t>(input.shape.front());
    const auto at = [](const std::vector<double>& values, size_t i, double otherwise) {
      return values.empty() ? otherwise : values[std::min(i, values.size() - 1)];
    };
    for (size_t i = 0; i < channels; ++i) {
      mean_.push_back(at(input.mean, i, 0));
      deviation_.push_back(at(input.deviation, i, 1));
    }
    per_channel_ = static_cast<size_t>(CountOf(input.shape)) / channels;
  }

  // `index`: of the number within its sample.
  float operator()(double stored, size_t index) const {
    const size_t channel = index / per_channel_;
    return static_cast<float>((stored * scale_ - mean_[channel]) / deviation_[channel]);
  }

 private:
  double scale_;
  size_t per_channel_ = 1;
  std::vector<double> mean_, deviation_;
};

// Checks labels, one after the other.
class LabelCheck {
 public:
  LabelCheck(const model::SchemaSpec& schema, const ArrayOptions& options)
      : schema_(schema), classes_(!options.classes.empty() ? options.classes : schema.label_classes) {}

  absl::Status Next(double value) {
    const auto index = static_cast<size_t>(seen_ % schema_.label_count);
    if (first_.size() <= index) first_.push_back(value);
    differ_ = differ_ || value != first_[index];
    most_ = std::max(most_, value);
    return Check(value, seen_++);
  }

  // All labels were seen. Returns the names of the classes.
  absl::StatusOr<std::vector<std::string>> Finish(const std::string& path, bool test) const {
    if (seen_ == 0) return base::InvalidArgument("{}: the file has no labels", path);
    if (!differ_ && !test) {
      return base::InvalidArgument("{}: the labels of all samples are equal ({}): nothing can be learnt", path,
                                   static_cast<float>(first_.front()));
    }
    std::vector<std::string> classes = classes_;
    if (schema_.task != model::Task::kMultiClass || !classes.empty()) return classes;
    for (int c = 0; c <= static_cast<int>(most_); ++c) classes.push_back(std::to_string(c));
    return classes;
  }

 private:
  absl::Status Check(double value, int64_t index) const {
    const auto refuse = [&](const std::string& wanted) {
      return base::InvalidArgument("label {} is {}, which is not {}", index, value, wanted);
    };
    switch (schema_.task) {
      case model::Task::kBinary:
      case model::Task::kMultiLabel:
        return value == 0 || value == 1 ? absl::OkStatus() : refuse("0 or 1");
      case model::Task::kRegression:
        return std::isfinite(static_cast<float>(value)) ? absl::OkStatus() : refuse("a finite number");
      case model::Task::kMultiClass: {
        const size_t classes = classes_.empty() ? model::kMostClasses : classes_.size();
        if (schema_.label_count > 1 && value == kNoLabel) return absl::OkStatus();
        const bool known = value >= 0 && value < static_cast<double>(classes) && value == std::floor(value);
        return known ? absl::OkStatus() : refuse(fmt::format("the number of one of {} classes", classes));
      }
      case model::Task::kOwnLoss:
        break;
    }
    return absl::OkStatus();
  }

  const model::SchemaSpec& schema_;
  const std::vector<std::string> classes_;
  std::vector<double> first_;  // labels of the first sample
  int64_t seen_ = 0;
  bool differ_ = false;  // from those of the first sample
  double most_ = 0;
};

absl::StatusOr<ArraySource> LabelsOf(const model::SourceSpec& source, const model::SchemaSpec& schema,
                                     const std::string& root) {
  ArraySource labels{.path = {},
                     .format = source.format,
                     .storage = ElementNamed(schema.label_storage),
                     .shape = {schema.label_count}};
  MEDLEY_ASSIGN_OR_RETURN(labels.path, PathOf(source.labels, root));
  const absl::Status fits = CheckArray(labels);
  if (fits.ok()) return labels;
  if (!absl::IsInvalidArgument(fits) || schema.task == model::Task::kBinary) return fits;
  // The file's samples have another shape: says where the number of labels goes.
  return base::InvalidArgument(
      "{}; spec.data.schema.label.count ({}) is the number of labels of a sample, such as its tokens",
      base::Message(fits), schema.label_count);
}

absl::Status CheckInputs(const model::SourceSpec& source, const model::SchemaSpec& schema, const std::string& root) {
  for (const model::InputSpec& input : schema.inputs) {
    MEDLEY_ASSIGN_OR_RETURN(const ArraySource file, SourceOf(source, input, root));
    MEDLEY_RETURN_IF_ERROR(base::Annotate(CheckArray(file), fmt::format("input '{}'", input.name)));
  }
  return absl::OkStatus();
}

absl::Status Stopped(const ArrayOptions& options) {
  if (options.on_piece) options.on_piece();
  return options.stop.stop_requested() ? base::Cancelled("reading the arrays was stopped") : absl::OkStatus();
}

// A file that is read, and where its numbers are in a sample.
struct Part {
  std::string path;
  std::string input;  // the name; empty: the labels
  ArrayReader reader;
  bool integers = false;
  size_t first = 0, count = 1;
  std::optional<Conversion> convert;
  int64_t samples = 0;  // that were read

  // Puts the read numbers of `samples` samples into their place within every row of `width`. `to_model` says what is
  // wrong with a number, or "".
  template <typename T, typename ToModel>
  absl::Status Place(const std::vector<double>& read, int64_t before, size_t width, std::vector<T>& to,
                     const ToModel& to_model) const {
    for (size_t s = 0; s < read.size() / count; ++s) {
      for (size_t i = 0; i < count; ++i) {
        const double stored = read[s * count + i];
        if (const std::string_view wrong = to_model(stored, i, to[s * width + first + i]); !wrong.empty()) {
          return base::InvalidArgument("input '{}': number {} of sample {} is {}, which is {}", input, i,
                                       before + static_cast<int64_t>(s), stored, wrong);
        }
      }
    }
    return absl::OkStatus();
  }
};

class Pieces {
 public:
  Pieces(const model::SourceSpec& source, const model::SchemaSpec& schema, const ArrayOptions& options)
      : source_(source), schema_(schema), options_(options), shape_(ShapeOf(schema)), labels_(schema, options) {}

  absl::Status Open() {
    MEDLEY_RETURN_IF_ERROR(CheckInputs(source_, schema_, options_.root));
    if (!source_.labels.empty()) {
      MEDLEY_ASSIGN_OR_RETURN(ArraySource labels, LabelsOf(source_, schema_, options_.root));
      MEDLEY_ASSIGN_OR_RETURN(ArrayReader reader, ArrayReader::Open(labels));
      parts_.push_back({.path = labels.path, .input = {}, .reader = std::move(reader), .convert = {}});
    }
    size_t ids = 0, numerics = 0;
    for (const model::InputSpec& input : schema_.inputs) {
      MEDLEY_ASSIGN_OR_RETURN(ArraySource file, SourceOf(source_, input, options_.root));
      MEDLEY_ASSIGN_OR_RETURN(ArrayReader reader, ArrayReader::Open(file));
      Part part{.path = file.path, .input = input.name, .reader = std::move(reader), .convert = {}};
      part.integers = input.type != "float32";
      part.count = static_cast<size_t>(CountOf(input.shape));
      if (!part.integers) part.convert.emplace(input);
      size_t& first = part.integers ? ids : numerics;
      part.first = first;
      first += part.count;
      parts_.push_back(std::move(part));
    }
    if (options_.progress == nullptr) return absl::OkStatus();
    for (const Part& part : parts_) options_.progress->Expect(part.reader.bytes());
    return absl::OkStatus();
  }

  // Reads the next samples into `piece`; none at the end.
  absl::Status Next(Batch& piece) {
    const auto numbers = std::max<int64_t>(1, shape_.fields + shape_.numerics + shape_.labels);
    const int64_t most = std::max<int64_t>(1, kPieceNumbers / numbers);
    piece = {.shape = shape_, .samples = 0, .ids = {}, .numerics = {}, .labels = {}, .weights = {}};
    for (Part& part : parts_) {
      auto read = part.reader.Read(most, numbers_);
      if (!read.ok()) return part.input.empty() ? read.status() : Annotated(part, read.status());
      const int64_t before = part.samples;
      part.samples += *read;
      if (&part == &parts_.front()) {
        piece.samples = static_cast<int>(*read);
        Enlarge(piece);
      } else if (*read != piece.samples) {
        return Differ(part);
      }
      MEDLEY_RETURN_IF_ERROR(Put(part, before, piece));
    }
    MEDLEY_RETURN_IF_ERROR(Stopped(options_));
    if (options_.progress != nullptr) Tell(piece.samples);
    return absl::OkStatus();
  }

  const std::string& first_path() const { return parts_.front().path; }
  bool empty() const { return parts_.empty(); }

 private:
  static absl::Status Annotated(const Part& part, const absl::Status& status) {
    return base::Annotate(status, fmt::format("input '{}'", part.input));
  }

  void Tell(int64_t samples) {
    int64_t consumed = 0;
    for (const Part& part : parts_) consumed += part.reader.consumed();
    options_.progress->Read(consumed - consumed_);
    options_.progress->Parsed(samples);
    consumed_ = consumed;
  }

  void Enlarge(Batch& piece) const {
    const auto resize = [&](auto& values, int width) {
      values.resize(static_cast<size_t>(piece.samples) * static_cast<size_t>(width));
    };
    resize(piece.ids, shape_.fields);
    resize(piece.numerics, shape_.numerics);
    resize(piece.labels, shape_.labels);
  }

  absl::Status Put(const Part& part, int64_t before, Batch& piece) {
    if (part.input.empty()) {
      for (size_t i = 0; i < numbers_.size(); ++i) {
        MEDLEY_RETURN_IF_ERROR(labels_.Next(numbers_[i]));
        piece.labels[i] = static_cast<float>(numbers_[i]);
      }
      return absl::OkStatus();
    }
    if (part.integers) {
      return part.Place(numbers_, before, static_cast<size_t>(shape_.fields), piece.ids,
                        [](double stored, size_t, int32_t& value) {
                          if (!(stored >= 0 && stored < 0x1p31) || stored != std::floor(stored)) {
                            return "no whole number from 0 to 2^31 - 1";
                          }
                          value = static_cast<int32_t>(stored);
                          return "";
                        });
    }
    return part.Place(numbers_, before, static_cast<size_t>(shape_.numerics), piece.numerics,
                      [&](double stored, size_t i, float& value) {
                        value = (*part.convert)(stored, i);
                        return std::isfinite(value) ? "" : "not finite";
                      });
  }

  // The part has another number of samples than the first one: counts both to their ends.
  absl::Status Differ(Part& other) {
    Part& first = parts_.front();
    for (Part* part : {&first, &other}) {
      while (true) {
        MEDLEY_ASSIGN_OR_RETURN(const int64_t more, part->reader.Read(kCountedAtOnce, numbers_));
        part->samples += more;
        if (more < kCountedAtOnce) break;
      }
    }
    const absl::Status differ = base::InvalidArgument("{}: has {} samples, but {} has {}", other.path, other.samples,
                                                      first.path, first.samples);
    return Annotated(other, differ);
  }

  static constexpr int64_t kPieceNumbers = int64_t{1} << 18;
  static constexpr int64_t kCountedAtOnce = 64;

  const model::SourceSpec& source_;
  const model::SchemaSpec& schema_;
  const ArrayOptions& options_;
  const SampleShape shape_;
  LabelCheck labels_;
  std::vector<Part> parts_;  // the labels first, if there are any
  std::vector<double> numbers_;
  int64_t consumed_ = 0;  // bytes of the files
};

absl::StatusOr<int64_t> CheckCount(int64_t samples, const std::string& path) {
  if (samples == 0) return base::InvalidArgument("{}: the files have no samples", path);
  if (samples <= std::numeric_limits<int>::max()) return samples;
  return base::InvalidArgument("{}: the file has more than 2^31 - 1 samples", path);
}

}  // namespace

absl::StatusOr<ArrayScan> ScanArrays(const model::SourceSpec& source, const model::SchemaSpec& schema,
                                     const ArrayOptions& options) {
  MEDLEY_RETURN_IF_ERROR(CheckInputs(source, schema, options.root));
  ArrayScan scan;
  if (source.labels.empty()) {
    if (schema.inputs.empty()) return base::InvalidArgument("spec.data.schema.inputs: there are no inputs");
    MEDLEY_ASSIGN_OR_RETURN(const ArraySource input, SourceOf(source, schema.inputs.front(), options.root));
    const auto counted = ReadArray(input, [&](std::span<const double>) { return Stopped(options); });
    if (!counted.ok()) {
      return base::Annotate(counted.status(), fmt::format("input '{}'", schema.inputs.front().name));
    }
    MEDLEY_ASSIGN_OR_RETURN(scan.samples, CheckCount(*counted, input.path));
    scan.classes = !options.classes.empty() ? options.classes : schema.label_classes;
    return scan;
  }
  MEDLEY_ASSIGN_OR_RETURN(const ArraySource labels, LabelsOf(source, schema, options.root));
  LabelCheck check(schema, options);
  MEDLEY_ASSIGN_OR_RETURN(scan.samples, ReadArray(labels, [&](std::span<const double> values) {
                            for (const double value : values) MEDLEY_RETURN_IF_ERROR(check.Next(value));
                            return Stopped(options);
                          }));
  MEDLEY_ASSIGN_OR_RETURN(scan.classes, check.Finish(labels.path, options.test));
  MEDLEY_RETURN_IF_ERROR(CheckCount(scan.samples, labels.path).status());
  return scan;
}

absl::StatusOr<int64_t> ReadArrays(const model::SourceSpec& source, const model::SchemaSpec& schema,
                                   const ArrayOptions& options, absl::FunctionRef<absl::Status(Batch& piece)> use) {
  Pieces pieces(source, schema, options);
  MEDLEY_RETURN_IF_ERROR(pieces.Open());
  int64_t samples = 0;
  for (Batch piece; !pieces.empty();) {
    MEDLEY_RETURN_IF_ERROR(pieces.Next(piece));
    if (piece.samples == 0) break;
    samples += piece.samples;
    MEDLEY_RETURN_IF_ERROR(use(piece));
  }
  return CheckCount(samples, pieces.empty() ? source.uri : pieces.first_path());
}

absl::StatusOr<std::vector<std::string>> ArrayPaths(const model::SourceSpec& source, const model::SchemaSpec& schema,
                                                    const std::string& root) {
  std::vector<std::string> paths;
  const auto add = [&](const std::string& pattern) -> absl::Status {
    MEDLEY_ASSIGN_OR_RETURN(const std::vector<std::string> found, FindFiles(pattern));
    paths.insert(paths.end(), found.begin(), found.end());
    return absl::OkStatus();
  };
  for (const model::InputSpec& input : schema.inputs) {
    MEDLEY_ASSIGN_OR_RETURN(const ArraySource file, SourceOf(source, input, root));
    MEDLEY_RETURN_IF_ERROR(base::Annotate(add(file.path), fmt::format("input '{}'", input.name)));
  }
  if (source.labels.empty()) return paths;
  MEDLEY_ASSIGN_OR_RETURN(const std::string labels, PathOf(source.labels, root));
  MEDLEY_RETURN_IF_ERROR(add(labels));
  return paths;
}

absl::StatusOr<int64_t> CountArraySamples(const model::SourceSpec& source, const model::SchemaSpec& schema,
                                          const std::string& root) {
  int64_t samples = std::numeric_limits<int64_t>::max();
  for (const model::InputSpec& input : schema.inputs) {
    MEDLEY_ASSIGN_OR_RETURN(const ArraySource file, SourceOf(source, input, root));
    MEDLEY_ASSIGN_OR_RETURN(const int64_t count, CountSamples(file));
    samples = std::min(samples, count);
  }
  return schema.inputs.empty() ? 0 : samples;
}

absl::Status CheckArrays(const model::SourceSpec& source, const model::SchemaSpec& schema,
                         const ArrayOptions& options) {
  if (source.labels.empty()) return CheckInputs(source, schema, options.root);
  return ScanArrays(source, schema, options).status();
}

}  // namespace medley::worker
