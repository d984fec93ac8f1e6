// SPDX-License-Identifier: Apache-2.0
// Picture of one panel: logarithmic axes, sizes in powers of two, values in powers of ten with lines at 2 and 5
// between.
//
//   title
//   y unit ┌──────────────┐  ── legend
//          │  curves      │  ┄┄ (in place is dashed)
//          └──────────────┘
//             size
#include "svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>

namespace hocket::perf {
namespace {

constexpr double kPanelWidth = 640;
constexpr double kPanelHeight = 360;
constexpr double kLeft = 80;
constexpr double kTop = 84;
constexpr double kBetween = 100;  // between the panels: the first one's size axis and the second one's title
constexpr double kBottom = 60;
constexpr double kLegendWidth = 300;
constexpr double kLegendRow = 20;

struct Point {
  double x;
  double y;
};

struct Curve {
  std::string name;
  std::string color;
  std::string dash;  // empty: solid
  std::vector<Point> points;
};

// A range of a logarithmic axis, in powers of its base.
struct Axis {
  double base;
  double low;
  double high;

  double place(double value) const { return (std::log(value) / std::log(base) - low) / (high - low); }
};

// Told apart by people with any colour vision (Okabe and Ito), then darker ones for long lists.
std::string color(std::size_t index) {
  constexpr auto kColors = std::to_array<const char*>({"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9",
                                                       "#000000", "#7f3c8d", "#80ba5a", "#a5473a", "#5f6c7b", "#b8a900",
                                                       "#00305f", "#6b3e00", "#1b4d3e"});
  return kColors[index % kColors.size()];
}

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string size_text(double bytes) {
  constexpr auto kUnits = std::to_array<const char*>({"", "K", "M", "G", "T"});
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{:g}{}", bytes, kUnits[unit]);
}

// ---- From results to curves ----

// One name per result: what tells the results of one curve from the others'. Type, operation and root only where they
// vary.
std::vector<std::string> curve_names(const std::vector<Result>& results) {
  std::set<hocketDataType_t> types;
  std::set<Op> ops;
  std::set<int> roots;
  for (const Result& r : results) {
    types.insert(r.what.type->type);
    if (r.what.op != Op::none) ops.insert(r.what.op);
    if (r.what.root >= 0) roots.insert(r.what.root);
  }
  std::vector<std::string> names;
  for (const Result& r : results) {
    std::string name(r.what.collective->name);
    if (types.size() > 1) name += fmt::format(" {}", r.what.type->name);
    if (ops.size() > 1 && r.what.op != Op::none) name += fmt::format(" {}", op_name(r.what.op));
    if (roots.size() > 1 && r.what.root >= 0) name += fmt::format(" root {}", r.what.root);
    names.push_back(name);
  }
  return names;
}

// `figure` picks the value of a placement. Two curves per name; a logarithmic axis has no place for 0.
template <class Figure>
std::vector<Curve> make_curves(const std::vector<Result>& results, Figure figure) {
  const std::vector<std::string> names = curve_names(results);
  std::vector<Curve> curves;
  std::map<std::string, std::size_t> first_curve;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto [at, is_new] = first_curve.try_emplace(names[i], curves.size());
    if (is_new) {
      const std::string its_color = color(first_curve.size() - 1);
      curves.push_back({names[i], its_color, "", {}});
      curves.push_back({names[i] + ", in place", its_color, "6 4", {}});
    }
    const auto add = [&](Curve& curve, double value) {
      if (results[i].bytes > 0 && value > 0) curve.points.push_back({static_cast<double>(results[i].bytes), value});
    };
    add(curves[at->second], figure(results[i].out_of_place));
    if (results[i].in_place) add(curves[at->second + 1], figure(*results[i].in_place));
  }
  std::erase_if(curves, [](const Curve& curve) { return curve.points.empty(); });
  return curves;
}

void add_limit_curves(const std::vector<Result>& results, std::vector<Curve>& curves) {
  const auto add = [&](const char* name, const char* dash, auto field) {
    Curve curve{name, "#888888", dash, {}};
    for (const Result& r : results) {
      if (r.limit && field(*r.limit)) curve.points.push_back({static_cast<double>(r.bytes), *field(*r.limit)});
    }
    std::sort(curve.points.begin(), curve.points.end(), [](const Point& a, const Point& b) { return a.x < b.x; });
    if (!curve.points.empty()) curves.push_back(curve);
  };
  add("limit of two cores, plain stores", "2 3", [](const Limit& l) { return l.plain_gbyte_s; });
  add("limit of two cores, streaming stores", "8 3 2 3", [](const Limit& l) { return l.streaming_gbyte_s; });
}

// ---- Drawing ----

template <class Coordinate>
Axis make_axis(double base, const std::vector<Curve>& curves, Coordinate coordinate) {
  double low = 1e300;
  double high = 0;
  for (const Curve& curve : curves) {
    for (const Point& point : curve.points) {
      low = std::min(low, coordinate(point));
      high = std::max(high, coordinate(point));
    }
  }
  if (high == 0) low = high = 1;
  Axis axis{base, std::floor(std::log(low) / std::log(base)), std::ceil(std::log(high) / std::log(base))};
  if (axis.low == axis.high) axis.high += 1;
  return axis;
}

std::string line(double x1, double y1, double x2, double y2, const char* stroke) {
  return fmt::format("<line x1='{:.1f}' y1='{:.1f}' x2='{:.1f}' y2='{:.1f}' stroke='{}'/>\n", x1, y1, x2, y2, stroke);
}

std::string text(double x, double y, const char* anchor, const std::string& words, const char* extra = "") {
  return fmt::format("<text x='{:.1f}' y='{:.1f}' text-anchor='{}' {}>{}</text>\n", x, y, anchor, extra,
                     escaped(words));
}

std::string draw_size_ticks(const Axis& axis, double top) {
  std::string out;
  const int step = std::max(1, static_cast<int>(std::ceil((axis.high - axis.low) / 16)));
  for (int power = static_cast<int>(axis.low); power <= static_cast<int>(axis.high); power += step) {
    const double value = std::pow(axis.base, power);
    const double x = kLeft + axis.place(value) * kPanelWidth;
    out += line(x, top, x, top + kPanelHeight, "#e8e8e8");
    out += text(x, top + kPanelHeight + 18, "middle", size_text(value));
  }
  return out;
}

std::string draw_value_ticks(const Axis& axis, double top) {
  std::string out;
  const bool crowded = axis.high - axis.low > 3;  // then only powers of ten get a label
  for (int power = static_cast<int>(axis.low); power <= static_cast<int>(axis.high); ++power) {
    for (int digit : {1, 2, 5}) {
      const double value = digit * std::pow(axis.base, power);
      if (axis.place(value) > 1.0001) break;
      const double y = top + (1 - axis.place(value)) * kPanelHeight;
      out += line(kLeft, y, kLeft + kPanelWidth, y, digit == 1 ? "#d0d0d0" : "#efefef");
      if (digit == 1 || !crowded) out += text(kLeft - 8, y + 4, "end", fmt::format("{:g}", value));
    }
  }
  return out;
}

std::string draw_curve(const Curve& curve, const Axis& x_axis, const Axis& y_axis, double top) {
  std::string points;
  std::string marks;
  for (const Point& point : curve.points) {
    const double x = kLeft + x_axis.place(point.x) * kPanelWidth;
    const double y = top + (1 - y_axis.place(point.y)) * kPanelHeight;
    points += fmt::format("{:.1f},{:.1f} ", x, y);
    marks += fmt::format("<circle cx='{:.1f}' cy='{:.1f}' r='2.2' fill='{}'/>\n", x, y, curve.color);
  }
  return fmt::format("<polyline points='{}' fill='none' stroke='{}' stroke-width='2' stroke-dasharray='{}'/>\n", points,
                     curve.color, curve.dash.empty() ? "none" : curve.dash) +
         marks;
}

std::string draw_legend(const std::vector<Curve>& curves, double top) {
  std::string out;
  const double x = kLeft + kPanelWidth + 20;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const double y = top + 10 + kLegendRow * static_cast<double>(i);
    out += fmt::format(
        "<line x1='{0:.1f}' y1='{1:.1f}' x2='{2:.1f}' y2='{1:.1f}' stroke='{3}' stroke-width='2' "
        "stroke-dasharray='{4}'/>\n",
        x, y, x + 32, curves[i].color, curves[i].dash.empty() ? "none" : curves[i].dash);
    out += text(x + 40, y + 4, "start", curves[i].name);
  }
  return out;
}

