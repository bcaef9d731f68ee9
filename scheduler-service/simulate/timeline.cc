#include "scheduler-service/simulate/timeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/xml_text.h"
#include "common/program/text.h"

namespace medley::sched {
namespace {

using program::Instruction;
using program::Kind;
using program::ListKind;
using program::Program;

constexpr double kMicro = 1e6;

std::string JsonText(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// The category of a kind in the trace. Its first letter is the CSS class of the picture, its colour.
const char* CategoryOf(Kind kind) {
  switch (kind) {
    case Kind::kForward:
      return "forward";
    case Kind::kBackward:
      return "backward";
    case Kind::kUpdate:
    case Kind::kUpdateRows:
      return "update";
    case Kind::kAllReduce:
    case Kind::kShare:
    case Kind::kNorm:
    case Kind::kAverage:
      return "reduction";
    default:
      return "messages";
  }
}

// The operations that an instruction computes, reduces or moves; empty for instructions of a whole step.
std::string OperationsOf(const Program& program, const Instruction& instruction,
                         const std::vector<std::string>& names) {
  const auto name = [&](int operation) {
    return static_cast<size_t>(operation) < names.size() ? names[static_cast<size_t>(operation)]
                                                         : std::to_string(operation);
  };
  const auto value = [&](int index) { return name(program.values[static_cast<size_t>(index)].operation); };
  if (instruction.table >= 0) return name(instruction.table);
  if (instruction.flow >= 0) return value(program.flows[static_cast<size_t>(instruction.flow)].value);
  if (instruction.gradient >= 0) return value(program.gradients[static_cast<size_t>(instruction.gradient)].value);
  return instruction.block >= 0 ? program::BlockName(program, instruction.block, names) : "";
}

constexpr const char* kStyle =
    "<style>\n"
    "svg{background:#ffffff;font-family:sans-serif;font-size:12px}text{fill:#222222}.a{fill:#666666}\n"
    ".g{stroke:#dddddd}.f{fill:#4f8fd6}.b{fill:#2f9e78}.u{fill:#c98a1b}.r{fill:#b0508e}.m{fill:#9aa3ad}\n"
    ".n{fill:#ffffff;font-size:10px;pointer-events:none}\n"
    "@media (prefers-color-scheme:dark){svg{background:#15181c}text{fill:#e6e6e6}.a{fill:#a0a6ad}.g{stroke:#343a41}\n"
    ".f{fill:#5b9be0}.b{fill:#36ae85}.u{fill:#d79a30}.r{fill:#c4649f}.m{fill:#7d8791}.n{fill:#ffffff}}\n"
    "</style>\n";

constexpr double kWidth = 1200, kLeft = 150, kRight = 40, kTop = 46, kBottom = 34;
constexpr size_t kMaxRectangles = 20'000;

std::string Seconds(double value) {
  if (value < 1e-3) return fmt::format("{:.4g} us", value * 1e6);
  if (value < 1) return fmt::format("{:.4g} ms", value * 1e3);
  return fmt::format("{:.4g} s", value);
}

}  // namespace

std::string ChromeTrace(const Program& program, const Simulation& simulation, const std::vector<std::string>& names) {
  std::string out = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  const char* comma = "\n";
  for (size_t d = 0; d < program.devices.size(); ++d) {
    out += fmt::format("{}{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{},\"args\":{{\"name\":{}}}}}", comma, d,
                       JsonText(program.devices[d].id));
    comma = ",\n";
  }
  for (size_t l = 0; l < program.lists.size(); ++l) {
    out += fmt::format("{}{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":{}}}}}",
                       comma, program.lists[l].device, l, JsonText(program::ListName(program, program.lists[l])));
  }
  for (const Span& span : simulation.spans) {
    if (span.end <= span.start) continue;
    const Instruction& instruction = program.instructions[static_cast<size_t>(span.instruction)];
    out += fmt::format(
        "{}{{\"ph\":\"X\",\"name\":{},\"cat\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f},\"args\":{{"
        "\"step\":{},\"operations\":{}",
        comma, JsonText(program::Text(program, instruction, names)), CategoryOf(instruction.kind), instruction.device,
        span.list, span.start * kMicro, (span.end - span.start) * kMicro, span.step,
        JsonText(OperationsOf(program, instruction, names)));
    if (instruction.micro >= 0) out += fmt::format(",\"microBatch\":{}", instruction.micro);
    out += "}}";
  }
  return out + "\n]}\n";
}

