#include <cstring>
#include <type_traits>

#include "common/base/status.h"
#include "worker/data/sample_file.h"

namespace medley::worker {
namespace {

class FactWriter {
 public:
  template <typename T>
  requires std::is_arithmetic_v<T>
  void operator()(const T& value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void operator()(const std::string& text) {
    (*this)(static_cast<uint64_t>(text.size()));
    bytes_ += text;
  }
  template <typename T>
  void operator()(const std::vector<T>& values) {
    (*this)(static_cast<uint64_t>(values.size()));
    for (const T& value : values) (*this)(value);
  }
  void operator()(const NumericTransform& column) {
    (*this)(column.log);
    (*this)(column.mean);
    (*this)(column.inverse_deviation);
    (*this)(column.edges);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class FactReader {
 public:
  explicit FactReader(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  requires std::is_arithmetic_v<T>
  void operator()(T& value) {
    if (bytes_.size() < sizeof value) return Fail();
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_.remove_prefix(sizeof value);
  }
  void operator()(std::string& text) {
    const size_t size = Size();
    text = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
  }
  template <typename T>
  void operator()(std::vector<T>& values) {
    values.resize(Size());
    for (T& value : values) (*this)(value);
  }
  void operator()(NumericTransform& column) {
    (*this)(column.log);
    (*this)(column.mean);
    (*this)(column.inverse_deviation);
    (*this)(column.edges);
  }
  bool complete() const { return ok_ && bytes_.empty(); }

 private:
  void Fail() {
    ok_ = false;
    bytes_ = {};
  }
  // For a list: each of its values takes a byte or more.
  size_t Size() {
    uint64_t size = 0;
    (*this)(size);
    if (size > bytes_.size()) Fail();
    return ok_ ? static_cast<size_t>(size) : 0;
  }

  std::string_view bytes_;
  bool ok_ = true;
};

template <typename Facts, typename Use>
void ForEachFact(Facts& facts, Use& use) {
  auto& [transform, bad_rows, digest] = facts;
  auto& [columns, label, header, weight_mean, single_precision] = transform;
  auto& [mean, deviation, classes, log] = label;
  use(bad_rows);
  use(digest);
  use(columns);
  use(header);
  use(weight_mean);
  use(single_precision);
  use(mean);
  use(deviation);
  use(classes);
  use(log);
}

}  // namespace

std::string ToBytes(const SampleFacts& facts) {
  FactWriter writer;
  ForEachFact(facts, writer);
  return writer.Take();
}

absl::StatusOr<SampleFacts> FactsFromBytes(std::string_view bytes) {
  SampleFacts facts;
  FactReader reader(bytes);
  ForEachFact(facts, reader);
  if (!reader.complete()) return base::DataLoss("what is known of the samples is damaged");
  return facts;
}

}  // namespace medley::worker
