// Structured logs on stderr: log::Info("plan accepted", {{"job", name}, {"generation", "3"}});
// kAuto writes plain text to a terminal and JSON lines elsewhere. Thread-safe.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace medley::log {

using Field = std::pair<std::string_view, std::string>;
enum class Level { kDebug, kInfo, kWarn, kError, kOff };
enum class Format { kAuto, kText, kJson };

// Call it once in main, before other threads start. `component` is a field of every line.
void Configure(std::string_view component, Level level, Format format = Format::kAuto);
// Accepts "debug", "info", "warn", "error" and "off"; any other text is kInfo.
Level ParseLevel(std::string_view text);

void Write(Level level, std::string_view message, std::initializer_list<Field> fields);
inline void Debug(std::string_view m, std::initializer_list<Field> f = {}) { Write(Level::kDebug, m, f); }
inline void Info(std::string_view m, std::initializer_list<Field> f = {}) { Write(Level::kInfo, m, f); }
inline void Warn(std::string_view m, std::initializer_list<Field> f = {}) { Write(Level::kWarn, m, f); }
inline void Error(std::string_view m, std::initializer_list<Field> f = {}) { Write(Level::kError, m, f); }

}  // namespace medley::log