std::string TimelineSvg(const Program& program, const Simulation& simulation, const std::vector<std::string>& names) {
  double first = 0, last = 0;
  size_t visible = 0;
  for (const Span& span : simulation.spans) {
    if (span.end <= span.start) continue;
    first = visible == 0 ? span.start : std::min(first, span.start);
    last = std::max(last, span.end);
    ++visible;
  }
  const double length = last > first ? last - first : 1;
  const double devices = static_cast<double>(std::max<size_t>(program.devices.size(), 1));
  const double row = std::clamp(720 / devices, 9.0, 44.0), bar = row * 0.55, low = row * 0.25;
  const double height = kTop + row * devices + kBottom;
  const double plot = kWidth - kLeft - kRight;
  const auto x = [&](double seconds) { return kLeft + (seconds - first) / length * plot; };

  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "role=\"img\" aria-label=\"Timeline of the plan\">\n{2}",
      kWidth, height, kStyle);
  out += fmt::format("<text x=\"{:.0f}\" y=\"20\" font-size=\"15\">{} a step</text>\n", kLeft,
                     Seconds(simulation.seconds_per_step));
  double legend = kLeft + 200;
  for (const auto& [key, name] : {std::pair("f", "forward"), std::pair("b", "backward"), std::pair("u", "update"),
                                  std::pair("r", "reduction"), std::pair("m", "messages, rows")}) {
    out += fmt::format(
        "<rect class=\"{}\" x=\"{:.0f}\" y=\"10\" width=\"12\" height=\"12\"/><text x=\"{:.0f}\" "
        "y=\"20\">{}</text>\n",
        key, legend, legend + 17, name);
    legend += 110;
  }
  for (int tick = 0; tick <= 5; ++tick) {
    const double at = first + length * tick / 5;
    out += fmt::format(
        "<path class=\"g\" d=\"M{0:.1f} {1:.1f}V{2:.1f}\"/><text class=\"a\" x=\"{0:.1f}\" y=\"{3:.1f}\" "
        "text-anchor=\"middle\">{4}</text>\n",
        x(at), kTop - 6, height - kBottom + 4, height - 12, Seconds(at));
  }
  // With many devices, every n-th is named, so that names do not overlap.
  const size_t every = row >= 12 ? 1 : 2;
  for (size_t d = 0; d < program.devices.size(); d += every) {
    std::string name = program.devices[d].id;
    if (name.size() > 20) name = name.substr(0, 18) + "..";
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", kLeft - 8,
                       kTop + row * static_cast<double>(d) + std::min(row - 1, row / 2 + 4), base::XmlText(name));
  }
  const size_t stride = visible / kMaxRectangles + 1;  // of very long timelines, every n-th
  size_t index = 0;
  for (const Span& span : simulation.spans) {
    if (span.end <= span.start || index++ % stride != 0) continue;
    const Instruction& instruction = program.instructions[static_cast<size_t>(span.instruction)];
    const ListKind kind = program.lists[static_cast<size_t>(span.list)].kind;
    const bool upper = kind == ListKind::kCompute || kind == ListKind::kServer;
    const double top = kTop + row * instruction.device + (upper ? 1 : 1 + bar);
    const double left = x(span.start), width = std::max(x(span.end) - left, 0.3);
    const std::string name = program::Text(program, instruction, names);
    out += fmt::format(
        "<rect class=\"{}\" x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\"><title>{}, step "
        "{}, {}</title></rect>\n",
        CategoryOf(instruction.kind)[0], left, top, width, upper ? bar : low, base::XmlText(name), span.step,
        Seconds(span.end - span.start));
    if (upper && bar >= 12 && width > 6.0 * static_cast<double>(name.size()) + 4) {
      out += fmt::format("<text class=\"n\" x=\"{:.2f}\" y=\"{:.1f}\">{}</text>\n", left + 3, top + bar / 2 + 4,
                         base::XmlText(name));
    }
  }
  return out + "</svg>\n";
}

}  // namespace medley::sched
