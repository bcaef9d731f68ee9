// Makes secrets and writes them to files. Thread-safe.
#pragma once

#include <absl/status/status.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace medley::base {

// A secret that nobody can guess: 256 bits from the operating system, as 64 hexadecimal digits.
std::string RandomToken();

// In a time that depends on the lengths only, so that it tells a caller nothing of the right secret.
bool SameSecret(std::string_view a, std::string_view b);

// As WriteFileAtomic, but only the owner may read the file (mode 0600), from its first byte.
absl::Status WriteSecretFile(const std::filesystem::path& path, std::string_view bytes);

}  // namespace medley::base
