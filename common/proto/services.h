// Services for people: their state, whether they meet their objectives, and commands for them.
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
#include "common/special_members.h"
#include "common/time/time.h"
#include "common/types.h"

namespace gantry::proto {

struct ListServices {
  std::vector<std::string> tenants;  // empty = all that the asker sees
  std::string name;                  // "" = all
  GANTRY_FIELDS(FIELD(1, tenants), FIELD(2, name))
};

struct ReplicaRow {
  JobId job{};
  std::string version;
  std::string node;   // "" = it has none yet
  std::string state;  // "pending", "starting", "ready", "unready", "draining"
  std::uint32_t running = 0;
  Duration response{};
  Instant since{};
  std::string why;          // why it is not ready
  std::uint32_t shape = 0;  // index of the version's shape, from 0
  GANTRY_FIELDS(FIELD(1, job), FIELD(2, version), FIELD(3, node), FIELD(4, state),
                FIELD(5, running), FIELD(6, response), FIELD(7, since), FIELD(8, why),
                FIELD(9, shape))
};

struct ServiceEvent {  // a change, with the numbers that led to it
  Instant at{};
  std::string text;
  GANTRY_FIELDS(FIELD(1, at), FIELD(2, text))
};

struct ServiceRow {
  GANTRY_SPECIAL_MEMBERS(ServiceRow)
  std::string name;
  std::string tenant;
  std::string owner;  // the user whose jobs its replicas are
  std::uint32_t wanted = 0, ready = 0, pending = 0, draining = 0;  // replicas
  std::uint32_t least = 0, most = 0;
  std::string reason;  // why this number is wanted, a sentence
  Duration target{};
  std::uint32_t percentile = 0;
  // The next two lines are about the last minute.
  std::uint64_t requests = 0, errors = 0, refused = 0;
  std::optional<Duration> p50, reached, p99;  // `reached`: at the percentile of the objective
  std::uint32_t running = 0, waiting = 0;
  // Since the controller started: minutes with requests, and those in which the objective was met.
  std::uint64_t minutes = 0, minutes_kept = 0;
  std::uint32_t utilisation = 0;       // percent: how busy its replicas are
  std::optional<Money> cost_per_hour;  // of its present replicas; unset: there are no prices
  std::optional<Money> cost_per_1000;  // requests, at the rate of the last minute
  std::string currency;
  std::string rollout;  // the rollout in progress, a sentence; "" = none
  std::vector<GateVersion> versions;
  std::vector<ReplicaRow> replicas;  // if the service was named
  std::vector<ServiceEvent> events;  // the same; the oldest first
  std::vector<std::string> hosts;
  bool paused = false;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, tenant), FIELD(3, owner), FIELD(4, wanted),
                FIELD(5, ready), FIELD(6, pending), FIELD(7, draining), FIELD(8, least),
                FIELD(9, most), FIELD(10, reason), FIELD(11, target), FIELD(12, percentile),
                FIELD(13, requests), FIELD(14, errors), FIELD(15, refused), FIELD(16, p50),
                FIELD(17, reached), FIELD(18, p99), FIELD(19, running), FIELD(20, waiting),
                FIELD(21, minutes), FIELD(22, minutes_kept), FIELD(23, utilisation),
                FIELD(24, cost_per_hour), FIELD(25, cost_per_1000), FIELD(26, currency),
                FIELD(27, rollout), FIELD(28, versions), FIELD(29, replicas), FIELD(30, events),
                FIELD(31, hosts), FIELD(32, paused))
};

struct ServiceList {
  std::vector<ServiceRow> rows;
  std::vector<std::string> gates;  // names and addresses of gates that sent requests lately
  GANTRY_FIELDS(FIELD(1, rows), FIELD(2, gates))
};

enum class ServiceAction : std::uint8_t { pause = 1, resume = 2, roll_back = 3, restart = 4 };
GANTRY_NAMES(ServiceAction, {pause, "pause"}, {resume, "resume"}, {roll_back, "rollback"},
             {restart, "restart"})

struct ChangeService {  // answered by ServiceList
  std::string name;
  ServiceAction action = ServiceAction::pause;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, action))
};

}  // namespace gantry::proto
