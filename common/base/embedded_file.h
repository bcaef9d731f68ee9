// Files that are part of a program (cmake/MedleyEmbed.cmake). Immutable, thread-safe.
#pragma once

#include <span>
#include <string_view>

namespace medley::base {

struct EmbeddedFile {
  std::string_view name;  // without folders
  std::string_view bytes;
};

}  // namespace medley::base

// Declares medley_embedded_<name>(), at namespace scope and outside of any namespace.
#define MEDLEY_EMBEDDED(name) std::span<const medley::base::EmbeddedFile> medley_embedded_##name()
