// How many replicas a service needs: a pure function of its document and of what gates report.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "common/money/money.h"
#include "common/tenancy/tenancy_service.h"
#include "common/time/time.h"
#include "ctld/scale/load.h"

namespace gantry::scale {

struct ScaleFacts {
  Instant now{};
  std::int64_t local_minute = 0;  // minutes of the cluster's local time since 1970
  std::uint32_t waiting = 0;      // requests that wait in gates for a replica now
  Duration service_time{};        // mean time in a replica, without waiting in a gate; 0 = unknown
  Duration start_time{};          // from the decision for a replica until it is ready; 0 = unknown
  std::uint32_t wanted = 0;       // the previous answer
  std::uint32_t shape = 0;        // shape in the previous answer
  std::uint32_t on_one_node = 0;  // the largest number of its replicas that share a node
  std::optional<Money> cost;      // cost of one replica for an hour; unset without prices
};

// What the function has to remember from earlier calls.
struct ScaleMemory {
  std::deque<std::pair<Instant, std::uint32_t>> needs;  // falling needs in the last `down_after`
  std::optional<Instant> too_slow;  // since when a single replica is too slow for the target
};

struct ScaleAnswer {
  std::uint32_t replicas = 0;
  std::uint32_t shape = 0;  // index in the service's shapes
  std::string reason;       // a sentence with the numbers that led to it
};

ScaleAnswer scale(const tenancy::Service& service, const ServiceLoad& load, const ScaleFacts& facts,
                  ScaleMemory& memory);

// Rates that are certain: the greatest over several spans that chance alone does not explain. A
// short span shows a spike at once and is noisy, a long one is late and steady.
double sure_rate(const ServiceLoad& load, Instant now);

}  // namespace gantry::scale
