// The part of a recovery that needs no State: a job's record and its spec, found together and
// decoded. It is separate from the rest of the load so that another thread can do it in advance
// (ctld/recovery.h).
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ctld/core/state/record.h"
#include "ctld/core/state/stored_spec.h"

namespace gantry::core {

// A job as the store has it. If it has no record, its submit is in a later event of the journal.
struct ReadJob {
  JobId id;
  Bytes spec;  // as stored
  SpecHead head;
  std::optional<JobRecord> record;
};

struct ReadCount {
  std::size_t records = 0;  // of jobs
};
// The records for which no spec has come: those of elements of arrays.
struct ReadRest {
  std::vector<std::pair<JobId, Bytes>> records;  // by id
};
// A core takes these pieces in place of the records of jobs and of the specs: the count first, then
// each job, then the rest.
using ReadPiece = std::variant<ReadCount, ReadJob, ReadRest>;

// Call it in the order of a load: all records of jobs by id, then all specs by id, then rest().
class JobReader {
 public:
  void record(JobId id, std::string_view value) { records_.emplace_back(id, Bytes(value)); }
  [[nodiscard]] ReadCount count() const { return {records_.size()}; }
  // The error malformed means that the store is damaged.
  Result<ReadJob> spec(JobId id, std::string_view data);
  // Call it after the last spec; the reader is empty then.
  ReadRest rest();

 private:
  std::vector<std::pair<JobId, Bytes>> records_;  // by id; emptied as specs come
  std::size_t next_ = 0;
};

}  // namespace gantry::core
