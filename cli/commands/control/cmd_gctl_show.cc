// gctl show: each sub-command shows one kind of thing, in Slurm's record layout or as JSON.
#include <fmt/core.h>

#include <cstdlib>

#include "cli/columns/ended_jobs.h"
#include "cli/columns/show_records.h"
#include "cli/commands/control/gctl.h"
#include "cli/session.h"
#include "cli/submit/job_refs.h"
#include "common/proto/job_text.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"

namespace gantry::cli::gctl_show {
namespace {

struct Show {
  bool oneline = false;
  bool json = false;
  bool script = false;
};

constexpr Option kOneline = flag("oneliner", 'o', "One line for each record", put<&Show::oneline>);
constexpr Option kJson = flag("json", "All fields as JSON", put<&Show::json>);
constexpr Option kJobOptions[] = {
    kOneline,
    kJson,
    flag("script", "Print the batch script instead", put<&Show::script>),
};
constexpr Option kRecordOptions[] = {kOneline, kJson};
constexpr Option kJsonOptions[] = {kJson};

template <class Reply>
bool print_json(const Show& show, const Reply& reply) {
  if (show.json) fmt::print("{}\n", codec::to_json(reply, codec::JsonStyle::pretty));
  return show.json;
}

// Shows a job that the queue no longer has, from accounting.
Result<void> show_ended(Session& session, const Show& show, const proto::JobRef& ref) {
  ASSIGN(ended, ended_jobs(session, ref));
  if (ended->empty()) return tl::unexpected(no_such_job(ref));
  if (show.script)
    return fail(ErrorCode::not_found, fmt::format("{}; its script is not kept any more",
                                                  ended_words(ended->front().row, "")));
  if (show.json) {
    fmt::print("{}\n", codec::to_json(proto::HistoryReply{*ended, false, system_now(), {}, {}},
                                      codec::JsonStyle::pretty));
    return {};
  }
  RecordWriter out(show.oneline, stdout);
  for (const proto::HistoryRow& row : *ended) write_ended_job(out, row, system_now());
  return {};
}

Result<int> run_job(const Invocation& in) {
  Show show;
  ASSIGN(operands, in.parse(&show, 1, kAnyOperands));
  if (!*operands) return 0;
  ASSIGN(refs, job_refs_of(**operands));
  ASSIGN(session, Session::open(in.program()));
  for (const proto::JobRef& ref : *refs) {
    const auto reply = session->call<proto::ShowJobReply>(proto::ShowJob{ref, show.script});
    const bool gone = reply ? reply->jobs.empty() : reply.error().code == ErrorCode::not_found;
    if (gone) {
      TRY(show_ended(*session, show, ref));
      continue;
    }
    if (!reply) return tl::unexpected(reply.error());
    if (show.script) {
      std::fwrite(reply->jobs[0].script.data(), 1, reply->jobs[0].script.size(), stdout);
      continue;
    }
    if (print_json(show, *reply)) continue;
    RecordWriter out(show.oneline, stdout);
    for (const proto::JobDetail& job : reply->jobs) write_job(out, job, reply->now);
  }
  return 0;
}

Result<int> run_node(const Invocation& in) {
  Show show;
  ASSIGN(operands, in.parse(&show, 0, 1));
  if (!*operands) return 0;
  proto::ListNodes list;
  if (!(*operands)->empty()) {
    ASSIGN(names, expand_hostlist((*operands)->front()));
    list.nodes = std::move(*names);
  }
  list.gpus = show.json;
  ASSIGN(reply, ask<proto::ListNodesReply>(in.program(), list));
  if (reply->nodes.empty() && !list.nodes.empty())
    return fail(ErrorCode::not_found, fmt::format("Node {} not found", list.nodes[0]));
  if (print_json(show, *reply)) return 0;
  RecordWriter out(show.oneline, stdout);
  for (const proto::NodeRow& node : reply->nodes) write_node(out, node);
  return 0;
}

Result<int> run_partition(const Invocation& in) {
  Show show;
  ASSIGN(operands, in.parse(&show, 0, 1));
  if (!*operands) return 0;
  ASSIGN(session, Session::open(in.program()));
  ASSIGN(reply, session->call<proto::ListPartitionsReply>(proto::ListPartitions{}));
  ASSIGN(nodes, session->call<proto::ListNodesReply>(proto::ListNodes{}));
  if (!(*operands)->empty()) {
    std::erase_if(reply->partitions,
                  [&](const proto::PartitionRow& p) { return p.name != (*operands)->front(); });
    if (reply->partitions.empty())
      return fail(ErrorCode::not_found,
                  fmt::format("Partition {} not found", (*operands)->front()));
  }
  if (print_json(show, *reply)) return 0;
  RecordWriter out(show.oneline, stdout);
  NodeMembers members(nodes->nodes);
  for (const proto::PartitionRow& partition : reply->partitions)
    write_partition(out, partition, members);
  return 0;
}

Result<int> run_config(const Invocation& in) {
  Show show;
  ASSIGN(operands, in.parse(&show, 0, 0));
  if (!*operands) return 0;
  ASSIGN(reply, ask<proto::ShowConfigReply>(in.program(), proto::ShowConfig{}));
  if (print_json(show, *reply)) return 0;
  for (const auto& [name, value] : reply->values) fmt::print("{} = {}\n", name, value);
  return 0;
}

Result<int> run_stats(const Invocation& in) {
  Show show;
  ASSIGN(operands, in.parse(&show, 0, 0));
  if (!*operands) return 0;
  ASSIGN(reply, ask<proto::ShowStatsReply>(in.program(), proto::ShowStats{}));
  if (print_json(show, *reply)) return 0;
  for (const auto& [name, value] : reply->values) fmt::print("{} {}\n", name, value);
  return 0;
}

// ---- host lists: no controller is asked

Result<std::string> host_list_text(const std::vector<std::string>& operands) {
  if (!operands.empty()) return operands[0];
  for (const char* name : {"SLURM_JOB_NODELIST", "GANTRY_JOB_NODELIST"})
    if (const char* list = std::getenv(name); list != nullptr) return std::string(list);
  return fail(ErrorCode::invalid_argument,
              "no host list is given, and SLURM_JOB_NODELIST is not set");
}

Result<int> run_hostnames(const Invocation& in) {
  Show show;
  ASSIGN(operands, in.parse(&show, 0, 1));
  if (!*operands) return 0;
  ASSIGN(text, host_list_text(**operands));
  ASSIGN(names, expand_hostlist(*text));
  for (const std::string& name : *names) fmt::print("{}\n", name);
  return 0;
}

Result<int> run_hostlist(const Invocation& in) {
  Show show;
  ASSIGN(operands, in.parse(&show, 0, 1));
  if (!*operands) return 0;
  ASSIGN(text, host_list_text(**operands));
  ASSIGN(names, expand_hostlist(*text));
  fmt::print("{}\n", compress_hostlist(*names));
  return 0;
}

constexpr Example kJobExamples[] = {{"gctl show job 12", "Everything about job 12, ended or not"},
                                    {"gctl show job --script 12", "The script that was submitted"}};
const Command kJob{.name = "job",
                   .summary = "Everything about jobs",
                   .operands = "JOB...",
                   .options = kJobOptions,
                   .examples = kJobExamples,
                   .run = run_job};
constexpr Example kNodeExamples[] = {
    {"gctl show node gpu[01-04]", "Four nodes"},
    {"gctl show node --json", "All nodes with their GPUs, for programs"}};
const Command kNode{.name = "node",
                    .summary = "Everything about nodes",
                    .operands = "[NODES]",
                    .options = kRecordOptions,
                    .examples = kNodeExamples,
                    .run = run_node};
constexpr Example kPartitionExamples[] = {
    {"gctl show partition batch", "Limits, nodes and who may use it"}};
const Command kPartition{.name = "partition",
                         .summary = "Everything about partitions",
                         .operands = "[PARTITION]",
                         .options = kRecordOptions,
                         .examples = kPartitionExamples,
                         .run = run_partition};
constexpr Example kShowConfigExamples[] = {{"gctl show config", "Every option that is in force"}};
const Command kShowConfig{.name = "config",
                          .summary = "The controller's options with their values",
                          .options = kJsonOptions,
                          .examples = kShowConfigExamples,
                          .run = run_config};
constexpr Example kStatsExamples[] = {
    {"gctl show stats", "What the controller has counted since it started"}};
const Command kStats{.name = "stats",
                     .summary = "Counters of the controller",
                     .options = kJsonOptions,
                     .examples = kStatsExamples,
                     .run = run_stats};
constexpr Example kHostnamesExamples[] = {
    {"gctl show hostnames n[01-03]", "n01, n02 and n03, a line each"}};
const Command kHostnames{.name = "hostnames",
                         .summary = "The names in a host list, one per line",
                         .operands = "[NODES]",
                         .examples = kHostnamesExamples,
                         .run = run_hostnames};
constexpr Example kHostlistExamples[] = {{"gctl show hostlist n01,n02,n03", "n[01-03]"}};
const Command kHostlist{.name = "hostlist",
                        .summary = "A host list in its shortest form",
                        .operands = "[NODES]",
                        .examples = kHostlistExamples,
                        .run = run_hostlist};

constexpr const Command* kSub[] = {&kJob,   &kNode,      &kPartition, &kShowConfig,
                                   &kStats, &kHostnames, &kHostlist};

}  // namespace

constexpr Example kGctlShowExamples[] = {{"gctl show job 12", "A job"},
                                         {"gctl show node gpu01", "A node"}};
const Command kGctlShow{.name = "show",
                        .summary = "Show a job, node, partition, the configuration or counters",
                        .examples = kGctlShowExamples,
                        .run = nullptr,
                        .sub = kSub};

}  // namespace gantry::cli::gctl_show
