// Parts of a job as people write them: array indexes, job ids and --signal; see common/text/text.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/job/job_spec.h"
#include "common/proto/job_ref.h"
#include "common/result.h"

namespace gantry {

// ---- signals

// Reads the value of --signal, [B:]SIGNAL[@SECONDS]. Without SECONDS it is 60; the most is 65535.
Result<WarnSignal> parse_warn_signal(std::string_view text);

// ---- array indexes

// Reads "0-9:2,15%4": at most kMaxArrayTasks indexes of at most kMaxArrayIndex. The result is
// sorted and disjoint; an index that is given twice counts once.
Result<ArraySpec> parse_index_ranges(std::string_view text);
std::string format_index_ranges(std::span<const IndexRange> ranges);
std::string format_array_spec(const ArraySpec& spec);  // with %N

// The shortest ranges for `indexes`, which are sorted and have no repetitions.
std::vector<IndexRange> compress_indexes(std::span<const std::uint32_t> indexes);
std::uint64_t count_indexes(std::span<const IndexRange> ranges);
bool contains_index(std::span<const IndexRange> ranges, std::uint32_t index);

// ---- job ids

// Reads "123", "123_7" or "123_[1-10,12]". A limit as squeue prints it, "123_[1-10%2]", is accepted
// and ignored.
Result<proto::JobRef> parse_job_ref(std::string_view text);
std::string format_job_ref(const proto::JobRef& ref);

}  // namespace gantry
