#include "worker/data/array_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <new>
#include <span>

#include "common/base/memory_limit.h"
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
      return values.empty() ? otherwise : values[values.size() == 1 ? 0 : i];
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

class Loader {
 public:
  Loader(const model::SourceSpec& source, const model::SchemaSpec& schema, const ArrayOptions& options)
      : source_(source), schema_(schema), options_(options) {
    samples_.classes = !options.classes.empty() ? options.classes : schema.label_classes;
    samples_.rows.shape = ShapeOf(schema);
  }

  absl::Status ReadLabels() {
    Batch& rows = samples_.rows;
    if (source_.labels.empty()) return absl::OkStatus();
    ArraySource labels{
        .format = source_.format, .storage = ElementNamed(schema_.label_storage), .shape = {schema_.label_count}};
    MEDLEY_ASSIGN_OR_RETURN(labels.path, PathOf(source_.labels, options_.root));
    if (const absl::Status fits = CheckArray(labels); !fits.ok()) return WithCount(fits);
    MEDLEY_ASSIGN_OR_RETURN(const int64_t samples, ReadArray(labels, [&](std::span<const double> values) {
                              for (const double value : values) {
                                MEDLEY_RETURN_IF_ERROR(CheckLabel(value, rows.labels.size()));
                                rows.labels.push_back(static_cast<float>(value));
                              }
                              return Progress();
                            }));
    MEDLEY_RETURN_IF_ERROR(Count(samples, labels.path));
    return CheckAllLabels(labels.path);
  }

  absl::Status CheckInputs() const {
    for (const model::InputSpec& input : schema_.inputs) {
      MEDLEY_ASSIGN_OR_RETURN(const ArraySource file, SourceOf(source_, input, options_.root));
      MEDLEY_RETURN_IF_ERROR(Annotated(input, CheckArray(file)));
    }
    return absl::OkStatus();
  }

  // Each input is read on its own, into its place within every row.
  absl::Status ReadInputs() {
    size_t ids = 0, numerics = 0;
    for (const model::InputSpec& input : schema_.inputs) {
      MEDLEY_ASSIGN_OR_RETURN(const ArraySource file, SourceOf(source_, input, options_.root));
      const auto count = static_cast<size_t>(CountOf(input.shape));
      const bool integers = input.type != "float32";
      size_t& first = integers ? ids : numerics;
      first_input_ = &input == &schema_.inputs.front();
      MEDLEY_RETURN_IF_ERROR(Annotated(
          input, integers ? ReadIntegers(file, first, count) : ReadFloats(file, Conversion(input), first, count)));
      first += count;
    }
    Batch& rows = samples_.rows;
    if (rows.samples == 0) return base::InvalidArgument("{}: the files have no samples", counted_in_);
    if (source_.labels.empty()) rows.labels.assign(static_cast<size_t>(rows.samples), 0);
    return absl::OkStatus();
  }

  ArraySamples Take() { return std::move(samples_); }

 private:
  absl::Status Progress() const {
    if (options_.on_piece) options_.on_piece();
    return options_.stop.stop_requested() ? base::Cancelled("reading the arrays was stopped") : absl::OkStatus();
  }

  // Says where the number of labels goes, when the file's samples have another shape.
  absl::Status WithCount(const absl::Status& error) const {
    if (!absl::IsInvalidArgument(error) || schema_.task == model::Task::kBinary) return error;
    return base::InvalidArgument(
        "{}; spec.data.schema.label.count ({}) is the number of labels of a sample, such as "
        "its tokens",
        base::Message(error), schema_.label_count);
  }

  // All files have the same number of samples.
  absl::Status Count(int64_t samples, const std::string& path) {
    if (samples > std::numeric_limits<int>::max()) {
      return base::InvalidArgument("{}: the file has more than 2^31 - 1 samples", path);
    }
    int& known = samples_.rows.samples;
    if (counted_ && samples != known) {
      return base::InvalidArgument("{}: has {} samples, but {} has {}", path, samples, counted_in_, known);
    }
    counted_ = true;
    counted_in_ = path;
    known = static_cast<int>(samples);
    return absl::OkStatus();
  }

  static absl::Status Annotated(const model::InputSpec& input, const absl::Status& status) {
    return base::Annotate(status, fmt::format("input '{}'", input.name));
  }

  absl::Status ReadFloats(const ArraySource& file, const Conversion& convert, size_t first, size_t count) {
    Batch& rows = samples_.rows;
    return ReadInto(file, rows.numerics, static_cast<size_t>(rows.shape.numerics), first, count,
                    [&](double stored, size_t i, float& value) {
                      value = convert(stored, i);
                      return std::isfinite(value) ? "" : "not finite";
                    });
  }

