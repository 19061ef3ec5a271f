// Columns of services and of their replicas.
#pragma once

#include <span>
#include <string>

#include "cli/table.h"
#include "common/proto/services.h"

namespace gantry::cli {

std::span<const Column<proto::ServiceRow>> service_columns();
std::span<const Column<proto::ReplicaRow>> replica_columns();

// "85 ms", "1.2 s".
std::string response_text(Duration time);

}  // namespace gantry::cli
