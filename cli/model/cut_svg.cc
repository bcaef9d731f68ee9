#include "cli/model/cut_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/model/describe.h"
#include "common/base/xml_text.h"

namespace medley::cli {
namespace {

constexpr double kBoxWidth = 250, kBoxHeight = 64, kGapX = 40, kGapY = 52, kMargin = 30, kTop = 78;
constexpr double kBarWidth = 100, kLeastWidth = 600;
constexpr size_t kMostLetters = 32;

// The end of a long name tells more than its beginning.
std::string Shortened(const std::string& name) {
  return name.size() <= kMostLetters ? name : "..." + name.substr(name.size() - kMostLetters + 3);
}

class Drawing {
 public:
  explicit Drawing(const worker::cut::Cut& cut) : cut_(cut), parameters_(ParameterCount(cut)), flops_(FlopCount(cut)) {
    for (const worker::cut::Operation& operation : cut.operations) {
      size_t level = 0;
      for (const int input : operation.inputs) level = std::max(level, places_[static_cast<size_t>(input)].level + 1);
      Add(level);
    }
    Add(places_.empty() ? 0 : places_.back().level + 1);  // the loss
  }

  std::string Text(const std::string& heading) const {
    const size_t widest = *std::ranges::max_element(widths_);
    const double width = std::max(kLeastWidth, 2 * kMargin + static_cast<double>(widest) * (kBoxWidth + kGapX));
    const double height = kTop + static_cast<double>(widths_.size()) * (kBoxHeight + kGapY);
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
        "height=\"{1:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
        "<text x=\"{2:.0f}\" y=\"28\" font-size=\"16\" fill=\"#222222\">{3}</text>\n"
        "<text x=\"{2:.0f}\" y=\"50\" fill=\"#444444\">{4} parameters, {5} FLOPs a sample. Bars: shares of all "
        "<tspan fill=\"#2c5f9e\">parameters</tspan> and <tspan fill=\"#c0392b\">FLOPs</tspan></text>\n",
        width, height, kMargin, base::XmlText(heading), CountText(parameters_), CountText(flops_));
    for (size_t i = 0; i < cut_.operations.size(); ++i) {
      for (const int input : cut_.operations[i].inputs) out += Arrow(static_cast<size_t>(input), i);
    }
    out += Arrow(cut_.operations.size() - 1, cut_.operations.size());
    for (size_t i = 0; i < cut_.operations.size(); ++i) out += Box(i);
    return out + Frame(cut_.operations.size(), "loss", "Loss", "") + "</g>\n</svg>\n";
  }

 private:
  struct Place {
    size_t level = 0, column = 0;
  };

  void Add(size_t level) {
    if (widths_.size() <= level) widths_.resize(level + 1);
    places_.push_back({level, widths_[level]++});
  }
  double Left(size_t box) const { return kMargin + static_cast<double>(places_[box].column) * (kBoxWidth + kGapX); }
  double TopOf(size_t box) const { return kTop + static_cast<double>(places_[box].level) * (kBoxHeight + kGapY); }

  // The box's group stays open.
  std::string Frame(size_t box, const std::string& name, const std::string& kind, const std::string& title) const {
    return fmt::format(
        "<g transform=\"translate({:.0f} {:.0f})\"><title>{}</title>\n"
        "<rect width=\"{:.0f}\" height=\"{:.0f}\" rx=\"6\" fill=\"#f4f7fb\" stroke=\"#9db8d9\"/>\n"
        "<text x=\"10\" y=\"20\" fill=\"#222222\">{} {}</text>\n"
        "<text x=\"10\" y=\"38\" fill=\"#666666\">{}</text>\n",
        Left(box), TopOf(box), base::XmlText(title), kBoxWidth, kBoxHeight, box, base::XmlText(Shortened(name)),
        base::XmlText(Shortened(kind)));
  }

  std::string Box(size_t box) const {
    const worker::cut::Operation& operation = cut_.operations[box];
    const double parameters = ParameterCount(cut_, operation);
    const std::string title =
        fmt::format("{}: {} calls, {} parameters, {} FLOPs a sample, gives {}", operation.name, operation.nodes.size(),
                    CountText(parameters), CountText(operation.flops), OutputText(cut_, operation));
    return Frame(box, operation.name, operation.kind, title) +
           Bar(10, parameters, parameters_, "#2c5f9e", CountText(parameters)) +
           Bar(130, operation.flops, flops_, "#c0392b", CountText(operation.flops)) + "</g>\n";
  }

  static std::string Bar(double x, double part, double all, const char* color, const std::string& text) {
    return fmt::format(
        "<rect x=\"{0:.0f}\" y=\"46\" width=\"{1:.1f}\" height=\"4\" fill=\"{2}\"/>"
        "<text x=\"{0:.0f}\" y=\"61\" font-size=\"10\" fill=\"{2}\">{3}</text>\n",
        x, all > 0 ? kBarWidth * part / all : 0, color, text);
  }

  std::string Arrow(size_t from, size_t to) const {
    const double x0 = Left(from) + kBoxWidth / 2, y0 = TopOf(from) + kBoxHeight;
    const double x1 = Left(to) + kBoxWidth / 2, y1 = TopOf(to);
    // Past the boxes of levels between, at their side.
    const bool far = places_[to].level > places_[from].level + 1;
    const double bend = far ? kBoxWidth / 2 + kGapX / 2 : 0, middle = (y0 + y1) / 2;
    return fmt::format(
        "<path d=\"M{0:.1f} {1:.1f}C{2:.1f} {3:.1f} {4:.1f} {3:.1f} {5:.1f} {6:.1f}M{5:.1f} {6:.1f}l-4 -7h8z\" "
        "fill=\"none\" "
        "stroke=\"#888888\"/><text x=\"{7:.1f}\" y=\"{8:.1f}\" font-size=\"10\" fill=\"#888888\">{9} B</text>\n",
        x0, y0, x0 + bend, middle, x1 + bend, x1, y1, (x0 + x1) / 2 + bend * 0.75 + 6, middle + 3,
        CountText(sizeof(float) * static_cast<double>(cut_.operations[from].output_floats)));
  }

  const worker::cut::Cut& cut_;
  const double parameters_, flops_;
  std::vector<Place> places_;   // by operation, and the loss
  std::vector<size_t> widths_;  // boxes by level
};

}  // namespace

std::string CutSvg(const std::string& heading, const worker::cut::Cut& cut) { return Drawing(cut).Text(heading); }

}  // namespace medley::cli
