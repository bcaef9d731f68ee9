// Files that the build links into a program (cmake/MedleyEmbed.cmake). Immutable, thread-safe.
#pragma once

#include <span>
#include <string_view>

namespace medley::base {

struct EmbeddedFile {
  std::string_view name;  // file name without its folder
  std::string_view bytes;
};

}  // namespace medley::base

// Declares the function medley_embedded_<name>(). Use it at global scope, outside any namespace.
#define MEDLEY_EMBEDDED(name) std::span<const medley::base::EmbeddedFile> medley_embedded_##name()
