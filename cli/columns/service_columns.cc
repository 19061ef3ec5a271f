#include "cli/columns/service_columns.h"

#include <fmt/core.h>

#include "common/text/text.h"

namespace gantry::cli {
namespace {

// Whether the last minute was within the promise.
Colour colour_of(const proto::ServiceRow& r) {
  if (r.refused > 0 || (r.reached && *r.reached > r.target)) return Colour::red;
  if (r.ready < r.wanted) return Colour::yellow;
  return r.requests > 0 ? Colour::green : Colour::none;
}

Colour colour_of_replica(const proto::ReplicaRow& r) {
  if (r.state == "ready") return Colour::green;
  return r.state == "unready" ? Colour::red : Colour::yellow;
}

std::string rate_text(std::uint64_t a_minute) {
  const double rate = static_cast<double>(a_minute) / 60;
  return rate >= 100 ? fmt::format("{:.0f}", rate) : fmt::format("{:.1f}", rate);
}

constexpr Column<proto::ServiceRow> kServiceColumns[] = {
    {.letter = 'n',
     .name = "Name",
     .header = "SERVICE",
     .put = [](std::string& o, const proto::ServiceRow& r) { o += r.name; },
     .colour = colour_of},
    {.letter = 't',
     .name = "Tenant",
     .header = "TENANT",
     .put = [](std::string& o, const proto::ServiceRow& r) { o += r.tenant; }},
    {.letter = 'r',
     .name = "Replicas",
     .header = "READY",
     .right = true,
     .put = [](std::string& o,
               const proto::ServiceRow& r) { o += fmt::format("{}/{}", r.ready, r.wanted); }},
    {.letter = 'R',
     .name = "Range",
     .header = "RANGE",
     .right = true,
     .put = [](std::string& o,
               const proto::ServiceRow& r) { o += fmt::format("{}-{}", r.least, r.most); }},
    {.letter = 'q',
     .name = "Rate",
     .header = "REQ/S",
     .right = true,
     .put = [](std::string& o, const proto::ServiceRow& r) { o += rate_text(r.requests); }},
    {.letter = 'e',
     .name = "Errors",
     .header = "ERRORS",
     .right = true,
     .put = [](std::string& o,
               const proto::ServiceRow& r) { o += std::to_string(r.errors + r.refused); }},
    {.letter = 'w',
     .name = "Waiting",
     .header = "WAIT",
     .right = true,
     .put = [](std::string& o, const proto::ServiceRow& r) { o += std::to_string(r.waiting); }},
    {.letter = 'p',
     .name = "Promise",
     .header = "PROMISE",
     .put =
         [](std::string& o, const proto::ServiceRow& r) {
           o += fmt::format("{} % in {}", r.percentile, response_text(r.target));
         }},
    {.letter = 'x',
     .name = "Reached",
     .header = "REACHED",
     .right = true,
     .put = [](std::string& o,
               const proto::ServiceRow& r) { o += r.reached ? response_text(*r.reached) : "-"; }},
    {.letter = 'k',
     .name = "Kept",
     .header = "KEPT",
     .right = true,
     .put =
         [](std::string& o, const proto::ServiceRow& r) {
           o += r.minutes == 0
                    ? "-"
                    : fmt::format("{:.1f} %", 100.0 * static_cast<double>(r.minutes_kept) /
                                                  static_cast<double>(r.minutes));
         }},
    {.letter = 'u',
     .name = "Utilisation",
     .header = "USED",
     .right = true,
     .put = [](std::string& o,
               const proto::ServiceRow& r) { o += fmt::format("{} %", r.utilisation); }},
    {.letter = 'c',
     .name = "Cost",
     .header = "COST/H",
     .right = true,
     .put =
         [](std::string& o, const proto::ServiceRow& r) {
           o += r.cost_per_hour ? format_money(*r.cost_per_hour, 2) : "-";
         }},
    {.letter = 'm',
     .name = "Cost1000",
     .header = "COST/1000",
     .right = true,
     .put =
         [](std::string& o, const proto::ServiceRow& r) {
           o += r.cost_per_1000 ? format_money(*r.cost_per_1000, 4) : "-";
         }},
    {.letter = 'o',
     .name = "Owner",
     .header = "OWNER",
     .put = [](std::string& o, const proto::ServiceRow& r) { o += r.owner; }},
};

constexpr Column<proto::ReplicaRow> kReplicaColumns[] = {
    {.letter = 'i',
     .name = "JobID",
     .header = "JOB",
     .put = [](std::string& o, const proto::ReplicaRow& r) { o += std::to_string(r.job.value()); }},
    {.letter = 'v',
     .name = "Version",
     .header = "VERSION",
     .put = [](std::string& o, const proto::ReplicaRow& r) { o += r.version; }},
    {.letter = 'N',
     .name = "Node",
     .header = "NODE",
     .put = [](std::string& o, const proto::ReplicaRow& r) { o += r.node.empty() ? "-" : r.node; }},
    {.letter = 's',
     .name = "State",
     .header = "STATE",
     .put = [](std::string& o, const proto::ReplicaRow& r) { o += r.state; },
     .colour = colour_of_replica},
    {.letter = 'q',
     .name = "Running",
     .header = "REQUESTS",
     .right = true,
     .put = [](std::string& o, const proto::ReplicaRow& r) { o += std::to_string(r.running); }},
    {.letter = 'x',
     .name = "Response",
     .header = "RESPONSE",
     .right = true,
     .put =
         [](std::string& o, const proto::ReplicaRow& r) {
           o += r.response.us > 0 ? response_text(r.response) : "-";
         }},
    {.letter = 'S',
     .name = "Since",
     .header = "SINCE",
     .put = [](std::string& o, const proto::ReplicaRow& r) { o += format_time(r.since); }},
    {.letter = 'y',
     .name = "Why",
     .header = "WHY",
     .put = [](std::string& o, const proto::ReplicaRow& r) { o += r.why; }},
};

}  // namespace

std::span<const Column<proto::ServiceRow>> service_columns() {
  return kServiceColumns;
}

std::span<const Column<proto::ReplicaRow>> replica_columns() {
  return kReplicaColumns;
}

std::string response_text(Duration time) {
  const double ms = static_cast<double>(time.us) / 1000;
  if (ms >= 1000) return fmt::format("{:.1f} s", ms / 1000);
  return ms >= 10 ? fmt::format("{:.0f} ms", ms) : fmt::format("{:.1f} ms", ms);
}

}  // namespace gantry::cli
