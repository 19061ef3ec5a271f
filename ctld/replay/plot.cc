// Draws SVG from plain rectangles, polygons and text; all styles are in this file.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "common/text/text.h"
#include "ctld/replay/report.h"

namespace gantry::replay {
namespace {

constexpr double kLeft = 64, kWidth = 860, kRight = 200, kHeight = 240, kGap = 84, kTop = 48;
constexpr std::size_t kColumns = 430;
// The colours of Okabe and Ito, then lighter colours of the same hues.
constexpr std::string_view kColours[] = {
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442", "#7F7F7F",
    "#80B8D8", "#F2CF80", "#80CEB9", "#EAAE80", "#E5BCD3", "#ABD9F4", "#F7F1A0", "#BFBFBF"};
constexpr std::string_view kLines[] = {"#0072B2", "#D55E00"};

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text)
    out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

std::string words(double x, double y, std::string_view what, std::string_view more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, more, escaped(what));
}

// The mean use of each tenant in each column of time, over `length` from the start.
std::vector<std::vector<double>> columns_of(const Outcome& o, Duration length) {
  std::vector<std::vector<double>> out(o.tenants.size(), std::vector<double>(kColumns, 0));
  const double span = std::max(1.0, static_cast<double>(length.us));
  const double width = span / static_cast<double>(kColumns);
  std::vector<std::int64_t> used(o.tenants.size(), 0);
  std::vector<double> since(o.tenants.size(), 0);
  const auto fill = [&](std::size_t t, double until) {
    if (used[t] != 0)
      for (double at = since[t]; at < until;) {
        const auto c = std::min(kColumns - 1, static_cast<std::size_t>(at / width));
        const double end =
            c + 1 == kColumns ? until : std::min(until, static_cast<double>(c + 1) * width);
        out[t][c] += static_cast<double>(used[t]) * (end - at) / width;
        if (end <= at) break;
        at = end;
      }
    since[t] = until;
  };
  for (const UseChange& change : o.changes) {
    fill(change.tenant, static_cast<double>((change.at - o.begin).us));
    used[change.tenant] += change.by;
  }
  for (std::size_t t = 0; t < used.size(); ++t) fill(t, span);
  return out;
}

std::string time_axis(double y, double span_s) {
  constexpr double kSteps[] = {60,    300,   600,    1800,   3600,    7200,    14400,   21600,
                               43200, 86400, 172800, 604800, 1209600, 2592000, 7776000, 31536000};
  double step = kSteps[0];
  for (const double s : kSteps)
    if (span_s / step > 12) step = s;
  std::string out;
  for (double t = 0; t <= span_s; t += step) {
    const double x = kLeft + kWidth * t / span_s;
    const std::string label = step >= 86'400  ? fmt::format("{:.0f} d", t / 86'400)
                              : step >= 3'600 ? fmt::format("{:.0f} h", t / 3'600)
                                              : fmt::format("{:.0f} min", t / 60);
    out += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\" stroke=\"#999\"/>\n", x,
        y, y + 4);
    out += words(x, y + 18, label, "text-anchor=\"middle\"");
  }
  return out;
}

std::string frame(double y) {
  return fmt::format(
      "<rect x=\"{}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#999\"/>\n",
      kLeft, y, kWidth, kHeight);
}

// All sides of the comparison have the longest time axis, so that they can be compared.
std::string use_plot(const Outcome& o, double y, Resource unit, Duration length) {
  const auto columns = columns_of(o, length);
  const auto total = static_cast<double>(o.total);
  std::string out =
      words(kLeft, y - 10, fmt::format("{}s in use by tenant: {}", unit_name(unit), o.label),
            "font-weight=\"bold\"");
  std::vector<double> below(kColumns, 0);
  const std::size_t named = std::size(kColours) - 1;
  for (std::size_t t = 0; t < columns.size(); ++t) {
    std::string points;
    const auto point = [&](std::size_t c, double value) {
      points += fmt::format("{:.1f},{:.1f} ",
                            kLeft + kWidth * static_cast<double>(c) / static_cast<double>(kColumns),
                            y + kHeight * (1 - std::min(1.0, value / total)));
    };
    for (std::size_t c = 0; c < kColumns; ++c) {
      point(c, below[c] + columns[t][c]);
      point(c + 1, below[c] + columns[t][c]);
    }
    for (std::size_t c = kColumns; c-- > 0;) {
      point(c + 1, below[c]);
      point(c, below[c]);
    }
    const std::string_view colour = kColours[std::min(t, named)];
    out += fmt::format("<polygon points=\"{}\" fill=\"{}\"/>\n", points, colour);
    if (t <= named) {
      const double at = y + 12 + 15 * static_cast<double>(t);
      out +=
          fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"11\" height=\"11\" fill=\"{}\"/>\n",
                      kLeft + kWidth + 14, at - 9, colour);
      const bool rest = t == named && columns.size() > named + 1;
      out += words(kLeft + kWidth + 30, at,
                   rest                   ? "others"
                   : o.tenants[t].empty() ? "all"
                                          : o.tenants[t]);
    }
    for (std::size_t c = 0; c < kColumns; ++c) below[c] += columns[t][c];
  }
  for (const double part : {0.0, 0.5, 1.0})
    out += words(kLeft - 6, y + kHeight * (1 - part) + 4, fmt::format("{:.0f}", total * part),
                 "text-anchor=\"end\"");
  return out + frame(y) + time_axis(y + kHeight, static_cast<double>(length.us) / 1e6);
}