std::string draw_panel(const std::string& title, const std::string& unit, const std::vector<Curve>& curves,
                       double top) {
  const Axis x_axis = make_axis(2, curves, [](const Point& p) { return p.x; });
  const Axis y_axis = make_axis(10, curves, [](const Point& p) { return p.y; });
  std::string out = text(kLeft, top - 12, "start", title, "font-weight='bold' font-size='15'");
  out += draw_size_ticks(x_axis, top) + draw_value_ticks(y_axis, top);
  out += fmt::format("<rect x='{}' y='{}' width='{}' height='{}' fill='none' stroke='#808080'/>\n", kLeft, top,
                     kPanelWidth, kPanelHeight);
  for (const Curve& curve : curves) out += draw_curve(curve, x_axis, y_axis, top);
  out += text(kLeft + kPanelWidth / 2, top + kPanelHeight + 38, "middle", "size (bytes)");
  out += fmt::format("<text transform='translate(22 {}) rotate(-90)' text-anchor='middle'>{}</text>\n",
                     top + kPanelHeight / 2, unit);
  return out + draw_legend(curves, top);
}

}  // namespace

std::string to_svg(const std::vector<Result>& results, const std::string& subtitle) {
  std::vector<Curve> bandwidth = make_curves(results, [](const Figures& f) { return f.busbw_gbyte_s; });
  add_limit_curves(results, bandwidth);
  const std::vector<Curve> latency = make_curves(results, [](const Figures& f) { return f.time_us; });
  const double legend = kLegendRow * static_cast<double>(std::max(bandwidth.size(), latency.size())) + 20;
  const double panel = std::max(kPanelHeight, legend - kBetween + 40);
  const double second = kTop + panel + kBetween;
  const double width = kLeft + kPanelWidth + kLegendWidth + 20;
  const double height = second + std::max(kPanelHeight, legend) + kBottom;
  std::string out = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {0} {1}' width='{0}' "
      "height='{1}' font-family='sans-serif' font-size='12' fill='#202020'>\n"
      "<rect width='100%' height='100%' fill='white'/>\n",
      width, height);
  out += text(kLeft, 28, "start", "hocket-perf", "font-weight='bold' font-size='18'");
  out += text(kLeft, 48, "start", subtitle, "fill='#606060'");
  out += draw_panel("Bus bandwidth", "GB/s", bandwidth, kTop);
  out += draw_panel("Time per call, median", "µs", latency, second);
  return out + "</svg>\n";
}

}  // namespace hocket::perf
