#include "ctld/core/services/service_metrics.h"

#include <fmt/core.h>

#include "common/metrics/families.h"
#include "common/proto/gate.h"
#include "common/proto/services.h"
#include "ctld/core/runtime.h"
#include "ctld/core/services/gate_table.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

using metrics::Family;
using metrics::label;

// The histogram has every fifth bucket of those that gates count: two per factor of ten.
constexpr std::size_t kEvery = 5;

std::string seconds_text(std::uint64_t us) {
  return fmt::format("{:.6g}", static_cast<double>(us) / 1e6);
}
std::string seconds_text(Duration time) {
  return seconds_text(static_cast<std::uint64_t>(time.us));
}

struct Families {
  Family requests{"gantry_service_requests_total", "counter", "Requests that replicas answered."};
  Family errors{"gantry_service_errors_total", "counter",
                "Answers with a status from 500 on, and requests that were lost with a replica."};
  Family refused{"gantry_service_refused_total", "counter", "Requests that gates refused."};
  Family received{"gantry_service_received_bytes_total", "counter", "Bytes of requests."};
  Family sent{"gantry_service_sent_bytes_total", "counter", "Bytes of answers."};
  Family times{"gantry_service_response_seconds", "histogram", "Response times at the gates."};
  Family target{"gantry_service_target_seconds", "gauge", "The promised response time."};
  Family reached{"gantry_service_reached_seconds", "gauge",
                 "Response time of the promised part of the last minute's requests."};
  Family minutes{"gantry_service_promise_seconds_total", "counter",
                 "Time with requests, counted by the minute."};
  Family kept{"gantry_service_promise_kept_seconds_total", "counter",
              "That time as far as the promise was kept."};
  Family running{"gantry_service_running", "gauge", "Requests in replicas."};
  Family waiting{"gantry_service_waiting", "gauge", "Requests that wait in gates."};
  Family replicas{"gantry_service_replicas", "gauge", "Replicas, by state; wanted = as decided."};
  Family used{"gantry_service_utilisation_ratio", "gauge", "How busy its replicas are."};
  Family cost{"gantry_service_cost_per_hour", "gauge", "Price of its replicas for an hour."};
  Family thousand{"gantry_service_cost_per_1000_requests", "gauge",
                  "That price, by the requests of the last minute."};

  void add(const proto::ServiceRow& row, const scale::ServiceLoad& load);
  void add_times(const std::string& labels, const scale::ServiceLoad::Totals& totals);
  [[nodiscard]] std::string text() const;
};

void Families::add_times(const std::string& labels, const scale::ServiceLoad::Totals& totals) {
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < proto::kLatencyBuckets.size(); ++i) {
    below += totals.times.of[i];
    if (i % kEvery == 0)
      times.add_part("_bucket", labels + "," + label("le", seconds_text(proto::kLatencyBuckets[i])),
                     std::to_string(below));
  }
  const std::string all = std::to_string(totals.times.sum());
  times.add_part("_bucket", labels + "," + label("le", "+Inf"), all);
  times.add_part("_sum", labels, seconds_text(totals.microseconds));
  times.add_part("_count", labels, all);
}

void Families::add(const proto::ServiceRow& row, const scale::ServiceLoad& load) {
  const std::string who = label("tenant", row.tenant) + "," + label("service", row.name);
  const scale::ServiceLoad::Totals& totals = load.totals();
  requests.add(who, std::to_string(totals.requests));
  errors.add(who, std::to_string(totals.errors));
  refused.add(who, std::to_string(totals.refused));
  received.add(who, std::to_string(totals.bytes_in));
  sent.add(who, std::to_string(totals.bytes_out));
  add_times(who, totals);
  target.add(who, seconds_text(row.target));
  if (row.reached) reached.add(who, seconds_text(*row.reached));
  minutes.add(who, std::to_string(row.minutes * 60));
  kept.add(who, std::to_string(row.minutes_kept * 60));
  running.add(who, std::to_string(row.running));
  waiting.add(who, std::to_string(row.waiting));
  const std::pair<const char*, std::uint32_t> states[] = {{"wanted", row.wanted},
                                                          {"ready", row.ready},
                                                          {"pending", row.pending},
                                                          {"draining", row.draining}};
  for (const auto& [state, count] : states)
    replicas.add(who + "," + label("state", state), std::to_string(count));
  used.add(who, fmt::format("{:.2f}", row.utilisation / 100.0));
  const std::string paid = who + "," + label("currency", row.currency);
  if (row.cost_per_hour) cost.add(paid, format_money(*row.cost_per_hour, 6));
  if (row.cost_per_1000) thousand.add(paid, format_money(*row.cost_per_1000, 6));
}

std::string Families::text() const {
  std::string out;
  for (const Family* one :
       {&requests, &errors, &refused, &received, &sent, &times, &target, &reached, &minutes, &kept,
        &running, &waiting, &replicas, &used, &cost, &thousand})
    out += one->text();
  return out;
}

std::string gate_metrics(const ServiceView& view) {
  Family seen("gantry_gate_silent_seconds", "gauge", "Time since the gate asked last.");
  for (const auto& [name, gate] : view.rt.gates)
    seen.add(label("gate", name), seconds_text(view.now - gate.at));
  return seen.text();
}

}  // namespace

std::string service_metrics(const ServiceView& view, const std::optional<std::string>& tenant) {
  Families out;
  static const scale::ServiceLoad kNone;
  for (const auto& [name, service] : view.state.services.all) {
    const tenancy::Service* doc = service_document(view.state, name);
    if (doc == nullptr || (tenant && service.tenant != *tenant)) continue;
    const auto marks = view.rt.services.find(name);
    out.add(service_row(view, name, service, *doc, false),
            marks == view.rt.services.end() ? kNone : marks->second.load);
  }
  return out.text() + (tenant ? "" : gate_metrics(view));
}

}  // namespace gantry::core