  absl::Status ReadIntegers(const ArraySource& file, size_t first, size_t count) {
    Batch& rows = samples_.rows;
    return ReadInto(file, rows.ids, static_cast<size_t>(rows.shape.fields), first, count,
                    [](double stored, size_t, int32_t& value) {
                      if (!(stored >= 0 && stored < 0x1p31) || stored != std::floor(stored)) {
                        return "no whole number from 0 to 2^31 - 1";
                      }
                      value = static_cast<int32_t>(stored);
                      return "";
                    });
  }

  // Reads the `count` numbers of an input into their place within every row of `width`. `convert` says what is wrong
  // with a number, or "".
  template <typename T, typename Convert>
  absl::Status ReadInto(const ArraySource& file, std::vector<T>& to, size_t width, size_t first, size_t count,
                        const Convert& convert) {
    if (counted_) MEDLEY_RETURN_IF_ERROR(Enlarge(to, static_cast<size_t>(samples_.rows.samples) * width));
    size_t sample = 0;
    MEDLEY_ASSIGN_OR_RETURN(
        const int64_t samples, ReadArray(file, [&](std::span<const double> values) {
          const size_t read = values.size() / count;
          MEDLEY_RETURN_IF_ERROR(Enlarge(to, (sample + read) * width));
          for (size_t s = 0; s < read; ++s, ++sample) {
            for (size_t i = 0; i < count; ++i) {
              const double stored = values[s * count + i];
              if (const std::string_view wrong = convert(stored, i, to[sample * width + first + i]); !wrong.empty()) {
                return base::InvalidArgument("number {} of sample {} is {}, which is {}", i, sample, stored, wrong);
              }
            }
          }
          if (options_.progress != nullptr && first_input_) options_.progress->Parsed(static_cast<int64_t>(read));
          return Progress();
        }));
    return Count(samples, file.path);
  }

  // A few compressed bytes can be more samples than any machine holds.
  template <typename T>
  static absl::Status Enlarge(std::vector<T>& values, size_t size) {
    if (values.size() >= size) return absl::OkStatus();
    // Linux gives more memory than it has, and ends a process that uses it.
    static const auto kMachine = static_cast<size_t>(base::MemoryLimit());
    try {
      if (size > kMachine / sizeof(T)) throw std::bad_alloc();
      values.resize(size);
    } catch (const std::exception&) {
      return base::OutOfRange(
          "there is no memory for {} numbers: give the units of the pool more memory, or train on a part of the data",
          size);
    }
    return absl::OkStatus();
  }

  absl::Status CheckLabel(double value, size_t index) const {
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
        const size_t classes = samples_.classes.empty() ? model::kMostClasses : samples_.classes.size();
        if (schema_.label_count > 1 && value == kNoLabel) return absl::OkStatus();
        const bool known = value >= 0 && value < static_cast<double>(classes) && value == std::floor(value);
        return known ? absl::OkStatus() : refuse(fmt::format("the number of one of {} classes", classes));
      }
      case model::Task::kOwnLoss:
        break;
    }
    return absl::OkStatus();
  }

  absl::Status CheckAllLabels(const std::string& path) {
    const std::vector<float>& labels = samples_.rows.labels;
    if (labels.empty()) return base::InvalidArgument("{}: the file has no labels", path);
    const auto count = static_cast<size_t>(schema_.label_count);
    bool differ = false;
    for (size_t i = count; i < labels.size() && !differ; ++i) differ = labels[i] != labels[i % count];
    if (!differ && !options_.test) {
      return base::InvalidArgument("{}: the labels of all samples are equal ({}): nothing can be learnt", path,
                                   labels.front());
    }
    if (schema_.task != model::Task::kMultiClass || !samples_.classes.empty()) return absl::OkStatus();
    const auto most = static_cast<int>(*std::ranges::max_element(labels));
    for (int c = 0; c <= most; ++c) samples_.classes.push_back(std::to_string(c));
    return absl::OkStatus();
  }

  const model::SourceSpec& source_;
  const model::SchemaSpec& schema_;
  const ArrayOptions& options_;
  ArraySamples samples_;
  bool counted_ = false;      // rows.samples is known
  bool first_input_ = false;  // the input that is being read counts the rows
  std::string counted_in_;
};

}  // namespace

absl::StatusOr<ArraySamples> LoadArrays(const model::SourceSpec& source, const model::SchemaSpec& schema,
                                        const ArrayOptions& options) {
  Loader loader(source, schema, options);
  MEDLEY_RETURN_IF_ERROR(loader.CheckInputs());
  MEDLEY_RETURN_IF_ERROR(loader.ReadLabels());
  MEDLEY_RETURN_IF_ERROR(loader.ReadInputs());
  return loader.Take();
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
  Loader loader(source, schema, options);
  MEDLEY_RETURN_IF_ERROR(loader.CheckInputs());
  return loader.ReadLabels();
}

}  // namespace medley::worker
