#include "worker/data/array_format.h"

#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <string>

#include "common/base/status.h"

namespace medley::worker {
namespace {

constexpr size_t kMostAxes = 16;

struct ElementInfo {
  ElementType type;
  const char* name;
  size_t size;
  uint8_t idx;        // its code in IDX files; 0: none
  const char* descr;  // its kind and size in NPY files
};

constexpr std::array kTypes = {
    ElementInfo{ElementType::kBool, "bool", 1, 0, "b1"},
    ElementInfo{ElementType::kUint8, "uint8", 1, 0x08, "u1"},
    ElementInfo{ElementType::kInt8, "int8", 1, 0x09, "i1"},
    ElementInfo{ElementType::kInt16, "int16", 2, 0x0b, "i2"},
    ElementInfo{ElementType::kInt32, "int32", 4, 0x0c, "i4"},
    ElementInfo{ElementType::kInt64, "int64", 8, 0, "i8"},
    ElementInfo{ElementType::kFloat32, "float32", 4, 0x0d, "f4"},
    ElementInfo{ElementType::kFloat64, "float64", 8, 0x0e, "f8"},
};

const ElementInfo& Of(ElementType type) { return kTypes[static_cast<size_t>(type)]; }

template <typename T>
double Read(const char* bytes, size_t index, bool big_endian) {
  std::array<char, sizeof(T)> raw;
  std::memcpy(raw.data(), bytes + index * sizeof(T), sizeof(T));
  if (big_endian != (std::endian::native == std::endian::big)) {
    for (size_t i = 0; i < sizeof(T) / 2; ++i) std::swap(raw[i], raw[sizeof(T) - 1 - i]);
  }
  return static_cast<double>(std::bit_cast<T>(raw));
}

// The text of a header of NPY: the literal of a Python dictionary with three keys, read from left to right.
class NpyText {
 public:
  explicit NpyText(std::string_view text) : rest_(text) {}

  absl::StatusOr<ArrayHeader> Parse() {
    ArrayHeader header;
    bool descr = false, order = false, shape = false;
    MEDLEY_RETURN_IF_ERROR(Expect('{'));
    while (!Take('}')) {
      std::string_view key;
      MEDLEY_RETURN_IF_ERROR(Quoted(key));
      MEDLEY_RETURN_IF_ERROR(Expect(':'));
      if (key == "descr" && !descr) {
        descr = true;
        MEDLEY_RETURN_IF_ERROR(Type(header));
      } else if (key == "fortran_order" && !order) {
        order = true;
        MEDLEY_RETURN_IF_ERROR(Order());
      } else if (key == "shape" && !shape) {
        shape = true;
        MEDLEY_RETURN_IF_ERROR(Shape(header.sizes));
      } else {
        return base::InvalidArgument("the NPY header has the key '{}' twice or does not know it", key);
      }
      if (!Take(',')) {
        MEDLEY_RETURN_IF_ERROR(Expect('}'));
        break;
      }
    }
    Skip();
    if (!rest_.empty()) return base::InvalidArgument("the NPY header goes on after its dictionary");
    if (!descr || !order || !shape) {
      return base::InvalidArgument("the NPY header lacks descr, fortran_order or shape");
    }
    return header;
  }

 private:
  void Skip() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\n')) rest_.remove_prefix(1);
  }

  bool Take(char c) {
    Skip();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  absl::Status Expect(char c) {
    if (Take(c)) return absl::OkStatus();
    return base::InvalidArgument("the NPY header has no '{}' where it must be", c);
  }

  bool TakeWord(std::string_view word) {
    Skip();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  absl::Status Quoted(std::string_view& text) {
    Skip();
    const char quote = rest_.empty() ? '\0' : rest_.front();
    if (quote != '\'' && quote != '"') return base::InvalidArgument("the NPY header has no text where it must be");
    const size_t end = rest_.find(quote, 1);
    if (end == std::string_view::npos) return base::InvalidArgument("the NPY header ends within a text");
    text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return absl::OkStatus();
  }

  absl::Status Type(ArrayHeader& header) {
    Skip();
    if (rest_.starts_with('[')) return base::Unimplemented("NPY files with records of several fields are not read");
    std::string_view descr;
    MEDLEY_RETURN_IF_ERROR(Quoted(descr));
    const char order = descr.empty() ? '\0' : descr.front();
    if (order == '<' || order == '>' || order == '|') {
      header.big_endian = order == '>';
      for (const ElementInfo& named : kTypes) {
        if (descr.substr(1) != named.descr || (order == '|' && named.size > 1)) continue;
        header.type = named.type;
        return absl::OkStatus();
      }
    }
    return base::Unimplemented(
        "the NPY file has elements of type '{}'; bool, uint8, int8 to int64, float32 and float64 are read", descr);
  }

  absl::Status Order() {
    if (TakeWord("False")) return absl::OkStatus();
    if (!TakeWord("True")) return base::InvalidArgument("the NPY header's fortran_order is neither True nor False");
    return base::Unimplemented("the NPY file is in Fortran's order; save numpy.ascontiguousarray(array)");
  }

  absl::Status Shape(std::vector<int64_t>& sizes) {
    MEDLEY_RETURN_IF_ERROR(Expect('('));
    while (!Take(')')) {
      Skip();
      int64_t size = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), size);
      if (error != std::errc() || size < 0 || sizes.size() == kMostAxes) {
        return base::InvalidArgument("the NPY header's shape is no list of at most {} sizes", kMostAxes);
      }
      sizes.push_back(size);
      rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
      if (Take(',')) continue;
      return Expect(')');
    }
    return absl::OkStatus();
  }

