// Services for people: which there are, how they keep their promises, and commands for them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/fields.h"
#include "common/money/money.h"
#include "common/proto/gate.h"
#include "common/time/time.h"
#include "common/types.h"

namespace gantry::proto {

struct ListServices {
  std::vector<std::string> tenants;  // none = all that the asker sees
  std::string name;                  // "" = all
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "tenants", s.tenants);
    v(2, "name", s.name);
  }
};

struct ReplicaRow {
  JobId job{};
  std::string version;
  std::string node;   // "" = it has none yet
  std::string state;  // "pending", "starting", "ready", "unready", "draining"
  std::uint32_t running = 0;
  Duration response{};
  Instant since{};
  std::string why;          // it is not ready
  std::uint32_t shape = 0;  // which of its version's, from 0
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "job", s.job);
    v(2, "version", s.version);
    v(3, "node", s.node);
    v(4, "state", s.state);
    v(5, "running", s.running);
    v(6, "response", s.response);
    v(7, "since", s.since);
    v(8, "why", s.why);
    v(9, "shape", s.shape);
  }
};

struct ServiceEvent {  // a change, with the numbers that led to it
  Instant at{};
  std::string text;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "at", s.at);
    v(2, "text", s.text);
  }
};

struct ServiceRow {
  std::string name;
  std::string tenant;
  std::string owner;  // the user whose jobs its replicas are
  std::uint32_t wanted = 0, ready = 0, pending = 0, draining = 0;  // replicas
  std::uint32_t least = 0, most = 0;
  std::string reason;  // why so many are wanted, a sentence
  Duration target{};
  std::uint32_t percentile = 0;
  // The next two lines are about the last minute.
  std::uint64_t requests = 0, errors = 0, refused = 0;
  std::optional<Duration> p50, reached, p99;  // `reached`: at the promised percentile
  std::uint32_t running = 0, waiting = 0;
  // Since the controller started: minutes with requests, and those in which the promise was kept.
  std::uint64_t minutes = 0, minutes_kept = 0;
  std::uint32_t utilisation = 0;       // percent: how busy its replicas are
  std::optional<Money> cost_per_hour;  // of its replicas now; unset: there are no prices
  std::optional<Money> cost_per_1000;  // requests, at the rate of the last minute
  std::string currency;
  std::string rollout;  // what is under way, a sentence; "" = nothing
  std::vector<GateVersion> versions;
  std::vector<ReplicaRow> replicas;  // if the service was named
  std::vector<ServiceEvent> events;  // the same; the oldest first
  std::vector<std::string> hosts;
  bool paused = false;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "name", s.name);
    v(2, "tenant", s.tenant);
    v(3, "owner", s.owner);
    v(4, "wanted", s.wanted);
    v(5, "ready", s.ready);
    v(6, "pending", s.pending);
    v(7, "draining", s.draining);
    v(8, "least", s.least);
    v(9, "most", s.most);
    v(10, "reason", s.reason);
    v(11, "target", s.target);
    v(12, "percentile", s.percentile);
    v(13, "requests", s.requests);
    v(14, "errors", s.errors);
    v(15, "refused", s.refused);
    v(16, "p50", s.p50);
    v(17, "reached", s.reached);
    v(18, "p99", s.p99);
    v(19, "running", s.running);
    v(20, "waiting", s.waiting);
    v(21, "minutes", s.minutes);
    v(22, "minutes_kept", s.minutes_kept);
    v(23, "utilisation", s.utilisation);
    v(24, "cost_per_hour", s.cost_per_hour);
    v(25, "cost_per_1000", s.cost_per_1000);
    v(26, "currency", s.currency);
    v(27, "rollout", s.rollout);
    v(28, "versions", s.versions);
    v(29, "replicas", s.replicas);
    v(30, "events", s.events);
    v(31, "hosts", s.hosts);
    v(32, "paused", s.paused);
  }
};

struct ServiceList {
  std::vector<ServiceRow> rows;
  std::vector<std::string> gates;  // names and addresses of those that asked lately
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "rows", s.rows);
    v(2, "gates", s.gates);
  }
};

enum class ServiceAction : std::uint8_t { pause = 1, resume = 2, roll_back = 3, restart = 4 };
constexpr auto enum_names(ServiceAction) {
  using enum ServiceAction;
  return std::array<std::pair<ServiceAction, std::string_view>, 4>{
      {{pause, "pause"}, {resume, "resume"}, {roll_back, "rollback"}, {restart, "restart"}}};
}

struct ChangeService {  // it is answered by ServiceList
  std::string name;
  ServiceAction action = ServiceAction::pause;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "name", s.name);
    v(2, "action", s.action);
  }
};

}  // namespace gantry::proto
