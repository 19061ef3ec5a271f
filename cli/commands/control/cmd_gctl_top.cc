// gctl top: shows how jobs use their GPUs and slices, as their nodes last measured it, and what the
// jobs cost.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "cli/columns/job_words.h"
#include "cli/commands/control/gctl.h"
#include "cli/session.h"
#include "cli/table.h"
#include "common/money/money.h"
#include "common/proto/cluster.h"
#include "common/proto/job_query.h"
#include "common/text/text.h"

namespace gantry::cli::gctl_top {
namespace {

struct Top {
  Duration idle{};  // shows only jobs that have been idle for at least this long
  std::string format;
  bool no_header = false;
  bool json = false;
  bool cost = false;
};

struct TopRow {
  std::string node;
  proto::GpuTopRow gpu;
};

Result<void> set_idle(Top& top, std::string_view text) {
  ASSIGN(idle, parse_duration(text));
  if (!*idle) return fail(ErrorCode::invalid_argument, "must be a time");
  top.idle = **idle;
  return {};
}

constexpr Option kOptions[] = {
    flag("cost",
         "All jobs that run, by what they cost an hour, the dearest first; -o: j job, n name, u "
         "user, q partition, g GPUs, c cores, e elapsed, s cost so far, r cost per hour",
         put<&Top::cost>),
    takes("format", 'o', "FORMAT",
          "These columns, as %10j: j job, u user, q partition, N node, g GPU, m device, b busy, y "
          "memory, w power, i idle",
          put<&Top::format>),
    takes("idle", 'i', "TIME",
          "Only GPUs that their jobs have left idle for so long: minutes, or H:M:S",
          call<set_idle>),
    flag("json", "As JSON", put<&Top::json>),
    flag("noheader", 'h', "No header", put<&Top::no_header>),
};

using O = std::string&;
using R = const TopRow&;

constexpr Column<TopRow> kColumns[] = {
    {'j', "Job", "JOB", [](O o, R r) { o += r.gpu.display_id; }},
    {'u', "User", "USER", [](O o, R r) { o += r.gpu.user; }},
    {'q', "Partition", "PARTITION", [](O o, R r) { o += r.gpu.partition; }},
    {'N', "Node", "NODE", [](O o, R r) { o += r.node; }},
    {'g', "Gpu", "GPU", [](O o, R r) { o += std::to_string(r.gpu.gpu); }},
    {'m', "Device", "DEVICE", [](O o, R r) { o += r.gpu.name; }},
    {'b', "Busy", "BUSY",
     [](O o, R r) { o += r.gpu.busy ? fmt::format("{}%", *r.gpu.busy) : "-"; }},
    {'y', "Memory", "MEMORY",
     [](O o, R r) {
       o += fmt::format("{:.1f}/{:.1f}G", r.gpu.memory_mib / 1024.0, r.gpu.of_memory_mib / 1024.0);
     }},
    {'w', "Power", "POWER",
     [](O o, R r) { o += r.gpu.power_w ? fmt::format("{}W", *r.gpu.power_w) : "-"; }},
    {'i', "Idle", "IDLE", [](O o, R r) {
       o += r.gpu.idle ? format_duration_long(*r.gpu.idle) : "-";
       if (!r.gpu.has_process) o += "*";
     }}};

constexpr std::string_view kFormat = "%j %u %q %N %g %m %b %y %w %i";

// ---- by cost

struct CostRow {
  proto::JobRow job;
  Instant now{};
};
using C = const CostRow&;

constexpr Column<CostRow> kCostColumns[] = {
    {'j', "Job", "JOB", [](O o, C r) { o += shown_id(r.job); }},
    {'n', "Name", "NAME", [](O o, C r) { o += r.job.name; }},
    {'u', "User", "USER", [](O o, C r) { o += r.job.user; }},
    {'q', "Partition", "PARTITION", [](O o, C r) { o += r.job.partition; }},
    {'g', "Gpus", "GPUS", [](O o, C r) { o += gpus_text(r.job); }},
    {'c', "Cores", "CORES", [](O o, C r) { o += std::to_string(r.job.cpus); }},
    {'e', "Elapsed", "ELAPSED",
     [](O o, C r) { o += r.job.started ? format_duration(run_time(r.job, r.now)) : "-"; }},
    {'s', "Cost", "COST", [](O o, C r) { o += r.job.cost ? format_money(*r.job.cost, 4) : "-"; }},
    {'r', "Rate", "PER HOUR",
     [](O o, C r) { o += r.job.cost_rate ? format_money(*r.job.cost_rate, 4) : "-"; }}};
constexpr std::string_view kCostFormat = "%.3j %n %u %q %.4g %.5c %.7e %.8s %.8r";

Result<int> run_cost(const Invocation& in, const Top& top) {
  const auto columns = infos(std::span<const Column<CostRow>>(kCostColumns));
  ASSIGN(layout, parse_format(top.format.empty() ? kCostFormat : std::string_view(top.format),
                              columns, top.format.empty()));
  ASSIGN(session, Session::open(in.program()));
  proto::ListJobs query;
  query.filter.states = {"running", "configuring"};
  proto::ListJobsReply all;
  for (bool more = true; more;) {
    ASSIGN(page, session->call<proto::ListJobsReply>(query));
    query.after = page->next;
    more = page->more;
    page->rows.insert(page->rows.begin(), std::make_move_iterator(all.rows.begin()),
                      std::make_move_iterator(all.rows.end()));
    all = std::move(*page);
  }
  if (all.currency.empty())
    return fail(ErrorCode::not_found, "there are no prices: gtenant price apply -f FILE");
  std::stable_sort(all.rows.begin(), all.rows.end(),
                   [](const proto::JobRow& a, const proto::JobRow& b) {
                     return a.cost_rate.value_or(Money{}) > b.cost_rate.value_or(Money{});
                   });
  if (top.json) return print_pretty(all);
  TableWriter table(*layout, {.header = !top.no_header}, stdout);
  for (proto::JobRow& job : all.rows)
    add_row(table, std::span<const Column<CostRow>>(kCostColumns),
            CostRow{std::move(job), all.now});
  return 0;
}

Result<int> run(const Invocation& in) {
  Top top;
  OPERANDS(operands, in, &top, 0, kAnyOperands);
  if (top.cost) {
    if (!(*operands)->empty() || top.idle > Duration{})
      return fail(ErrorCode::usage, "--cost is of all jobs: leave out --idle and nodes");
    return run_cost(in, top);
  }
  const auto columns = infos(std::span<const Column<TopRow>>(kColumns));
  ASSIGN(layout, parse_format(top.format.empty() ? kFormat : std::string_view(top.format), columns,
                              top.format.empty()));
  ASSIGN(nodes, ask<proto::ListNodesReply>(in.program(), proto::ListNodes{**operands, {}, true}));
  std::vector<TopRow> rows;
  for (proto::NodeRow& node : nodes->nodes) {
    std::erase_if(node.top, [&](const proto::GpuTopRow& gpu) {
      return gpu.idle.value_or(Duration{}) < top.idle;
    });
    for (const proto::GpuTopRow& gpu : node.top) rows.push_back({node.name, gpu});
  }
  if (top.json) {
    std::erase_if(nodes->nodes, [](const proto::NodeRow& node) { return node.top.empty(); });
    return print_pretty(*nodes);
  }
  std::stable_sort(rows.begin(), rows.end(), [](R a, R b) { return a.gpu.job < b.gpu.job; });
  TableWriter table(*layout, {.header = !top.no_header, .colour = wants_colour(stdout)}, stdout);
  for (const TopRow& row : rows) add_row(table, std::span<const Column<TopRow>>(kColumns), row);
  return 0;
}

}  // namespace

const Command kGctlTop{
    {"top", "What jobs do on their GPUs now", "[NODE...]"},
    {.description =
         "Each GPU and slice as its node last saw it, every few seconds. IDLE is since it "
         "was last seen busy, or since its job has it; * = no process is on it. Older "
         "GPUs do not tell how busy a slice is, and a slice's power is its part of the "
         "GPU's.",
     .options = kOptions,
     .examples = {{"gctl top", "Every GPU that a job has"},
                  {"gctl top --idle 30", "Those that have done nothing for half an hour"},
                  {"gctl top --cost", "Who burns how much money an hour"}},
     .run = run}};

}  // namespace gantry::cli::gctl_top
