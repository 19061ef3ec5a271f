// A trace: which jobs were submitted when, and how long they ran. A trace is read from
//
//   *.swf          Standard Workload Format (Parallel Workloads Archive): processors are GPUs if
//                  the cluster has some, else cores; memory is ignored
//   *.csv          a header names the columns: submit, run, limit, gpus, cpus, nodes, memory,
//                  tenant, project, user, class, checkpoint, due (time after the submit), app and
//                  max_per_node (most jobs of that app on one node), began and ended (instead
//                  of run), id; the names of some public traces are known too. Columns are
//                  separated
//                  by , ; or tabs
//   *.json         a list of objects with these fields, one object on each line, or what
//                  `gacct --json` prints
//
// A file may be compressed by gzip; "-" is standard input. Errors say FILE:LINE: FIELD: what is
// wrong. Odd values with a clear meaning are accepted and reported in a note: jobs that never ran
// or ask for nothing are left out, -1 (or NaN, null, nothing) means "not given", and a run ends at
// its limit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "common/time/time.h"

namespace gantry::replay {

struct TraceJob {
  std::uint64_t id = 0;  // as in the trace
  std::int64_t line = 0;
  Instant submit{};
  Duration run{};                 // time that the job needs; cut off at its limit
  std::optional<Duration> limit;  // not set: exactly `run`
  bool unlimited = false;         // the job has no limit
  std::uint32_t processors = 0;   // GPUs if the cluster has some, else cores
  std::uint32_t gpus = 0;         // sum over all nodes
  std::uint32_t cpus = 0;         // sum over all nodes; 0 with GPUs = one for each GPU
  std::uint32_t nodes = 0;        // 0 = as few as possible
  std::int64_t memory = 0;        // bytes on each node; 0 = the queue's default
  std::string tenant, project, user, priority_class;
  std::optional<Duration> checkpoint;   // how often the job saves its state
  std::optional<Duration> due;          // due time, counted from the submit
  std::string app;                      // app: at most max_per_node of its jobs run on one node
  std::uint32_t max_per_node = 0;       // 0 = any number
  std::optional<Instant> began, ended;  // given instead of `run`
  Duration logged_wait{};               // SWF field 3: the wait under the log's own scheduler
};

struct Trace {
  std::string name;            // name of the file
  std::vector<TraceJob> jobs;  // by submit, then as in the file
  std::vector<std::string> notes;
};

enum class TenantField : std::uint8_t { group, user, queue };  // the SWF field that is the tenant
enum class TraceFormat : std::uint8_t { by_name, swf, csv, json };

struct TraceOptions {
  TraceFormat format = TraceFormat::by_name;  // format of standard input: json
  TenantField tenant = TenantField::group;
};

Result<Trace> read_trace(const std::string& path, const TraceOptions& options);
Result<Trace> parse_trace(const std::string& text, const std::string& name, TraceFormat format,
                          const TraceOptions& options);

// The field that a column's name stands for; "" = known but not used; nullopt: report
// no_such_field().
std::optional<std::string_view> field_of(std::string_view name);
std::string no_such_field(std::string_view name);
bool is_missing(std::string_view text);
// Sets one field of a CSV or JSON job, by its name from field_of().
Result<void> set_field(TraceJob& job, std::string_view field, std::string_view text);

// Limit for times and lengths that are read: 100 years.
inline constexpr double kMostSeconds = 36'500.0 * 86'400;

// The text of a file; decompressed if it is gzip.
Result<std::string> read_text(const std::string& path);

// Draws time limits that are as inaccurate as users' usually are, for a trace with exact ones: run
// x U(1, 1 + factor), rounded up to the next of 5, 15, 30 min, 1, 2, 4, 8, 24 h. The same ids
// always give the same limits.
void draw_limits(Trace& trace, double factor);

// ---- for the readers

tl::unexpected<Error> wrong_line(const std::string& name, std::int64_t line, std::string_view field,
                                 std::string_view what);
Result<Trace> parse_swf(std::string_view text, const std::string& name, TenantField tenant);
Result<Trace> parse_csv(std::string_view text, const std::string& name);
Result<Trace> parse_json(std::string_view text, const std::string& name);

}  // namespace gantry::replay
