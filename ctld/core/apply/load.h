// Makes State from its records, and records from State; see record.h.
#pragma once

#include <utility>
#include <vector>

#include "ctld/core/job_reader.h"
#include "ctld/core/state/mutable_state.h"
#include "ctld/core/state/record.h"

namespace gantry::core {

// The error of a load: what is stored cannot be read.
tl::unexpected<Error> broken(std::string_view what, const Error& error);

// Takes records (any order) and then specs (ascending), and builds each job when its spec comes.
// Pieces that a JobReader has read on another thread replace the records of jobs and specs.
class Loader {
 public:
  explicit Loader(MutableState& state) : state_(state) {}
  Result<void> record(store::Table table, std::string_view key, std::string_view value);
  Result<void> spec(JobId job, std::string_view data);
  void take(ReadCount&& count);
  void take(ReadJob&& job);
  void take(ReadRest&& rest) { rest_ = std::move(rest.records); }
  // Call it after the last spec and before the first event. It makes the elements of arrays, and
  // all that needs every record.
  Result<void> finish();
  [[nodiscard]] bool finished() const { return finished_; }
  [[nodiscard]] EventSeq applied() const { return applied_; }  // the newest event in the records

 private:
  Result<void> node(std::string_view name, std::string_view value);
  Result<void> tenancy(store::Table table, std::string_view value);
  Result<void> secret(std::string_view key, std::string_view value);
  Result<void> job_without_spec(JobId id, JobRecord&& record);

  MutableState& state_;
  JobReader reader_;
  std::vector<std::pair<JobId, Bytes>> rest_;  // records of elements of arrays
  bool counted_ = false;
  std::vector<std::pair<std::string, std::string>> node_keys_;
  EventSeq applied_{};
  bool finished_ = false;
};

// Marks unconfirmed orders: since then the job may have run to its end. See Core::doubt_orders.
void doubt_orders(MutableState& state);

JobRecord record_of(const State& state, const Job& job);

// The records that changed since the last call, sorted; see Core::take_fold.
store::FoldBatch fold(MutableState& state, EventSeq applied);

}  // namespace gantry::core
