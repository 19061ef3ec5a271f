// sinfo: shows partitions and nodes as Slurm's does.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "cli/columns/job_words.h"
#include "cli/columns/node_values.h"
#include "cli/slurm/frame.h"
#include "cli/slurm/json.h"
#include "cli/slurm/records/node_fields.h"
#include "common/proto/reservation.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

struct SinfoQuery {
  std::vector<std::string> partitions;
  std::vector<std::string> nodes;
  // A node must match one of these lists, with all of its states.
  std::vector<std::vector<std::string>> states;
  std::string letters;
  std::string names;
  std::string sort;
  std::optional<std::string> clusters;
  std::int64_t iterate = 0;  // seconds; 0 = once
  bool no_header = false;
  bool by_node = false;
  bool long_form = false;
  bool summary = false;
  bool reasons = false;
  bool reservations = false;
  bool exact = false;
  bool dead = false;
  bool responding = false;
  bool json = false;
  bool yaml = false;
  std::size_t all = 0;     // how often --all or SINFO_ALL was given
  std::size_t chosen = 0;  // likewise for --partition or SINFO_PARTITION
};

Result<void> set_sinfo_partitions(SinfoQuery& q, std::string_view text) {
  q.partitions = split_list(text);
  ++q.chosen;
  return {};
}
Result<void> set_sinfo_letters(SinfoQuery& q, std::string_view text) {
  q.letters = text;
  q.names.clear();
  return {};
}
Result<void> set_sinfo_names(SinfoQuery& q, std::string_view text) {
  q.names = text;
  q.letters.clear();
  return {};
}
Result<void> set_sinfo_sort(SinfoQuery& q, std::string_view text) {
  TRY(check_node_sort(text));
  q.sort = text;
  return {};
}
Result<void> set_sinfo_iterate(SinfoQuery& q, std::string_view text) {
  const auto n = parse_integer("iterate", text, 1, 86'400);
  if (!n) return fail(ErrorCode::invalid_argument, fmt::format("--iterate={}", text));
  q.iterate = *n;
  return {};
}
// States of Slurm's nodes, in long and short form. A state that Gantry's nodes never have matches
// nothing.
struct StateWord {
  std::string_view word;
  std::string_view shown;  // the compact form without marks; "" if a node never has this state
};
constexpr StateWord kSinfoStates[] = {{"all", ""},
                                      {"alloc", "alloc"},
                                      {"allocated", "alloc"},
                                      {"cloud", ""},
                                      {"blocked", ""},
                                      {"dynamic_future", ""},
                                      {"dynamic_norm", ""},
                                      {"invalid_reg", ""},
                                      {"external", ""},
                                      {"reboot_issued", ""},
                                      {"reboot_requested", ""},
                                      {"comp", "comp"},
                                      {"completing", "comp"},
                                      {"down", "down"},
                                      {"drain", "drain"},
                                      {"drained", "drain"},
                                      {"drng", "drng"},
                                      {"draining", "drng"},
                                      {"fail", ""},
                                      {"future", ""},
                                      {"futr", ""},
                                      {"idle", "idle"},
                                      {"maint", "maint"},
                                      {"mix", "mix"},
                                      {"mixed", "mix"},
                                      {"no_respond", "*"},
                                      {"npc", ""},
                                      {"perfctrs", ""},
                                      {"planned", ""},
                                      {"plnd", ""},
                                      {"power_down", ""},
                                      {"power_up", ""},
                                      {"powered_down", ""},
                                      {"powering_down", ""},
                                      {"powering_up", ""},
                                      {"reboot", ""},
                                      {"resv", "resv"},
                                      {"reserved", "resv"},
                                      {"unk", ""},
                                      {"unknown", ""}};

const StateWord* sinfo_state(std::string_view word) {
  const auto known = std::find_if(std::begin(kSinfoStates), std::end(kSinfoStates),
                                  [&](const StateWord& s) { return s.word == word; });
  return known == std::end(kSinfoStates) ? nullptr : known;
}

// Reads states separated by commas: a node must be in one of them. Of states that are joined by &
// it must be in all.
Result<void> set_sinfo_states(SinfoQuery& q, std::string_view text) {
  q.states.clear();
  for (const std::string& item : split_list(text)) {
    std::vector<std::string>& all = q.states.emplace_back();
    for (std::size_t at = 0; at <= item.size();) {
      const std::size_t end = std::min(item.find('&', at), item.size());
      const std::string part = item.substr(at, end - at);
      at = end + 1;
      std::string word = lower_case(part);
      while (!word.empty() && std::string_view("*~#!%$@^-").find(word.back()) != std::string::npos)
        word.pop_back();
      if (sinfo_state(word) == nullptr)
        return fail(ErrorCode::invalid_argument,
                    fmt::format("Bad state string: \"{}\"\nvalid states: "
                                "unknown,down,idle,allocated,mixed,drain,drained,draining,"
                                "no_respond,reserved,completing,maint,planned,all",
                                part));
      all.push_back(word);
    }
  }
  return {};
}

constexpr Option kSinfoOptions[] = {
    flag("all", 'a',
         "Hidden partitions as well, of which there are none; not together with --partition",
         does<[](SinfoQuery& q) { ++q.all; }>)
        .from_env("ALL"),
    takes("clusters", 'M', "NAMES", "Only this cluster's name is accepted",
          put<&SinfoQuery::clusters>),
    takes("cluster", "NAME", "The same", put<&SinfoQuery::clusters>),
    flag("dead", 'd', "Only nodes that do not respond", put<&SinfoQuery::dead>),
    flag("exact", 'e', "Group nodes only if they are equal in everything", put<&SinfoQuery::exact>),
    takes("format", 'o', "FORMAT", "Fields as %[[.]WIDTH]LETTER with any text around them",
          call<set_sinfo_letters>)
        .from_env("FORMAT"),
    takes("Format", 'O', "NAME[:[.][WIDTH][TEXT]],...", "Fields by name", call<set_sinfo_names>),
    flag("hide", "No hidden partitions, of which there are none", always),
    takes("iterate", 'i', "SECONDS", "Show it again and again", call<set_sinfo_iterate>),
    may_take("json", "data_parser", "Nodes as JSON", put<&SinfoQuery::json>),
    flag("local", "Nodes of this cluster, which is always so", always).from_env("LOCAL"),
    flag("long", 'l', "More columns", put<&SinfoQuery::long_form>),
    flag("Node", 'N', "A line for each node and partition", put<&SinfoQuery::by_node>),
    takes("nodes", 'n', "NODES", "Only these nodes", parsed<expand_hostlist, &SinfoQuery::nodes>),
    flag("noconvert", "Do not convert units, which is always so", always),
    flag("noheader", 'h', "No header", put<&SinfoQuery::no_header>),
    takes("partition", 'p', "partition,...", "Only these partitions", call<set_sinfo_partitions>)
        .from_env("PARTITION"),
    flag("reservation", 'T', "Show reservations instead", put<&SinfoQuery::reservations>),
    flag("responding", 'r', "Only nodes that respond", put<&SinfoQuery::responding>),
    flag("list-reasons", 'R', "Why nodes are down or drained", put<&SinfoQuery::reasons>),
    takes("sort", 'S', "[+-#]LETTER,...",
          "Order of the lines, by letters of -o (default #P,-t: partitions as they are configured; "
          "with -N N)",
          call<set_sinfo_sort>)
        .from_env("SORT"),
    takes("states", 't', "STATE,...", "Only nodes in these states", call<set_sinfo_states>),
    flag("summarize", 's', "A line for each partition", put<&SinfoQuery::summary>),
    flag("verbose", 'v', "List the options that are in force on standard error", always),
    may_take("yaml", "data_parser", "Nodes as YAML", put<&SinfoQuery::yaml>),
    refuses("federation", "there is one cluster"),
    refuses("future", 'F', "there are no nodes of the future"),
};
constexpr std::string_view kSinfoPrefixes[] = {"SINFO_"};

std::string usual_format(const SinfoQuery& q, std::size_t partition, std::size_t node) {
  if (q.summary) return fmt::format("%{}P %.5a %.10l %.16F %N", partition);
  if (q.by_node && q.long_form)
    return fmt::format("%{}N %.6D %.{}P %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E", node, partition);
  if (q.by_node) return fmt::format("%{}N %.6D %.{}P %6t", node, partition);
  if (q.reasons) return q.long_form ? "%20E %12U %19H %6t %N" : "%20E %9u %19H %N";
  if (q.long_form)
    return fmt::format("%{}P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %.11i %N", partition);
  return fmt::format("%{}P %.5a %.10l %.6D %.6t %N", partition);
}

// The environment's SINFO_FORMAT is used only if no typed option chooses a format, and
// SINFO_PARTITION only if no typed option chooses the partitions.
bool outdone_in_sinfo(std::span<const Given> typed, const Given& of_environment) {
  const std::string_view name = of_environment.option->name;
  if (name == "partition") return was_typed(typed, {"all"});
  return name == "format" &&
         was_typed(typed, {"format", "Format", "summarize", "Node", "list-reasons"});
}

// A typed option may be combined with the other one's variable, but two typed options, or two
// variables, may not. With a typed --all, SINFO_PARTITION is ignored (outdone_in_sinfo).
bool chooses_twice(const Invocation& call, const SinfoQuery& q) {
  const auto is_set = [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != 0;
  };
  const bool all = is_set("SINFO_ALL"), chosen = is_set("SINFO_PARTITION");
  const auto refuse = [&](std::string_view a, std::string_view b) {
    complain(call, fmt::format("Conflicting options, {} and {}, specified. Please choose one or "
                               "the other.",
                               a, b));
    return true;
  };
  if (all && chosen) return refuse("SINFO_ALL", "SINFO_PARTITION");
  return q.all > (all ? 1 : 0) && q.chosen > 0 && refuse("-a", "-p");
}

bool is_wanted(const SinfoQuery& q, const proto::NodeRow& node) {
  const bool silent = node.health != NodeHealth::up;
  if ((q.dead && !silent) || (q.responding && silent)) return false;
  const std::string mark = node_state_compact(node);
  const std::string state = mark.substr(0, mark.find('*'));
  if (q.reasons && state != "down" && state != "drain" && state != "drng") return false;
  const auto is_in = [&](const std::string& word) {
    const std::string_view shown = sinfo_state(word)->shown;
    if (word == "all" || shown == state) return true;
    if (shown == "alloc" && state == "mix") return true;  // a part of the node is allocated
    if (word == "drain" && node.intent == NodeIntent::drain) return true;
    return shown == "*" && mark != state;
  };
  return q.states.empty() || std::any_of(q.states.begin(), q.states.end(), [&](const auto& words) {
           return std::all_of(words.begin(), words.end(), is_in);
         });
}

struct Cluster {
  std::vector<proto::PartitionRow> partitions;
  std::vector<proto::NodeRow> nodes;
};

Result<Cluster> ask_cluster(const SinfoQuery& q, bool gpus) {
  ASSIGN(session, Session::open("sinfo"));
  ASSIGN(partitions, session->call<proto::ListPartitionsReply>(proto::ListPartitions{}));
  ASSIGN(nodes, session->call<proto::ListNodesReply>(proto::ListNodes{{}, q.partitions, gpus}));
  std::erase_if(partitions->partitions, [&](const proto::PartitionRow& p) {
    const auto& names = q.partitions;
    return !names.empty() && std::find(names.begin(), names.end(), p.name) == names.end();
  });
  // A node that does not exist is no error in Slurm.
  std::erase_if(nodes->nodes, [&](const proto::NodeRow& node) {
    const bool named =
        q.nodes.empty() || std::find(q.nodes.begin(), q.nodes.end(), node.name) != q.nodes.end();
    return !named || !is_wanted(q, node);
  });
  return Cluster{std::move(partitions->partitions), std::move(nodes->nodes)};
}

// Nodes share a line if the values of all fields are the same, except for fields that are sums.
std::vector<NodeGroup> node_lines(const SinfoQuery& q, const Layout& layout, const Cluster& all,
                                  std::string_view cluster) {
  const auto fields = node_fields();
  const bool by_partition =
      shows_partitions(layout, fields) ||
      std::any_of(layout.cells.begin(), layout.cells.end(),
                  [&](const Cell& c) { return fields[c.column].name == "Priority"; });
  auto lines = group_nodes(all.nodes, by_partition ? &all.partitions : nullptr,
                           !q.reasons && !q.by_node, [&](const NodeGroup& alone) {
                             const proto::NodeRow& node = *alone.nodes.front();
                             std::string key = node_key(layout, fields, alone);
                             if (q.by_node) key += node.name;
                             if (q.exact) key += to_string(node.total) + node_state(node);
                             return key;
                           });
  for (NodeGroup& line : lines) line.cluster = cluster;
  return lines;
}

int load_partitions_error(const Error& error) {
  return refused("slurm_load_partitions: {}\n", words_for(error).text);
}

int show_reservations(const SinfoQuery& q) {
  const auto reply = ask<proto::ListReservationsReply>("sinfo", proto::ListReservations{});
  if (!reply) return load_partitions_error(reply.error());
  if (reply->reservations.empty()) {
    fmt::print("No reservations in the system\n");
    return 0;
  }
  if (!q.no_header)
    fmt::print("{:<12} {:>8} {:>19} {:>19} {:>11}  {}\n", "RESV_NAME", "STATE", "START_TIME",
               "END_TIME", "DURATION", "NODELIST");
  for (const proto::ReservationRow& row : reply->reservations)
    fmt::print("{:<12} {:>8} {:>19} {:>19} {:>11}  {}\n", row.name,
               row.active ? "ACTIVE" : "INACTIVE", shown_time(row.start), shown_time(row.end),
               format_duration_long(row.end - row.start), row.node_list);
  return 0;
}

int show_nodes(const SinfoQuery& q, const std::string& named) {
  const bool gpus = q.json || q.yaml || q.letters.find('G') != std::string::npos ||
                    lower_case(q.names).find("gres") != std::string::npos;
  const auto all = ask_cluster(q, gpus);
  if (!all) return load_partitions_error(all.error());
  if (q.json || q.yaml) {
    Tree nodes = Tree::list();
    for (const proto::NodeRow& node : all->nodes) nodes.add("", node_tree(node));
    Tree lines = sinfo_tree(all->partitions, all->nodes, cluster_name());
    std::vector<std::pair<std::string, Tree>> payload;
    payload.emplace_back("sinfo", std::move(lines));
    payload.emplace_back("nodes", std::move(nodes));
    print_document(q.json ? Shape::json : Shape::yaml, "sinfo", std::move(payload));
    return 0;
  }
  std::size_t partition = 9;
  std::size_t node = 9;
  for (const auto& p : all->partitions)
    partition = std::max(partition, p.name.size() + p.is_default);
  for (const auto& n : all->nodes) node = std::max(node, n.name.size());
  std::vector<std::string> unknown;
  const auto names = infos(node_fields());
  const Layout layout = !q.names.empty() && lower_case(q.names) != "all"
                            ? names_layout(q.names, names, unknown)
                            : letters_layout(!q.names.empty()    ? "%all"
                                             : q.letters.empty() ? usual_format(q, partition, node)
                                                                 : q.letters,
                                             names, unknown);
  for (const std::string& name : unknown)
    fmt::print(stderr, "sinfo: error: Invalid job format specification: {}\n", name);
  if ((q.long_form || q.iterate > 0) && !q.no_header) print_date();
  if (!named.empty() && !q.no_header) fmt::print("CLUSTER: {}\n", named);
  const std::string cluster = cluster_name();
  TableWriter table(layout, {.header = !q.no_header}, stdout);
  auto lines = node_lines(q, layout, *all, cluster);
  sort_node_lines(lines, !q.sort.empty() ? q.sort : q.by_node ? "N" : "#P,-t", all->partitions);
  for (const NodeGroup& line : lines) add_row(table, node_fields(), line);
  return 0;
}

Result<int> run_sinfo(const Invocation& call) {
  SinfoQuery q;
  int status = 0;
  const auto operands = parse_into(call, &q, status, outdone_in_sinfo);
  if (!operands) return status;
  if (!operands->empty()) return complain(call, "Unrecognized option: " + operands->front());
  std::string named;
  if (chooses_twice(call, q)) return 1;
  if (!check_clusters(call, q.clusters, named, status)) return status;
  while (true) {
    const int shown = q.reservations ? show_reservations(q) : show_nodes(q, named);
    if (q.iterate == 0) return shown;
    fmt::print("\n");
    std::fflush(stdout);
    const timespec pause{q.iterate, 0};
    ::nanosleep(&pause, nullptr);
  }
}

}  // namespace

extern const Command kSinfo;
const Command kSinfo{
    {"sinfo", "Show partitions and nodes"},
    {.description =
         "Slurm's sinfo, over ginfo. Lists the partitions with their nodes, grouped by what the "
         "fields show. A * behind a partition marks the default one; behind a state it means that "
         "the node does not respond.",
     .options = kSinfoOptions,
     .examples = {{"sinfo", "Partitions with their nodes, grouped by state"},
                  {"sinfo -N -o '%N %t %C %m %G'",
                   "A line for each node: state, cores, memory, GPUs"},
                  {"sinfo -R", "Why nodes are down or drained"}},
     .exits = {{"0", "fine"}, {"1", "no answer, or the command line is wrong"}},
     .run = run_sinfo,
     .env_prefixes = kSinfoPrefixes}};

}  // namespace gantry::cli::slurm
