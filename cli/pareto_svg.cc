#include "cli/pareto_svg.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "common/base/quantity.h"
#include "common/base/xml_text.h"

namespace medley::cli {
namespace {

constexpr double kWidth = 760, kHeight = 460;
constexpr double kLeft = 90, kRight = 30, kTop = 48, kBottom = 64;

// Uses as many decimals as are needed to distinguish adjacent ticks.
std::string Label(double value, double step) {
  const int digits = step >= 1 ? 0 : static_cast<int>(std::ceil(-std::log10(step) - 1e-9));
  return base::FormatDecimal(value, digits);
}

class Plot {
 public:
  explicit Plot(const std::vector<PlotPoint>& points) : points_(points) {
    double least_x = 0, most_x = 1, least_y = 0, most_y = 1;
    if (!points.empty()) {
      least_x = points.front().throughput;
      most_x = points.back().throughput;
      least_y = points.front().usd;
      most_y = points.back().usd;
    }
    x_ticks_ = Ticks(least_x, most_x, 7);
    y_ticks_ = Ticks(least_y, most_y, 6);
  }

  std::string Text(const std::string& heading) const {
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
        "width=\"{0:.0f}\" "
        "height=\"{1:.0f}\" font-family=\"sans-serif\" font-size=\"13\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
        "<text x=\"{2:.0f}\" y=\"28\" font-size=\"16\" fill=\"#222222\">{3}</text>\n",
        kWidth, kHeight, kLeft, base::XmlText(heading));
    out += Axes() + Staircase();
    for (const PlotPoint& point : points_) out += Dot(point);
    return out + "</svg>\n";
  }

 private:
  static double Share(double value, const std::vector<double>& ticks) {
    return (value - ticks.front()) / (ticks.back() - ticks.front());
  }
  double X(double throughput) const { return kLeft + Share(throughput, x_ticks_) * (kWidth - kLeft - kRight); }
  double Y(double usd) const { return kHeight - kBottom - Share(usd, y_ticks_) * (kHeight - kTop - kBottom); }

  std::string Axes() const {
    std::string out = "<g stroke=\"#dddddd\" fill=\"none\">\n";
    for (const double x : x_ticks_) {
      out += fmt::format("<path d=\"M{0:.1f} {1:.1f}V{2:.1f}\"/>\n", X(x), kTop, kHeight - kBottom);
    }
    for (const double y : y_ticks_) {
      out += fmt::format("<path d=\"M{0:.1f} {1:.1f}H{2:.1f}\"/>\n", kLeft, Y(y), kWidth - kRight);
    }
    out += fmt::format("<path stroke=\"#444444\" d=\"M{0:.1f} {1:.1f}V{2:.1f}H{3:.1f}\"/>\n</g>\n", kLeft, kTop,
                       kHeight - kBottom, kWidth - kRight);
    out += "<g fill=\"#444444\" text-anchor=\"middle\">\n";
    for (const double x : x_ticks_) {
      out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", X(x), kHeight - kBottom + 18,
                         Label(x, x_ticks_[1] - x_ticks_[0]));
    }
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">throughput (samples/s)</text>\n</g>\n",
                       (kLeft + kWidth - kRight) / 2, kHeight - 20);
    out += "<g fill=\"#444444\" text-anchor=\"end\">\n";
    for (const double y : y_ticks_) {
      out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", kLeft - 8, Y(y) + 4,
                         Label(y, y_ticks_[1] - y_ticks_[0]));
    }
    return out + fmt::format(
                     "</g>\n<text fill=\"#444444\" text-anchor=\"middle\" transform=\"translate(20 "
                     "{:.1f}) "
                     "rotate(-90)\">cost of the whole job (USD)</text>\n",
                     (kTop + kHeight - kBottom) / 2);
  }

  // The least cost of a plan with at least each throughput.
  std::string Staircase() const {
    if (points_.size() < 2) return "";
    std::string path = fmt::format("M{:.1f} {:.1f}", X(points_[0].throughput), Y(points_[0].usd));
    for (size_t i = 1; i < points_.size(); ++i) {
      path += fmt::format("V{:.1f}H{:.1f}", Y(points_[i].usd), X(points_[i].throughput));
    }
    return "<path fill=\"none\" stroke=\"#9db8d9\" stroke-width=\"1.5\" d=\"" + path + "\"/>\n";
  }

  std::string Dot(const PlotPoint& point) const {
    const double x = X(point.throughput), y = Y(point.usd);
    std::string out =
        fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\"><title>{}</title></circle>\n", x, y,
                    point.marked ? 6 : 4, point.marked ? "#c0392b" : "#2c5f9e", base::XmlText(point.title));
    if (point.marked) {
      out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"#c0392b\">cheapest</text>\n", x + 10, y - 8);
    }
    return out;
  }

  const std::vector<PlotPoint>& points_;
  std::vector<double> x_ticks_, y_ticks_;
};

}  // namespace

std::vector<double> Ticks(double low, double high, int wanted) {
  if (!(high > low)) {  // only one value: widen the range around it
    const double around = low == 0 ? 1 : std::abs(low) / 2;
    low -= around;
    high += around;
  }
  const double rough = (high - low) / wanted;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = power;
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    step = factor * power;
    if (step >= rough) break;
  }
  std::vector<double> ticks;
  const double first = std::floor(low / step + 1e-9), last = std::ceil(high / step - 1e-9);
  for (double i = first; i <= last; ++i) ticks.push_back(i * step);
  return ticks;
}

std::string ParetoSvg(const std::string& heading, const std::vector<PlotPoint>& points) {
  return Plot(points).Text(heading);
}

}  // namespace medley::cli
