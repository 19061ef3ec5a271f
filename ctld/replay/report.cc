#include "ctld/replay/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "common/codec/json_io.h"
#include "common/text/text.h"

namespace gantry::replay {
namespace {

double secs(Duration d) {
  return static_cast<double>(d.us) / 1e6;
}

struct Sample {
  std::vector<double> waits;
  double slowdown = 0;
};

void add(Summary& s, Sample& sample, const JobResult& r, const TraceJob& job) {
  ++s.jobs;
  s.preempted += r.preemptions;
  s.lost += r.lost;
  if (job.due) {
    ++s.due;
    s.given_up += r.given_up ? 1 : 0;
    s.in_time += !r.given_up && r.ended && *r.ended <= job.submit + *job.due ? 1 : 0;
  }
  if (!r.started) return;
  sample.waits.push_back(secs(*r.started - job.submit));
  const Duration run = job.limit && !job.unlimited ? std::min(job.run, *job.limit) : job.run;
  const double turnaround = secs(r.ended.value_or(*r.started + run) - job.submit);
  sample.slowdown += std::max(1.0, turnaround / std::max(10.0, secs(run)));
}

void close(Summary& s, Sample& sample) {
  auto& w = sample.waits;
  if (w.empty()) return;
  std::sort(w.begin(), w.end());
  const auto n = static_cast<double>(w.size());
  for (const double x : w) s.mean_wait += x / n;
  s.median_wait = w[(w.size() - 1) / 2];
  s.p95_wait = w[std::min(w.size() - 1, static_cast<std::size_t>(std::ceil(0.95 * n)) - 1)];
  s.max_wait = w.back();
  s.slowdown = sample.slowdown / n;
}

// ---- table

using Row = std::vector<std::string>;

std::string aligned(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const Row& row : rows) {
    std::string line = fmt::format("{:<{}}", row[0], widths[0]);
    for (std::size_t i = 1; i < row.size(); ++i) line += fmt::format("  {:>{}}", row[i], widths[i]);
    while (line.ends_with(' ')) line.pop_back();
    out += line + "\n";
  }
  return out;
}

std::string percent(double part) {
  return fmt::format("{:.2f} %", 100 * part);
}
std::string length(double s) {
  return s < 60 ? fmt::format("{:.0f} s", s) : format_duration(seconds(std::llround(s)));
}

struct Line {
  std::string_view name;
  std::string (*of)(const Report&, Resource);
};
constexpr Line kReportLines[] = {
    {"jobs", [](const Report& r, Resource) { return fmt::format("{}", r.all.jobs); }},
    {"utilisation", [](const Report& r, Resource) { return percent(r.all.use); }},
    {"wait, mean", [](const Report& r, Resource) { return length(r.all.mean_wait); }},
    {"wait, median", [](const Report& r, Resource) { return length(r.all.median_wait); }},
    {"wait, 95 %", [](const Report& r, Resource) { return length(r.all.p95_wait); }},
    {"wait, longest", [](const Report& r, Resource) { return length(r.all.max_wait); }},
    {"bounded slowdown",
     [](const Report& r, Resource) { return fmt::format("{:.2f}", r.all.slowdown); }},
    {"Jain's index", [](const Report& r, Resource) { return fmt::format("{:.4f}", r.jain); }},
    {"share error", [](const Report& r, Resource) { return percent(r.all.share_error); }},
    {"quota violated", [](const Report& r, Resource) { return length(r.all.violation); }},
    {"  no place", [](const Report& r, Resource) { return length(r.all.no_place); }},
    {"  of first jobs", [](const Report& r, Resource) { return length(r.all.of_first); }},
    {"  beyond", [](const Report& r, Resource) { return length(secs(r.deadline)); }},
    {"preempted", [](const Report& r, Resource) { return fmt::format("{}", r.all.preempted); }},
    {"work lost",
     [](const Report& r, Resource u) {
       return fmt::format("{:.1f} {}-h", r.all.lost / 3600, unit_name(u));
     }},
    {"lost per reclaimed",
     [](const Report& r, Resource) {
       return r.reclaimed > 0 ? fmt::format("{:.4f}", r.all.lost / r.reclaimed) : std::string("-");
     }},
    {"in time",
     [](const Report& r, Resource) {
       return r.all.due > 0 ? fmt::format("{} of {}", r.all.in_time, r.all.due) : std::string("-");
     }},
    {"  given up", [](const Report& r, Resource) { return fmt::format("{}", r.all.given_up); }},
    {"start foretold",
     [](const Report& r, Resource) { return fmt::format("{} jobs", r.predictions.jobs); }},
    {"  off by, mean",
     [](const Report& r, Resource) { return length(r.predictions.mean_distance); }},
    {"  later than told",
     [](const Report& r, Resource) { return fmt::format("{} jobs", r.predictions.later); }},
    {"  later, at most", [](const Report& r, Resource) { return length(r.predictions.latest); }},
    {"backfilled", [](const Report& r, Resource) { return fmt::format("{}", r.backfilled); }},
    {"plans", [](const Report& r, Resource) { return fmt::format("{}", r.plans); }},
};

std::vector<Row> tenant_rows(const std::vector<Report>& reports, Resource unit) {
  std::vector<Row> rows{{"tenant", "", "jobs", "nominal", "use", "wait", "95 %", "longest",
                         "slowdown", "backlog", "share err", "violated", "preempted",
                         fmt::format("lost {}-h", unit_name(unit))}};
  for (std::size_t t = 0; t < reports[0].tenants.size(); ++t)
    for (std::size_t side = 0; side < reports.size(); ++side) {
      const Summary& s = reports[side].tenants[t];
      const std::string name = s.name.empty() ? "(none)" : s.name;
      rows.push_back({side == 0 ? name : "",
                      reports.size() > 1 ? std::string(1, static_cast<char>('A' + side)) : "",
                      fmt::format("{}", s.jobs), fmt::format("{:.0f}", s.nominal), percent(s.use),
                      length(s.mean_wait), length(s.p95_wait), length(s.max_wait),
                      fmt::format("{:.2f}", s.slowdown), percent(s.backlogged),
                      percent(s.share_error), length(s.violation), fmt::format("{}", s.preempted),
                      fmt::format("{:.1f}", s.lost / 3600)});
    }
  return rows;
}

// ---- JSON

void number(codec::JsonWriter& w, std::string_view name, double value) {
  w.key(name);
  w.real(value);
}

void write(codec::JsonWriter& w, const Summary& s) {
  w.key("jobs");
  w.uint(s.jobs);
  number(w, "utilisation", s.use);
  number(w, "nominal", s.nominal);
  number(w, "mean_wait_s", s.mean_wait);
  number(w, "median_wait_s", s.median_wait);
  number(w, "p95_wait_s", s.p95_wait);
  number(w, "max_wait_s", s.max_wait);
  number(w, "mean_bounded_slowdown", s.slowdown);
  number(w, "backlogged", s.backlogged);
  number(w, "share_error", s.share_error);
  number(w, "quota_violation_s", s.violation);
  number(w, "quota_no_place_s", s.no_place);
  number(w, "quota_violation_of_first_s", s.of_first);
  w.key("preemptions");
  w.uint(s.preempted);
  number(w, "lost_unit_s", s.lost);
  w.key("due");
  w.uint(s.due);
  w.key("in_time");
  w.uint(s.in_time);
  w.key("given_up");
  w.uint(s.given_up);
}

}  // namespace

