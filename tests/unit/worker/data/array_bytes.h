// The bytes of files that hold arrays, for tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace medley::worker {

inline std::string IdxBytes(uint8_t type, const std::vector<uint32_t>& sizes, const std::string& elements) {
  std::string bytes = {'\0', '\0', static_cast<char>(type), static_cast<char>(sizes.size())};
  for (const uint32_t size : sizes) {
    for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(size >> shift);
  }
  return bytes + elements;
}

// A header of NPY with any text, padded as NumPy does.
inline std::string NpyText(std::string text, int version = 1) {
  const size_t begin = version == 1 ? 10 : 12;
  text.append(63 - (begin + text.size()) % 64, ' ');
  text += '\n';
  std::string bytes = std::string("\x93NUMPY") + static_cast<char>(version) + '\0';
  for (size_t i = 0; i < begin - 8; ++i) bytes += static_cast<char>(text.size() >> (8 * i));
  return bytes + text;
}

inline std::string NpyBytes(const std::string& type, const std::string& shape, const std::string& elements,
                            const std::string& fortran = "False", int version = 1) {
  return NpyText("{'descr': '" + type + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }", version) +
         elements;
}

template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace medley::worker
