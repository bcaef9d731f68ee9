#include "worker/data/sample_key.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <concepts>
#include <type_traits>

#include "common/base/hasher.h"
#include "common/base/status.h"
#include "worker/data/sample_file.h"

namespace medley::worker {
namespace {

// Raised when rows are read, or samples are kept, in another way than before.
constexpr int kReader = 2;

int64_t Nanoseconds(const timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

// Adds members of any type to a text, each so that two values have two texts.
struct Writer {
  std::string& text;

  void operator()(const std::string& value) { text += fmt::format("{}:{}/", value.size(), value); }
  void operator()(double value) { text += fmt::format("{:a}/", value); }
  template <typename Number>
  requires std::integral<Number> || std::is_enum_v<Number>
  void operator()(Number value) { text += fmt::format("{}/", static_cast<int64_t>(value)); }
  template <typename Item>
  void operator()(const std::vector<Item>& values) {
    (*this)(values.size());
    for (const auto& value : values) (*this)(static_cast<const Item&>(value));
  }
  void operator()(const model::ColumnNames& names) {
    // All fields: a new one does not compile without a place here.
    const auto& [label, categorical, numeric, labels, weight] = names;
    for (const auto* list : {&categorical, &numeric, &labels}) (*this)(*list);
    for (const auto* name : {&label, &weight}) (*this)(*name);
  }
  void operator()(const std::vector<model::InputSpec>& inputs) {
    (*this)(inputs.size());
    for (const model::InputSpec& input : inputs) ForEachMember(input, *this);
  }
};

std::string Text(const model::SchemaSpec& schema) {
  std::string text;
  ForEachMember(schema, Writer{text});
  return text;
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