std::string_view unit_name(Resource unit) {
  return unit == Resource::gpu ? "GPU" : "core";
}

namespace {

Predictions predictions_of(const Outcome& o) {
  Predictions p;
  std::vector<double> off;
  for (const JobResult& job : o.jobs)
    if (job.foretold && job.started) off.push_back(secs(*job.started - *job.foretold));
  if (off.empty()) return p;
  std::sort(off.begin(), off.end());
  const auto n = static_cast<double>(off.size());
  p.jobs = off.size();
  for (const double x : off) {
    p.mean += x / n;
    p.mean_distance += std::abs(x) / n;
    p.later += x > 0 ? 1 : 0;
  }
  p.p95 = off[std::min(off.size() - 1, static_cast<std::size_t>(std::ceil(0.95 * n)) - 1)];
  p.latest = std::max(0.0, off.back());
  p.earliest = off.front();
  return p;
}

}  // namespace

Report summarise(const Outcome& o, const Trace& trace) {
  Report report;
  report.label = o.label;
  report.predictions = predictions_of(o);
  report.jain = o.jain;
  report.reclaimed = o.reclaimed;
  report.plans = o.plans;
  report.backfilled = o.backfilled;
  report.deadline = o.deadline;
  report.span = o.end - o.begin;
  const double span = std::max(1.0, secs(report.span));
  const auto total = static_cast<double>(o.total);
  report.tenants.resize(o.tenants.size());
  std::vector<Sample> samples(o.tenants.size());
  Sample of_all;
  for (std::size_t i = 0; i < o.jobs.size(); ++i) {
    if (o.jobs[i].left_out) continue;
    const std::uint32_t t = o.jobs[i].tenant;
    add(report.tenants[t], samples[t], o.jobs[i], trace.jobs[i]);
    add(report.all, of_all, o.jobs[i], trace.jobs[i]);
  }
  double error = 0, backlogged = 0;
  for (std::size_t t = 0; t < o.tenants.size(); ++t) {
    Summary& s = report.tenants[t];
    const TenantMeasure& m = o.measures[t];
    s.name = o.tenants[t];
    close(s, samples[t]);
    s.use = m.use / span / total;
    s.backlogged = m.backlogged / span;
    s.share_error = m.backlogged > 0 ? m.error / m.backlogged / total : 0;
    s.violation = m.violation;
    s.no_place = m.no_place;
    s.of_first = m.of_first;
    s.nominal = m.nominal;
    report.all.use += s.use;
    report.all.violation += s.violation;
    report.all.no_place += s.no_place;
    report.all.of_first += s.of_first;
    report.all.nominal += s.nominal;
    error += m.error;
    backlogged += m.backlogged;
  }
  close(report.all, of_all);
  report.all.share_error = backlogged > 0 ? error / backlogged / total : 0;
  report.all.backlogged =
      o.tenants.empty() ? 0 : backlogged / span / static_cast<double>(o.tenants.size());
  return report;
}

