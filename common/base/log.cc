#include "common/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace medley::base::log {
namespace {

// The process has one log. Configure sets it once; it is constant afterwards.
struct Settings {
  std::string component = "medley";
  bool json = false;
  std::shared_ptr<spdlog::logger> logger = [] {
    auto made = std::make_shared<spdlog::logger>("medley", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%v");
    made->set_level(spdlog::level::info);
    made->flush_on(spdlog::level::info);
    return made;
  }();
};

Settings& Get() {
  static Settings settings;
  return settings;
}

spdlog::level::level_enum ToSpdlog(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarn:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
    case Level::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::info;
}

struct Copies {
  base::Mutex mutex;
  std::vector<std::shared_ptr<const Copy::Sink>> sinks ABSL_GUARDED_BY(mutex);
};

Copies& AllCopies() {
  static Copies& copies = *new Copies;  // never destroyed: threads may log until the process ends
  return copies;
}

std::string_view Name(Level level) {
  switch (level) {
    case Level::kDebug:
      return "debug";
    case Level::kInfo:
      return "info";
    case Level::kWarn:
      return "warn";
    case Level::kError:
      return "error";
    case Level::kOff:
      return "off";
  }
  return "info";
}

void AppendJson(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += fmt::format("\\u{:04x}", byte);
    } else {
      out += c;
    }
  }
  out += '"';
}

}  // namespace

Copy::Copy(Sink sink) : sink_(std::make_shared<const Sink>(std::move(sink))) {
  Copies& copies = AllCopies();
  base::MutexLock lock(copies.mutex);
  copies.sinks.push_back(sink_);
}

Copy::~Copy() {
  Copies& copies = AllCopies();
  base::MutexLock lock(copies.mutex);
  std::erase(copies.sinks, sink_);
}

void Configure(std::string_view component, Level level, Format format) {
  Settings& settings = Get();
  settings.component = component;
  settings.json = format == Format::kJson || (format == Format::kAuto && isatty(STDERR_FILENO) == 0);
  settings.logger->set_level(ToSpdlog(level));
}

Level ParseLevel(std::string_view text) {
  for (const Level level : {Level::kDebug, Level::kWarn, Level::kError, Level::kOff}) {
    if (text == Name(level)) return level;
  }
  return Level::kInfo;
}

void Write(Level level, std::string_view message, std::initializer_list<Field> fields) {
  const Settings& settings = Get();
  if (!settings.logger->should_log(ToSpdlog(level))) return;
  std::string line;
  const std::string now = base::FormatTimeMicro(base::SystemClock().Now());
  if (settings.json) {
    line = fmt::format(R"({{"time":"{}","level":"{}","component":)", now, Name(level));
    AppendJson(line, settings.component);
    line += ",\"msg\":";
    AppendJson(line, message);
    for (const auto& [key, value] : fields) {
      line += ',';
      AppendJson(line, key);
      line += ':';
      AppendJson(line, value);
    }
    line += '}';
  } else {
    line = fmt::format("{} {:5} {} {}", now.substr(11, 12), Name(level), settings.component, message);
    for (const auto& [key, value] : fields) line += fmt::format(" {}={}", key, value);
  }
  settings.logger->log(ToSpdlog(level), line);
  Copies& copies = AllCopies();
  base::MutexLock lock(copies.mutex);
  if (copies.sinks.empty()) return;
  std::string text = fmt::format("{} {:5} {}", now, Name(level), message);
  for (const auto& [key, value] : fields) text += fmt::format(" {}={}", key, value);
  for (const auto& sink : copies.sinks) (*sink)(text);
}

}  // namespace medley::base::log
