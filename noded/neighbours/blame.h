// Who holds up one job on one channel: a pure function of the last rows.
//
// Rows in which the victim is held up are set beside quiet ones. Who uses more of the channel in
// the first than in the second has brought it about, and whoever uses much, but no more than
// before, has not. If nobody uses more (a disk that has become slow), the cause is unknown. Without
// quiet rows only shares of use are known, which gives less confidence.
#pragma once

#include <deque>

#include "noded/neighbours/finding.h"

namespace gantry::neighbours {

// From this level on a channel holds back somebody, where waiting is not counted.
inline constexpr double kFull = 0.9;
double full_from(const Rule& rule, bool waiting_is_counted);

// Is the job held up in this row? `usual` is what it used before the channel was full, for jobs
// whose waiting the kernel does not count.
bool is_held_up(const Row& row, const JobRow& job, const Rule& rule,
                const std::optional<double>& usual);

// The rows are the oldest first, and `victim` is in the last one.
Verdict blame(const std::deque<Row>& rows, const proto::AttemptKey& victim, const Rule& rule,
              const std::optional<double>& usual);

// Does the job wait for a full disk that it alone uses? Whoever reads does so; it is worth telling
// if there was a time before in which the disk was not full.
bool is_filled_alone(const Row& row, const JobRow& job, const Rule& rule);
// Why it has come to that: the job wants more than before (`itself`), or the disk does less
// (`unknown`). `compared` is false if there is no time before.
Verdict blame_alone(const std::deque<Row>& rows, const proto::AttemptKey& victim, const Rule& rule);

}  // namespace gantry::neighbours