  std::string_view rest_;
};

uint64_t Unsigned(std::string_view bytes, bool big_endian) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    value = value << 8 | static_cast<uint8_t>(bytes[big_endian ? i : bytes.size() - 1 - i]);
  }
  return value;
}

// All sizes together do not overflow, also in bytes.
absl::Status CheckSizes(const ArrayHeader& header) {
  if (header.sizes.empty()) return base::InvalidArgument("the array has no axes: the first must be the samples");
  int64_t count = static_cast<int64_t>(SizeOf(header.type));
  for (const int64_t size : header.sizes) {
    if (__builtin_mul_overflow(count, size == 0 ? 1 : size, &count)) {
      return base::InvalidArgument("the array's sizes are absurd: they have more than 2^63 bytes");
    }
  }
  return absl::OkStatus();
}

}  // namespace

size_t SizeOf(ElementType type) { return Of(type).size; }
const char* NameOf(ElementType type) { return Of(type).name; }

ElementType ElementNamed(std::string_view name) {
  for (const ElementInfo& named : kTypes) {
    if (name == named.name) return named.type;
  }
  return ElementType::kUint8;
}

absl::StatusOr<ArrayHeader> ParseIdx(std::string_view head) {
  constexpr size_t kMagic = 4;
  if (head.size() < kMagic || head[0] != 0 || head[1] != 0) {
    return base::InvalidArgument("it is no IDX file: these begin with two zero bytes");
  }
  ArrayHeader header;
  header.big_endian = true;
  const auto code = static_cast<uint8_t>(head[2]);
  const ElementInfo* found = nullptr;
  for (const ElementInfo& named : kTypes) {
    if (named.idx == code && code != 0) found = &named;
  }
  if (found == nullptr) return base::InvalidArgument("the IDX file has the unknown element type {:#04x}", code);
  header.type = found->type;
  const auto axes = static_cast<size_t>(static_cast<uint8_t>(head[3]));
  if (axes == 0 || axes > kMostAxes) return base::InvalidArgument("the IDX file has {} axes", axes);
  header.bytes = kMagic + 4 * axes;
  if (head.size() < header.bytes) return base::InvalidArgument("the IDX file ends within its header");
  for (size_t i = 0; i < axes; ++i) {
    header.sizes.push_back(static_cast<int64_t>(Unsigned(head.substr(kMagic + 4 * i, 4), true)));
  }
  MEDLEY_RETURN_IF_ERROR(CheckSizes(header));
  return header;
}

absl::StatusOr<ArrayHeader> ParseNpy(std::string_view head) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  if (!head.starts_with(kMagic) || head.size() < kMagic.size() + 4) {
    return base::InvalidArgument("it is no NPY file: these begin with \\x93NUMPY");
  }
  const int version = static_cast<uint8_t>(head[kMagic.size()]);
  if (version < 1 || version > 3) {
    return base::InvalidArgument("the NPY file has the format version {}; 1 to 3 are read", version);
  }
  const size_t length_bytes = version == 1 ? 2 : 4;
  const size_t begin = kMagic.size() + 2 + length_bytes;
  if (head.size() < begin) return base::InvalidArgument("the NPY file ends within its header");
  const uint64_t length = Unsigned(head.substr(kMagic.size() + 2, length_bytes), false);
  if (length > kMostHeaderBytes - begin) {
    return base::InvalidArgument("the NPY file's header has {} bytes, at most {} are read", length,
                                 kMostHeaderBytes - begin);
  }
  if (head.size() < begin + length) return base::InvalidArgument("the NPY file ends within its header");
  MEDLEY_ASSIGN_OR_RETURN(ArrayHeader header, NpyText(head.substr(begin, length)).Parse());
  header.bytes = begin + length;
  MEDLEY_RETURN_IF_ERROR(CheckSizes(header));
  return header;
}

double ElementAt(const char* bytes, size_t index, ElementType type, bool big_endian) {
  switch (type) {
    case ElementType::kBool:
    case ElementType::kUint8:
      break;
    case ElementType::kInt8:
      return Read<int8_t>(bytes, index, big_endian);
    case ElementType::kInt16:
      return Read<int16_t>(bytes, index, big_endian);
    case ElementType::kInt32:
      return Read<int32_t>(bytes, index, big_endian);
    case ElementType::kInt64:
      return Read<int64_t>(bytes, index, big_endian);
    case ElementType::kFloat32:
      return static_cast<double>(Read<float>(bytes, index, big_endian));
    case ElementType::kFloat64:
      return Read<double>(bytes, index, big_endian);
  }
  return static_cast<double>(static_cast<uint8_t>(bytes[index]));
}

}  // namespace medley::worker