std::string to_table(const std::vector<Report>& reports, Resource unit, bool by_tenant) {
  std::string out;
  Row head{""};
  for (std::size_t side = 0; side < reports.size(); ++side) {
    if (reports.size() > 1)
      out += fmt::format("{} = {}\n", static_cast<char>('A' + side), reports[side].label);
    head.push_back(reports.size() > 1 ? std::string(1, static_cast<char>('A' + side))
                                      : reports[side].label);
  }
  if (reports.size() > 1) out += "\n";
  std::vector<Row> rows{head};
  for (const Line& line : kReportLines) {
    Row row{std::string(line.name)};
    for (const Report& report : reports) row.push_back(line.of(report, unit));
    rows.push_back(std::move(row));
  }
  out += aligned(rows);
  if (by_tenant && reports[0].tenants.size() > 1) out += "\n" + aligned(tenant_rows(reports, unit));
  return out;
}

std::string to_json(const std::vector<Report>& reports, const Trace& trace,
                    const Cluster& cluster) {
  codec::JsonWriter w(codec::JsonStyle::pretty);
  w.begin_object();
  w.key("trace");
  w.string(trace.name);
  w.key("cluster");
  w.string(cluster.name);
  w.key("unit");
  w.string(unit_name(cluster.unit));
  w.key("units");
  w.sint(cluster.total);
  w.key("policies");
  w.begin_array();
  for (const Report& r : reports) {
    w.begin_object();
    w.key("policy");
    w.string(r.label);
    write(w, r.all);
    number(w, "jain_index", r.jain);
    w.key("start_foretold_jobs");
    w.uint(r.predictions.jobs);
    w.key("start_later_than_foretold_jobs");
    w.uint(r.predictions.later);
    number(w, "start_minus_foretold_mean_s", r.predictions.mean);
    number(w, "start_minus_foretold_mean_distance_s", r.predictions.mean_distance);
    number(w, "start_minus_foretold_p95_s", r.predictions.p95);
    number(w, "start_minus_foretold_most_s", r.predictions.latest);
    number(w, "start_minus_foretold_least_s", r.predictions.earliest);
    number(w, "reclaim_deadline_s", secs(r.deadline));
    number(w, "reclaimed_unit_s", r.reclaimed);
    number(w, "span_s", secs(r.span));
    w.key("plans");
    w.uint(r.plans);
    w.key("backfilled");
    w.uint(r.backfilled);
    w.key("tenants");
    w.begin_array();
    for (const Summary& s : r.tenants) {
      w.begin_object();
      w.key("tenant");
      w.string(s.name);
      write(w, s);
      w.end_object();
    }
    w.end_array();
    w.end_object();
  }
  w.end_array();
  w.end_object();
  return w.take() + "\n";
}