// Draws the part of the jobs that waited at most a given time; time is in logarithmic steps from 1
// s.
std::string wait_plot(const std::vector<Outcome>& sides, const Trace& trace, double y) {
  double longest = 10;
  std::vector<std::vector<double>> waits;
  for (const Outcome& o : sides) {
    auto& w = waits.emplace_back();
    for (std::size_t i = 0; i < o.jobs.size(); ++i)
      if (o.jobs[i].started)
        w.push_back(static_cast<double>((*o.jobs[i].started - trace.jobs[i].submit).us) / 1e6);
    std::sort(w.begin(), w.end());
    if (!w.empty()) longest = std::max(longest, w.back());
  }
  std::string out =
      words(kLeft, y - 10, "Jobs that waited at most so long", "font-weight=\"bold\"");
  const auto x_of = [&](double s) {
    return kLeft + kWidth * std::log10(std::max(1.0, s)) / std::log10(longest);
  };
  for (std::size_t side = 0; side < waits.size(); ++side) {
    const auto& w = waits[side];
    std::string points;
    for (std::size_t c = 0; c <= kColumns && !w.empty(); ++c) {
      const double s = std::pow(longest, static_cast<double>(c) / static_cast<double>(kColumns));
      const auto n = std::upper_bound(w.begin(), w.end(), s * (1 + 1e-9)) - w.begin();
      points +=
          fmt::format("{:.1f},{:.1f} ", x_of(s),
                      y + kHeight * (1 - static_cast<double>(n) / static_cast<double>(w.size())));
    }
    out += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n",
                       points, kLines[side % 2]);
    const double at = y + 12 + 15 * static_cast<double>(side);
    out += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"11\" height=\"3\" fill=\"{}\"/>\n",
                       kLeft + kWidth + 14, at - 5, kLines[side % 2]);
    out += words(kLeft + kWidth + 30, at, std::string(1, static_cast<char>('A' + side)));
  }
  for (const double mark : {1.0, 60.0, 3'600.0, 86'400.0, 604'800.0})
    if (mark <= longest)
      out += words(x_of(mark), y + kHeight + 18,
                   mark < 60        ? "1 s"
                   : mark < 3'600   ? "1 min"
                   : mark < 86'400  ? "1 h"
                   : mark < 604'800 ? "1 d"
                                    : "7 d",
                   "text-anchor=\"middle\"");
  for (const double part : {0.0, 0.5, 1.0})
    out += words(kLeft - 6, y + kHeight * (1 - part) + 4, fmt::format("{:.0f} %", 100 * part),
                 "text-anchor=\"end\"");
  return out + frame(y);
}

}  // namespace

std::string to_svg(const std::vector<Outcome>& sides, const Trace& trace, const Cluster& cluster) {
  const auto plots = static_cast<double>(sides.size() + 1);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      kLeft + kWidth + kRight, kTop + plots * (kHeight + kGap));
  out += words(kLeft, 20,
               fmt::format("{} on {} ({} {}s)", trace.name, cluster.name, cluster.total,
                           unit_name(cluster.unit)),
               "font-size=\"15\"");
  double y = kTop + 16;
  Duration longest{};
  for (const Outcome& o : sides) longest = std::max(longest, o.end - o.begin);
  for (const Outcome& o : sides) {
    out += use_plot(o, y, cluster.unit, longest);
    y += kHeight + kGap;
  }
  out += wait_plot(sides, trace, y);
  return out + "</svg>\n";
}

}  // namespace gantry::replay
