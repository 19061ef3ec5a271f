#include "cli/columns/service_columns.h"

#include <fmt/core.h>

#include "common/text/text.h"

namespace gantry::cli {
namespace {

// Whether the last minute met the service's objective.
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

using OfService = const proto::ServiceRow&;
using OfReplica = const proto::ReplicaRow&;
constexpr Column<proto::ServiceRow> kServiceColumns[] = {
    coloured<proto::ServiceRow>({'n', "Name", "SERVICE", [](Out o, OfService r) { o += r.name; }},
                                colour_of),
    {'t', "Tenant", "TENANT", [](Out o, OfService r) { o += r.tenant; }},
    {'r', "Replicas", "READY",
     [](Out o, OfService r) { o += fmt::format("{}/{}", r.ready, r.wanted); }},
    {'R', "Range", "RANGE", [](Out o, OfService r) { o += fmt::format("{}-{}", r.least, r.most); }},
    {'q', "Rate", "REQ/S", [](Out o, OfService r) { o += rate_text(r.requests); }},
    {'e', "Errors", "ERRORS",
     [](Out o, OfService r) { o += std::to_string(r.errors + r.refused); }},
    {'w', "Waiting", "WAIT", [](Out o, OfService r) { o += std::to_string(r.waiting); }},
    {'p', "Promise", "PROMISE",
     [](Out o, OfService r) {
       o += fmt::format("{} % in {}", r.percentile, response_text(r.target));
     }},
    {'x', "Reached", "REACHED",
     [](Out o, OfService r) { o += r.reached ? response_text(*r.reached) : "-"; }},
    {'k', "Kept", "KEPT",
     [](Out o, OfService r) {
       o += r.minutes == 0 ? "-"
                           : fmt::format("{:.1f} %", 100.0 * static_cast<double>(r.minutes_kept) /
                                                         static_cast<double>(r.minutes));
     }},
    {'u', "Utilisation", "USED",
     [](Out o, OfService r) { o += fmt::format("{} %", r.utilisation); }},
    {'c', "Cost", "COST/H",
     [](Out o, OfService r) { o += r.cost_per_hour ? format_money(*r.cost_per_hour, 2) : "-"; }},
    {'m', "Cost1000", "COST/1000",
     [](Out o, OfService r) { o += r.cost_per_1000 ? format_money(*r.cost_per_1000, 4) : "-"; }},
    {'o', "Owner", "OWNER", [](Out o, OfService r) { o += r.owner; }}};

constexpr Column<proto::ReplicaRow> kReplicaColumns[] = {
    {'i', "JobID", "JOB", [](Out o, OfReplica r) { o += std::to_string(r.job.value()); }},
    {'v', "Version", "VERSION", [](Out o, OfReplica r) { o += r.version; }},
    {'N', "Node", "NODE", [](Out o, OfReplica r) { o += r.node.empty() ? "-" : r.node; }},
    coloured<proto::ReplicaRow>({'s', "State", "STATE", [](Out o, OfReplica r) { o += r.state; }},
                                colour_of_replica),
    {'q', "Running", "REQUESTS", [](Out o, OfReplica r) { o += std::to_string(r.running); }},
    {'x', "Response", "RESPONSE",
     [](Out o, OfReplica r) { o += r.response.us > 0 ? response_text(r.response) : "-"; }},
    {'S', "Since", "SINCE", [](Out o, OfReplica r) { o += format_time(r.since); }},
    {'y', "Why", "WHY", [](Out o, OfReplica r) { o += r.why; }}};

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
