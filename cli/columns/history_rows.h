// Accounting rows in the order in which people expect them: pages of a query put together.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cli/session.h"
#include "common/proto/history.h"

namespace gantry::cli {

// Reads pages until `most` rows are known. The rows are in the order of job ids; tasks of an array
// by index, then the rest of the array. Each job is there once, with its newest run, or once for
// each run if the query asks for duplicates. The rest of an array is left out when all of its tasks
// have rows of their own.
Result<proto::HistoryReply> history_rows(Session& session, proto::QueryHistory query,
                                         std::size_t most = SIZE_MAX);

}  // namespace gantry::cli
