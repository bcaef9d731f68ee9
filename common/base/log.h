// Structured logs on stderr: base::log::Info("plan accepted", {{"job", name}, {"generation", "3"}});
// kAuto writes plain text to a terminal and JSON lines elsewhere. Thread-safe.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace medley::base::log {

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

// Passes each later line that is logged to `sink` too, as text with date and time and without a newline, until it is
// destroyed. `sink` is called in the thread that logs, one call at a time, possibly with locks held: it must neither
// block nor log.
class Copy {
 public:
  using Sink = std::function<void(std::string_view line)>;
  explicit Copy(Sink sink);
  ~Copy();  // waits for a running call
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;

 private:
  const std::shared_ptr<const Sink> sink_;
};

}  // namespace medley::base::log
