// A trace: which jobs came when, and how long they ran. Read from
//
//   *.swf          Standard Workload Format (Parallel Workloads Archive): processors are GPUs where
//                  the cluster has some, else cores
//   *.csv          a header names the columns: submit, run, limit, gpus, cpus, nodes, memory,
//                  tenant, project, user, class, checkpoint, due (after the submit), id, and
//                  Philly's own names for them
//   *.json         a list of objects with these fields, or what `gacct --json` prints
//
// and the same with .gz behind it; "-" is standard input. Errors say FILE:LINE: FIELD: what.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "common/time.h"

namespace gantry::replay {

struct TraceJob {
  std::uint64_t id = 0;  // as in the trace
  std::int64_t line = 0;
  Instant submit{};
  Duration run{};                 // what it needs; more than its limit is cut off
  std::optional<Duration> limit;  // unset: exactly `run`
  bool unlimited = false;         // has no limit
  std::uint32_t processors = 0;   // GPUs where the cluster has some, else cores
  std::uint32_t gpus = 0;         // over all nodes
  std::uint32_t cpus = 0;         // over all nodes; 0 with GPUs = one for each
  std::uint32_t nodes = 0;        // 0 = as few as do
  std::int64_t memory = 0;        // bytes on each node; 0 = the queue's default
  std::string tenant, project, user, priority_class;
  std::optional<Duration> checkpoint;  // it saves its state so often
  std::optional<Duration> due;         // after the submit
  Duration logged_wait{};              // SWF field 3: what the log's own scheduler did
};

struct Trace {
  std::string name;            // of the file
  std::vector<TraceJob> jobs;  // by submit, then as in the file
  std::vector<std::string> notes;
};

enum class TenantField : std::uint8_t { group, user, queue };  // of SWF
enum class TraceFormat : std::uint8_t { by_name, swf, csv, json };

struct TraceOptions {
  TraceFormat format = TraceFormat::by_name;  // of standard input: json
  TenantField tenant = TenantField::group;
};

Result<Trace> read_trace(const std::string& path, const TraceOptions& options);
Result<Trace> parse_trace(const std::string& text, const std::string& name, TraceFormat format,
                          const TraceOptions& options);

// One field of a CSV or JSON job; `what` names it in errors.
Result<void> set_field(TraceJob& job, std::string_view field, std::string_view text);
bool is_field(std::string_view field);

// The text of a file; *.gz through gzip.
Result<std::string> read_text(const std::string& path);

// Limits as users ask for them, where the trace has exact ones: run x U(1, 1 + factor), up to the
// next of 5, 15, 30 min, 1, 2, 4, 8, 24 h. The same for the same ids.
void draw_limits(Trace& trace, double factor);

// ---- for the readers

tl::unexpected<Error> wrong_line(const std::string& name, std::int64_t line, std::string_view field,
                                 std::string_view what);
Result<Trace> parse_swf(const std::string& text, const std::string& name, TenantField tenant);
Result<Trace> parse_csv(const std::string& text, const std::string& name);
Result<Trace> parse_json(const std::string& text, const std::string& name);

}  // namespace gantry::replay
