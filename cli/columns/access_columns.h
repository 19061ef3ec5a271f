// Columns of the access report: who may do what, since when and by whom.
#pragma once

#include <span>
#include <string>

#include "cli/table.h"
#include "common/proto/access.h"

namespace gantry::cli {

std::span<const Column<proto::AccessRow>> access_columns();

// "ann", "group ml".
std::string subject_of(const proto::AccessRow& row);

}  // namespace gantry::cli
