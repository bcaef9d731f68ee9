#include "worker/data/sample_key.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <cerrno>

#include "common/base/hasher.h"
#include "common/base/status.h"
#include "worker/data/sample_file.h"

namespace medley::worker {
namespace {

// Raised when rows are read, or samples are kept, in another way than before.
constexpr int kReader = 1;

int64_t Nanoseconds(const timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

// Texts are quoted by fmt where they are in a list.
std::string Text(const std::vector<std::string>& texts) { return fmt::format("{}", texts); }

std::string Text(const model::SchemaSpec& schema) {
  // All fields: a new one does not compile without a decision here.
  const auto& [task, label_column, label_columns, label_positive, label_classes, label_log, weight_column, categorical,
               numeric, parts, day_first, missing, numeric_buckets, header, names, inputs, whole_numbers, label_count,
               label_storage] = schema;
  const auto& [label_name, categorical_names, numeric_names, label_names, weight_name] = names;
  std::vector<int> part_numbers;
  for (const model::ColumnPart part : parts) part_numbers.push_back(static_cast<int>(part));
  std::vector<int> whole;
  for (const bool number : whole_numbers) whole.push_back(number ? 1 : 0);
  std::string text = fmt::format("{}/{}/{}/{}/{}/{}/{}/{}/{}/{}/{}/{}/{}/{}/", static_cast<int>(task), label_column,
                                 label_columns, label_log, weight_column, categorical, numeric, part_numbers, day_first,
                                 numeric_buckets, header, whole, label_count, inputs.size());
  for (const model::InputSpec& input : inputs) {
    text += fmt::format("{}/{}/{}/{}/", Text({input.name, input.type, input.storage}), input.shape, input.columns,
                        Text(input.column_names));
    text += fmt::format("{:a}/{}/{}/", input.scale, input.mean, input.deviation);
  }
  for (const auto* texts : {&label_classes, &missing, &categorical_names, &numeric_names, &label_names}) {
    text += Text(*texts) + "/";
  }
  return text + Text({label_positive, label_storage, label_name, weight_name});
}

}  // namespace

absl::StatusOr<std::vector<FileIdentity>> IdentitiesOf(const std::vector<std::string>& paths) {
  std::vector<FileIdentity> files;
  for (const std::string& path : paths) {
    struct stat status = {};
    if (stat(path.c_str(), &status) != 0) return base::ErrnoStatus(errno, path);
    files.push_back(
        {path, status.st_dev, status.st_ino, status.st_size, Nanoseconds(status.st_mtim), Nanoseconds(status.st_ctim)});
  }
  return files;
}

std::string SampleKey(const std::vector<FileIdentity>& files, const model::SourceSpec& source,
                      const model::DataSpec& spec, const Transform* transform, int64_t embedding_rows) {
  base::Hasher hasher;
  const auto add = [&](const std::string& text) { hasher.Add(fmt::format("{}:{}", text.size(), text)); };
  add(fmt::format("{}/{}/{}", kReader, embedding_rows, spec.max_bad_rows));
  for (const FileIdentity& file : files) {
    add(file.path);
    add(fmt::format("{}/{}/{}/{}/{}", file.device, file.inode, file.size, file.written, file.changed));
  }
  add(source.format);
  if (source.arrays()) {  // which file is of which input
    add(source.uri);
    for (const auto& [input, uri] : source.files) add(input + "=" + uri);
    add(source.labels);
  }
  add(Text(spec.schema));
  if (transform != nullptr) {
    add("applied");
    add(ToBytes({.transform = *transform, .bad_rows = 0, .digest = ""}));
  } else if (spec.validation) {
    add(fmt::format("fitted/{:a}/{}", spec.validation->fraction, spec.validation->seed));
  }
  return hasher.Hex();
}

}  // namespace medley::worker
