// Services and gates in the controller's GET /metrics. Counters restart from zero with the
// controller.
#pragma once

#include <optional>
#include <string>

#include "ctld/core/services/service_rows.h"

namespace gantry::core {

// `tenant`: only its services; unset: all services, and the gates. Returns the text format of
// Prometheus.
std::string service_metrics(const ServiceView& view, const std::optional<std::string>& tenant);

}  // namespace gantry::core