std::string to_violations(const Outcome& o, Resource unit) {
  std::string out;
  for (const Violation& v : o.violations)
    out += fmt::format(
        "{} at {:.0f} s for {:.0f} s: {} {}s used, the smallest of its jobs wants {}, "
        "the first {}; for {:.0f} s no room could be made\n",
        o.tenants[v.tenant], secs(v.since - o.begin), secs(v.until - v.since), v.used,
        unit_name(unit), v.smallest, v.first, v.no_place);
  return out;
}

std::string to_jobs(const std::vector<Outcome>& sides, const Trace& trace) {
  std::string out =
      "policy,id,tenant,units,submit_s,foretold_start_s,start_s,end_s,preempted,lost_unit_s\n";
  for (const Outcome& o : sides)
    for (std::size_t i = 0; i < o.jobs.size(); ++i) {
      const JobResult& r = o.jobs[i];
      if (r.left_out) continue;
      const auto at = [&](const std::optional<Instant>& t) {
        return t ? fmt::format("{:.0f}", secs(*t - o.begin)) : std::string();
      };
      const TraceJob& job = trace.jobs[i];
      out += fmt::format("\"{}\",{},\"{}\",{},{},{},{},{},{},{:.0f}\n", o.label, job.id, job.tenant,
                         r.units, at(job.submit), at(r.foretold), at(r.started), at(r.ended),
                         r.preemptions, r.lost);
    }
  return out;
}

std::string to_timeline(const Outcome& o, const Trace& trace, Resource unit,
                        const std::vector<std::string>& tenants) {
  std::string out;
  const auto of_these = [&](std::uint32_t i) {
    return std::find(tenants.begin(), tenants.end(), trace.jobs[i].tenant) != tenants.end();
  };
  std::set<std::uint32_t> shown;
  for (const Happening& h : o.happenings)
    if (tenants.empty() || of_these(h.job) || (h.other && of_these(*h.other))) shown.insert(h.job);
  const auto who = [&](std::uint32_t i) {
    return fmt::format("{}/{}", trace.jobs[i].tenant, trace.jobs[i].id);
  };
  for (const Happening& h : o.happenings) {
    if (!shown.contains(h.job)) continue;
    const JobResult& r = o.jobs[h.job];
    std::string what;
    switch (h.what) {
      case What::submitted:
        what = fmt::format("submitted, {} {}s", r.units, unit_name(unit));
        break;
      case What::started: what = fmt::format("starts on {}", h.nodes); break;
      case What::preempted: what = fmt::format("asked to leave for {}", who(*h.other)); break;
      case What::requeued:
      case What::cancelled:
        what = fmt::format("has left for {}, {:.1f} {}-h lost{}", who(*h.other), h.lost / 3600,
                           unit_name(unit),
                           h.what == What::requeued ? ", waits again" : ", cancelled");
        break;
      case What::given_up: what = "given up: it cannot end before it is due"; break;
      case What::ended: what = "ends"; break;
    }
    const std::int64_t s = (h.at - o.begin).seconds();
    out += fmt::format("{:>4}:{:02}:{:02}  {:<22} {}\n", s / 3600, s / 60 % 60, s % 60, who(h.job),
                       what);
  }
  return out;
}

}  // namespace gantry::replay
