// The headers of files that hold one array: IDX (the format of MNIST) and NPY (NumPy's). Pure; for untrusted bytes.
//
// Sources: "THE IDX FILE FORMAT", on the page of the MNIST database; NumPy's NEP 1 and numpy.lib.format, versions 1 to
// 3.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace medley::worker {

enum class ElementType { kBool, kUint8, kInt8, kInt16, kInt32, kInt64, kFloat32, kFloat64 };

size_t SizeOf(ElementType type);
const char* NameOf(ElementType type);  // "uint8"
// uint8, int32, int64 or float32; others give uint8.
ElementType ElementNamed(std::string_view name);

struct ArrayHeader {
  ElementType type = ElementType::kUint8;
  bool big_endian = false;
  std::vector<int64_t> sizes;  // each at least 0; the first is the number of samples
  size_t bytes = 0;            // of the header: where the elements begin
};

// So many bytes of a file are enough for its header.
inline constexpr size_t kMostHeaderBytes = size_t{1} << 16;

// `head`: the first kMostHeaderBytes bytes of a file, or all of a shorter one. Errors: InvalidArgument that says what
// is wrong; Unimplemented for element types, byte orders and layouts (Fortran's) that are not read.
absl::StatusOr<ArrayHeader> ParseIdx(std::string_view head);
absl::StatusOr<ArrayHeader> ParseNpy(std::string_view head);

// Element `index` of `bytes`, which hold elements of the type.
double ElementAt(const char* bytes, size_t index, ElementType type, bool big_endian);

}  // namespace medley::worker
