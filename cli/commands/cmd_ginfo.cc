// ginfo: shows partitions and nodes.
#include <fmt/core.h>

#include "cli/columns/gpu_columns.h"
#include "cli/columns/job_words.h"
#include "cli/columns/known_names.h"
#include "cli/columns/node_values.h"
#include "cli/command.h"
#include "cli/session.h"
#include "cli/table.h"
#include "common/text/hostlist.h"

namespace gantry::cli::ginfo {
namespace {

struct Query {
  std::string format;
  std::vector<std::string> nodes;
  std::vector<std::string> partitions;
  std::vector<std::string> states;
  bool no_header = false;
  bool by_node = false;
  bool long_form = false;
  bool reasons = false;
  bool summary = false;
  bool gpus = false;
  bool layout = false;
  bool drift = false;
  bool json = false;
  bool stats = false;
  bool all = false;
  bool dead = false;
  bool responding = false;
};

Result<void> add_nodes(Query& q, std::string_view text) {
  ASSIGN(names, expand_hostlist(text));
  q.nodes.insert(q.nodes.end(), names->begin(), names->end());
  return {};
}

constexpr Option kOptions[] = {
    flag("all", 'a', "All partitions (they always are)", put<&Query::all>),
    flag("dead", 'd', "Only nodes that do not respond", put<&Query::dead>),
    flag("drift", "GPUs, drivers and slices that are not as they should be", put<&Query::drift>),
    takes(
        "format", 'o', "FORMAT",
        "Fields as %[[.]WIDTH]LETTER with any text around them; the letters are in the manual page",
        put<&Query::format>)
        .from_env("FORMAT"),
    flag("gpus", 'g', "Every GPU and slice, who has it, and what is wrong with it",
         put<&Query::gpus>),
    flag("json", "All fields of nodes and partitions as JSON", put<&Query::json>),
    flag("layout", "Every GPU drawn: its slices, whose they are, and what is free",
         put<&Query::layout>),
    flag("list-reasons", 'R', "Why nodes are down, drained or closed", put<&Query::reasons>),
    flag("long", 'l', "More columns", put<&Query::long_form>),
    flag("Node", 'N', "One line for each node", put<&Query::by_node>),
    takes("nodes", 'n', "NODES", "These nodes", call<add_nodes>),
    flag("noheader", 'h', "No header", put<&Query::no_header>),
    takes("partition", 'p', "PARTITION,...", "These partitions", put<&Query::partitions>)
        .from_env("PARTITION"),
    flag("responding", 'r', "Only nodes that respond", put<&Query::responding>),
    takes("states", 't', "STATE,...",
          "Nodes in these states: idle, mixed, allocated, drained, draining, down",
          put<&Query::states>),
    flag("stats", "Counters of the controller", put<&Query::stats>),
    flag("summarize", 's', "One line for each partition", put<&Query::summary>),
    refuses("Format", 'O', "use -o/--format"),
    refuses("clusters", 'M', "there is one cluster"),
    refuses("exact", 'e', "nodes are always grouped exactly"),
    refuses("iterate", 'i', "use watch(1)"),
    refuses("reservation", 'T', "use gctl reservations"),
    refuses("sort", 'S', "partitions and nodes are listed in the order of gantry.yaml"),
};

constexpr std::string_view kPrefixes[] = {"SINFO_", "GINFO_"};

// Compares a node's state with those given with -t, long or short, in any case.
bool wanted(const Query& q, const proto::NodeRow& node) {
  const bool silent = node.health != NodeHealth::up;
  if ((q.dead && !silent) || (q.responding && silent)) return false;
  if (q.reasons && node.reason.empty() && node.gpu_trouble.empty() && node.health == NodeHealth::up)
    return false;
  if (q.states.empty()) return true;
  std::string names[] = {node_state(node), node_state_compact(node)};
  for (std::string& name : names)
    if (name.ends_with('*')) name.pop_back();
  for (const std::string& state : q.states) {
    std::string word = state;
    for (char& c : word) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (word == names[0] || word == names[1] || word == "all") return true;
    if (word == "drain" && node.intent == NodeIntent::drain) return true;
  }
  return false;
}

Result<void> check_node_states(const std::vector<std::string>& states) {
  static constexpr std::string_view kStates[] = {"all",   "alloc",   "allocated", "down",
                                                 "drain", "drained", "drng",      "draining",
                                                 "idle",  "mix",     "mixed"};
  for (const std::string& state : states) {
    std::string word = state;
    for (char& c : word) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (std::find(std::begin(kStates), std::end(kStates), word) == std::end(kStates))
      return fail(ErrorCode::invalid_argument,
                  fmt::format("Bad state string: \"{}\"; use idle, mixed, allocated, drained, "
                              "draining, down or all",
                              state));
  }
  return {};
}

std::string_view format_of(const Query& q) {
  if (!q.format.empty()) return q.format;
  if (q.reasons) return kInfoReasonFormat;
  if (q.summary) return kInfoSummaryFormat;
  if (q.by_node) return q.long_form ? kInfoNodeLongFormat : kInfoNodeFormat;
  return q.long_form ? kInfoLongFormat : kInfoFormat;
}

// Columns of partitions make groups within each partition; all other columns decide which nodes
// share a line.
std::vector<NodeGroup> group(const Query& q, const Layout& layout,
                             const std::vector<proto::NodeRow>& nodes,
                             const std::vector<proto::PartitionRow>& partitions) {
  const bool asked = !q.nodes.empty() || !q.states.empty() || q.reasons || q.by_node;
  return group_nodes(nodes, shows_partitions(layout, node_columns()) ? &partitions : nullptr,
                     !asked, [&](const NodeGroup& alone) {
                       const std::string key = node_key(layout, node_columns(), alone);
                       return q.by_node ? key + alone.nodes.front()->name : key;
                     });
}

Result<int> print_stats(Session& session, bool json) {
  ASSIGN(stats, session.call<proto::ShowStatsReply>(proto::ShowStats{}));
  if (json)
    fmt::print("{}\n", codec::to_json(*stats, codec::JsonStyle::pretty));
  else
    for (const auto& [name, value] : stats->values) fmt::print("{} {}\n", name, value);
  return 0;
}

// Reports nodes that should have GPUs and have none, on standard error.
void tell_why_none(const std::vector<proto::NodeRow>& nodes) {
  for (const proto::NodeRow& node : nodes)
    if (node.gpus.gpus.empty() && !node.gpus.why_none.empty())
      fmt::print(stderr, "ginfo: {} has no GPUs: {}\n", node.name, node.gpus.why_none);
}

void print_layout(const std::vector<proto::NodeRow>& nodes) {
  const auto width = static_cast<std::uint32_t>(std::max(40, terminal_width(stdout)));
  for (const std::string& line : layout_lines(nodes, width)) fmt::print("{}\n", line);
  tell_why_none(nodes);
}

void print_drift(const Query& q, const std::vector<proto::NodeRow>& nodes) {
  const std::vector<Drift> all = drift_of(nodes);
  std::size_t node = 4, wanted = 6;
  for (const Drift& d : all) {
    node = std::max(node, d.node.size());
    wanted = std::max(wanted, d.wanted.size());
  }
  if (!q.no_header) fmt::print("{:<{}} GPU {:<{}} FOUND\n", "NODE", node, "WANTED", wanted);
  for (const Drift& d : all)
    fmt::print("{:<{}} {:>3} {:<{}} {}\n", d.node, node, d.gpu.empty() ? "-" : d.gpu, d.wanted,
               wanted, d.found);
}

Result<void> check_partitions(Session& session, const Query& q) {
  proto::JobFilter named;
  named.partitions = q.partitions;
  return check_names(session, named, {});
}

Result<int> print_gpus(Session& session, const Query& q) {
  const auto columns = gpu_columns();
  ASSIGN(layout, parse_format(q.format.empty() ? kGpuFormat : std::string_view(q.format),
                              infos(columns), q.format.empty()));
  TRY(check_partitions(session, q));
  ASSIGN(nodes, session.call<proto::ListNodesReply>(proto::ListNodes{q.nodes, q.partitions, true}));
  std::erase_if(nodes->nodes, [&](const proto::NodeRow& node) { return !wanted(q, node); });
  if (q.json) return print_pretty(*nodes);
  if (q.layout) return print_layout(nodes->nodes), 0;
  if (q.drift) return print_drift(q, nodes->nodes), 0;
  TableWriter table(*layout, {.header = !q.no_header, .colour = wants_colour(stdout)}, stdout);
  for (const GpuRow& row : gpu_rows(nodes->nodes)) add_row(table, columns, row);
  tell_why_none(nodes->nodes);
  return 0;
}

Result<int> run(const Invocation& invocation) {
  Query q;
  OPERANDS(operands, invocation, &q, 0, 0);
  TRY(check_node_states(q.states));
  if (q.layout && q.drift)
    return fail(ErrorCode::usage, "--layout and --drift are two tables: give one of them");
  if ((q.layout || q.drift) && !q.format.empty())
    return fail(ErrorCode::usage, "--format does not apply to --layout and --drift");
  if (q.gpus || q.layout || q.drift) {
    ASSIGN(session, Session::open(invocation.program()));
    return print_gpus(*session, q);
  }
  const auto columns = infos(node_columns());
  ASSIGN(layout, parse_format(format_of(q), columns, q.format.empty()));
  ASSIGN(session, Session::open(invocation.program()));
  if (q.stats) return print_stats(*session, q.json);
  TRY(check_partitions(*session, q));

  ASSIGN(partitions, session->call<proto::ListPartitionsReply>(proto::ListPartitions{}));
  ASSIGN(nodes,
         session->call<proto::ListNodesReply>(proto::ListNodes{q.nodes, q.partitions, q.json}));
  std::erase_if(partitions->partitions, [&](const proto::PartitionRow& p) {
    return !q.partitions.empty() &&
           std::find(q.partitions.begin(), q.partitions.end(), p.name) == q.partitions.end();
  });
  std::erase_if(nodes->nodes, [&](const proto::NodeRow& node) { return !wanted(q, node); });
  if (q.json) {
    // Joins two JSON objects into one: {"nodes": [...], "now": ..., "partitions": [...]}
    std::string first = codec::to_json(*nodes, codec::JsonStyle::pretty);
    const std::string second = codec::to_json(*partitions, codec::JsonStyle::pretty);
    first.resize(first.find_last_not_of(" \n", first.rfind('}') - 1) + 1);
    fmt::print("{},{}\n", first, std::string_view(second).substr(1));
    return 0;
  }
  TableWriter table(*layout, {.header = !q.no_header, .colour = wants_colour(stdout)}, stdout);
  for (const NodeGroup& g : group(q, *layout, nodes->nodes, partitions->partitions))
    add_row(table, node_columns(), g);
  return 0;
}

}  // namespace

extern const Command kGinfo;
const Command kGinfo{
    {"ginfo", "Show partitions and nodes"},
    {.description =
         "Lists the partitions with their nodes, grouped by state. A `*` behind a partition marks "
         "the "
         "default one; behind a state it means that the node does not respond.\n\n"
         "Fields of -o: %P and %R partition, %a up or down, %l and %L longest and usual time "
         "limit, "
         "%s size of jobs, %p priority, %D number of nodes, %F nodes as "
         "allocated/idle/other/total, "
         "%N node list, %n node, %o address, %t and %T state, %C cores as "
         "allocated/idle/other/total, %c cores, %m memory and %e free memory and %d scratch in MB, "
         "%O load, %f features, %G GPUs, %X sockets, %Y cores per socket, %Z threads per core, %z "
         "the "
         "three, %E reason, %u who set it, %H since when, %v version, %x container runtime.",
     .options = kOptions,
     .examples = {{"ginfo", "Partitions, and how many of their nodes are in which state"},
                  {"ginfo -N -o '%N %t %C %m %x'",
                   "Each node with its cores, memory and container runtime"},
                  {"ginfo -R", "Why nodes are out of service"},
                  {"ginfo --gpus -n node1", "The GPUs of a node, and whose jobs have them"},
                  {"watch ginfo --layout", "How GPUs are cut, as it follows the queue"}},
     .exits = {{"0", "fine"}, {"1", "no answer"}, {"2", "the command line is wrong"}},
     .run = run,
     .env_prefixes = kPrefixes}};

}  // namespace gantry::cli::ginfo
