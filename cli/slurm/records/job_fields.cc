// The table of squeue's fields. A field for which Gantry has no data shows the word that Slurm uses
// for no value.
#include "cli/slurm/records/job_fields.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/columns/job_words.h"
#include "cli/columns/show_records.h"
#include "cli/slurm/records/job_values.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

using Q = const QueueRow&;
using Text = std::string&;

consteval Field<QueueRow> same(std::string_view name) {
  return job_value<Field<QueueRow>, QueueRow>(name);
}

template <std::string AskedTres::*Word>
void put_asked_word(Text o, Q v) {
  text_or(o, spec(v).given.tres.*Word, "N/A");
}

constexpr Field<QueueRow> kQueueFields[] = {
    same("Account"),
    {.name = "AccrueTime",
     .header = "ACCRUE_TIME",
     .put = [](Text o, Q v) { o += shown_time(eligible_since(v.row), "N/A"); }},
    {.name = "admin_comment", .header = "ADMIN_COMMENT", .put = [](Text o, Q) { o += "(null)"; }},
    {.name = "AllocNodes",
     .header = "ALLOC_NODES",
     .put = [](Text o, Q v) { text_or(o, spec(v).submit_host, "(null)"); },
     .more = true},
    {.name = "AllocSID", .header = "ALLOC_SID", .put = [](Text o, Q) { o += "0"; }},
    same("ArrayJobID"),
    same("ArrayTaskID"),
    {.name = "AssocID", .header = "ASSOC_ID", .put = [](Text o, Q) { o += "0"; }},
    {.name = "BatchFlag",
     .header = "BATCH_FLAG",
     .put = [](Text o, Q v) { o += spec(v).kind == JobKind::batch ? "1" : "0"; },
     .more = true},
    same("BatchHost"),
    {.name = "BoardsPerNode", .header = "BOARDS_PER_NODE", .put = [](Text o, Q) { o += "N/A"; }},
    {.name = "BurstBuffer", .header = "BURST_BUFFER", .put = [](Text, Q) {}},
    {.name = "BurstBufferState", .header = "BURST_BUFFER_STATE", .put = [](Text, Q) {}},
    {.name = "Cluster", .header = "CLUSTER", .put = [](Text o, Q v) { o += v.cluster; }},
    {.name = "ClusterFeature", .header = "CLUSTER_FEATURES", .put = [](Text, Q) {}},
    {.letter = 'o',
     .name = "Command",
     .header = "COMMAND",
     .put = [](Text o, Q v) { put_command(o, v); },
     .more = true},
    {.letter = 'k',
     .name = "Comment",
     .header = "COMMENT",
     .put = [](Text o, Q v) { text_or(o, spec(v).comment, "(null)"); },
     .more = true},
    {.name = "Container",
     .header = "CONTAINER",
     .put = [](Text o, Q v) { o += spec(v).container.image; },
     .more = true},
    {.letter = 'O',
     .name = "Contiguous",
     .header = "CONTIGUOUS",
     .put =
         [](Text o, Q v) {
           o += spec(v).shape.node_layout == NodeLayout::next_to_each_other ? "1" : "0";
         },
     .more = true},
    {.letter = 'I',
     .name = "Cores",
     .header = "CORES_PER_SOCKET",
     .put = [](Text o, Q) { o += "*"; }},
    {.letter = 'X',
     .name = "CoreSpec",
     .header = "CORE_SPEC",
     .put = [](Text o, Q) { o += "N/A"; }},
    {.name = "CPUFreq", .header = "CPU_FREQ", .put = [](Text o, Q) { o += "N/A"; }},
    {.name = "cpus-per-task",
     .header = "CPUS_PER_TASK",
     .put = [](Text o, Q v) { put_number(o, spec(v).shape.cpus_per_task); },
     .more = true},
    {.name = "cpus-per-tres",
     .header = "CPUS_PER_TRES",
     .put = put_asked_word<&AskedTres::cpus>,
     .more = true},
    {.name = "Deadline",
     .header = "DEADLINE",
     .put = [](Text o, Q v) { o += shown_time(spec(v).deadline, "N/A"); },
     .more = true},
    {.name = "DelayBoot", .header = "DELAY_BOOT", .put = [](Text o, Q) { o += "0:00"; }},
    {.letter = 'E',
     .name = "Dependency",
     .header = "DEPENDENCY",
     .put = [](Text o, Q v) { text_or(o, v.detail ? dependency_left(*v.detail) : "", "(null)"); },
     .more = true},
    {.name = "DerivedEC", .header = "DERIVED_EC", .put = [](Text o, Q) { o += "0"; }},
    {.name = "EligibleTime",
     .header = "ELIGIBLE_TIME",
     .put = [](Text o, Q v) { o += shown_time(eligible_since(v.row), "N/A"); }},
    {.letter = 'e',
     .name = "EndTime",
     .header = "END_TIME",
     .put =
         [](Text o, Q v) {
           const bool endless = v.row.started && !v.row.ended && !v.row.time_limit;
           o += shown_time(expected_end(v.row), endless ? "NONE" : "N/A");
         }},
    {.letter = 'x',
     .name = "ExcNodes",
     .header = "EXC_NODES",
     .put = [](Text o, Q v) { o += compress_hostlist(spec(v).shape.excluded_nodes); },
     .more = true},
    {.name = "exit_code",
     .header = "EXIT_CODE",
     .put = [](Text o, Q v) { put_number(o, static_cast<std::uint64_t>(v.row.exit.code)); }},
    {.letter = 'f',
     .name = "Feature",
     .header = "FEATURES",
     .put = [](Text o, Q v) { text_or(o, spec(v).shape.constraint, "(null)"); },
     .more = true},
    {.letter = 'G',
     .name = "GroupID",
     .header = "GROUP",
     .put = [](Text o, Q v) { put_number(o, detail(v).owner.gid.value()); },
     .more = true},
    {.letter = 'g',
     .name = "GroupName",
     .header = "GROUP",
     .put = [](Text o, Q v) { o += group_name(detail(v).owner.gid); },
     .more = true},
    {.name = "HetJobID",
     .header = "HET_JOB_ID",
     .put = [](Text o,
               Q v) { o += v.row.het ? std::to_string(v.row.het->leader.value()) : "N/A"; }},
    {.name = "HetJobIDSet",
     .header = "HET_JOB_ID_SET",
     .put = [](Text o, Q v) { text_or(o, het_id_set(v.row), "N/A"); }},
    {.name = "HetJobOffset",
     .header = "HET_JOB_OFFSET",
     .put = [](Text o, Q v) { o += v.row.het ? std::to_string(v.row.het->offset) : "N/A"; }},
    {.letter = 'i',
     .name = "JobArrayID",
     .header = "JOBID",
     .put = [](Text o, Q v) { o += shown_id(v.row); }},
    {.letter = 'A',
     .name = "JobID",
     .header = "JOBID",
     .put = [](Text o, Q v) { put_number(o, v.row.slurm_id().value()); }},
    {.name = "LastSchedEval", .header = "LAST_SCHED_EVAL", .put = [](Text o, Q) { o += "N/A"; }},
    {.letter = 'W',
     .name = "Licenses",
     .header = "LICENSES",
     .put = [](Text o, Q v) { text_or(o, to_string(spec(v).shape.licenses), "(null)"); },
     .more = true},
    {.name = "MaxCPUs", .header = "MAX_CPUS", .put = [](Text o, Q) { o += "0"; }},
    {.name = "MaxNodes",
     .header = "MAX_NODES",
     .put =
         [](Text o, Q v) {
           put_number(
               o, spec(v).shape.max_nodes > spec(v).shape.min_nodes ? spec(v).shape.max_nodes : 0);
         },
     .more = true},
    {.name = "MCSLabel", .header = "MCSLABEL", .put = [](Text o, Q) { o += "N/A"; }},
    {.name = "mem-per-tres",
     .header = "MEM_PER_TRES",
     .put = put_asked_word<&AskedTres::memory>,
     .more = true},
    {.letter = 'c',
     .name = "MinCpus",
     .header = "MIN_CPUS",
     .put =
         [](Text o, Q v) {
           const JobShape& shape = spec(v).shape;
           put_number(o, shape.cores_on_node(shape.tasks_per_node.value_or(1)));
         },
     .more = true},
    {.letter = 'm',
     .name = "MinMemory",
     .header = "MIN_MEMORY",
     .put = [](Text o, Q v) { put_memory(o, v); },
     .more = true},
    {.name = "MinTime", .header = "MIN_TIME", .put = [](Text o, Q) { o += "N/A"; }},
    {.letter = 'd',
     .name = "MinTmpDisk",
     .header = "MIN_TMP_DISK",
     .put =
         [](Text o, Q v) {
           o += spec(v).shape.scratch_per_node == 0 ? "0"
                                                    : format_memory(spec(v).shape.scratch_per_node);
         },
     .more = true},
    same("Name"),
    {.name = "Network",
     .header = "NETWORK",
     .put = [](Text o, Q v) { o += enum_name(spec(v).network.value_or(NetworkMode::loopback)); },
     .more = true},
    {.letter = 'y',
     .name = "Nice",
     .header = "NICE",
     .put = [](Text o, Q v) { o += std::to_string(spec(v).nice); },
     .more = true},
    same("NodeList"),
    {.name = "Nodes", .header = "NODELIST", .put = [](Text o, Q v) { o += v.row.node_list; }},
    {.name = "NTPerBoard", .header = "NTASKS_PER_BOARD", .put = [](Text o, Q) { o += "N/A"; }},
    {.name = "NTPerCore", .header = "NTASKS_PER_CORE", .put = [](Text o, Q) { o += "N/A"; }},
    {.name = "NTPerNode",
     .header = "NTASKS_PER_NODE",
     .put =
         [](Text o, Q v) {
           if (spec(v).shape.tasks_per_node)
             put_number(o, *spec(v).shape.tasks_per_node);
           else
             o += "N/A";
         },
     .more = true},
    {.name = "NTPerSocket", .header = "NTASKS_PER_SOCKET", .put = [](Text o, Q) { o += "N/A"; }},
    same("NumCPUs"),
    same("NumNodes"),
    {.name = "NumTasks", .header = "TASKS", .put = [](Text o, Q v) { put_number(o, v.row.tasks); }},
    {.name = "Origin", .header = "ORIGIN", .put = [](Text o, Q) { o += "N/A"; }},
    {.name = "OriginRaw", .header = "ORIGIN_RAW", .put = [](Text o, Q) { o += "0"; }},
    {.letter = 'h',
     .name = "OverSubscribe",
     .header = "OVER_SUBSCRIBE",
     .put =
         [](Text o, Q v) {
           o += spec(v).shape.exclusive                           ? "NO"
                : spec(v).shape.sharing == NodeSharing::same_user ? "USER"
                : spec(v).given.oversubscribe                     ? "YES"
                                                                  : "OK";
         },
     .more = true},
    same("Partition"),
    {.name = "PendingTime",
     .header = "PENDING_TIME",
     .put =
         [](Text o, Q v) {
           put_number(
               o, static_cast<std::uint64_t>(
                      (v.row.started.value_or(std::max(v.now, v.row.submitted)) - v.row.submitted)
                          .seconds()));
         }},
    {.name = "PreemptTime", .header = "PREEMPT_TIME", .put = [](Text o, Q) { o += "N/A"; }},
    {.name = "Prefer", .header = "PREFER", .put = [](Text o, Q) { o += "(null)"; }},
    {.letter = 'p',
     .name = "Priority",
     .header = "PRIORITY",
     .put =
         [](Text o, Q v) {
           o += fmt::format("{:.14f}", static_cast<double>(shown_priority(v.row)) / 4294967296.0);
         }},
    {.letter = 'Q',
     .name = "PriorityLong",
     .header = "PRIORITY",
     .put = [](Text o, Q v) { o += std::to_string(shown_priority(v.row)); }},
    {.name = "Profile", .header = "PROFILE", .put = [](Text o, Q) { o += "Not set"; }},
    {.letter = 'q',
     .name = "QOS",
     .header = "QOS",
     .put = [](Text o, Q v) { text_or(o, spec(v).priority_class, "normal"); },
     .more = true},
    same("Reason"),
    {.letter = 'R',
     .name = "ReasonList",
     .header = "NODELIST(REASON)",
     .put = [](Text o, Q v) { put_reason_or_nodes(o, v.row); }},
    {.name = "Reboot", .header = "REBOOT", .put = [](Text o, Q) { o += "0"; }},
    {.letter = 'n',
     .name = "ReqNodes",
     .header = "REQ_NODES",
     .put = [](Text o, Q v) { o += compress_hostlist(spec(v).shape.required_nodes); },
     .more = true},
    {.name = "ReqSwitch", .header = "REQ_SWITCH", .put = [](Text o, Q) { o += "0"; }},
    {.name = "Requeue",
     .header = "REQUEUE",
     .put = [](Text o, Q v) { o += spec(v).requeue ? "1" : "0"; },
     .more = true},
    same("Reservation"),
    {.name = "ResizeTime", .header = "RESIZE_TIME", .put = [](Text o, Q) { o += "N/A"; }},
    {.name = "RestartCnt",
     .header = "RESTART_COUNT",
     .put = [](Text o, Q v) { put_number(o, v.row.restarts); }},
    {.name = "ResvPort", .header = "RESV_PORTS", .put = [](Text o, Q) { o += "N/A"; }},
    {.letter = 'Y',
     .name = "SchedNodes",
     .header = "SCHEDNODES",
     .put = [](Text o, Q) { o += "(null)"; }},
    {.letter = 'z', .name = "SCT", .header = "S:C:T", .put = [](Text o, Q) { o += "*:*:*"; }},
    {.letter = 's', .name = "SelectJobInfo", .header = "SELECT_JOBINFO", .put = [](Text, Q) {}},
    {.name = "SiblingsActive", .header = "SIBLINGS_ACTIVE", .put = [](Text o, Q) { o += "N/A"; }},
    {.name = "SiblingsActiveRaw",
     .header = "SIBLINGS_ACTIVE_RAW",
     .put = [](Text o, Q) { o += "0"; }},
    {.name = "SiblingsViable", .header = "SIBLINGS_VIABLE", .put = [](Text o, Q) { o += "N/A"; }},
    {.name = "SiblingsViableRaw",
     .header = "SIBLINGS_VIABLE_RAW",
     .put = [](Text o, Q) { o += "0"; }},
    {.letter = 'H',
     .name = "Sockets",
     .header = "SOCKETS_PER_NODE",
     .put = [](Text o, Q) { o += "*"; }},
    {.name = "SPerBoard", .header = "SOCKETS_PER_BOARD", .put = [](Text o, Q) { o += "N/A"; }},
    {.letter = 'S',
     .name = "StartTime",
     .header = "START_TIME",
     .put =
         [](Text o, Q v) {
           o += shown_time(v.row.started ? v.row.started : v.row.expected_start, "N/A");
         }},
    same("State"),
    same("StateCompact"),
    {.name = "STDERR",
     .header = "STDERR",
     .put =
         [](Text o, Q v) {
           put_file(o, v, spec(v).std_err.empty() ? spec(v).std_out : spec(v).std_err);
         },
     .more = true},
    {.name = "STDIN",
     .header = "STDIN",
     .put = [](Text o,
               Q v) { put_file(o, v, spec(v).std_in.empty() ? "/dev/null" : spec(v).std_in); },
     .more = true},
    {.name = "STDOUT",
     .header = "STDOUT",
     .put = [](Text o, Q v) { put_file(o, v, spec(v).std_out); },
     .more = true},
    {.letter = 'V',
     .name = "SubmitTime",
     .header = "SUBMIT_TIME",
     .put = [](Text o, Q v) { o += shown_time(v.row.submitted); }},
    {.name = "system_comment", .header = "SYSTEM_COMMENT", .put = [](Text o, Q) { o += "(null)"; }},
    {.letter = 'J',
     .name = "Threads",
     .header = "THREADS_PER_CORE",
     .put = [](Text o, Q) { o += "*"; }},
    {.letter = 'L',
     .name = "TimeLeft",
     .header = "TIME_LEFT",
     .put = [](Text o, Q v) { put_time_left(o, v); }},
    same("TimeLimit"),
    same("TimeUsed"),
    {.name = "tres-alloc",
     .header = "TRES_ALLOC",
     .put = [](Text o, Q v) { put_tres(o, v); },
     .more = true},
    {.name = "tres-bind",
     .header = "TRES_BIND",
     .put = put_asked_word<&AskedTres::bind>,
     .more = true},
    {.name = "tres-freq",
     .header = "TRES_FREQ",
     .put = put_asked_word<&AskedTres::freq>,
     .more = true},
    {.name = "tres-per-job",
     .header = "TRES_PER_JOB",
     .put = [](Text o,
               Q v) { o += spec(v).given.gpus ? fmt::format("gres:gpu:{}", v.row.gpus) : "N/A"; },
     .more = true},
    {.letter = 'b',
     .name = "tres-per-node",
     .header = "TRES_PER_NODE",
     .put = [](Text o, Q v) { text_or(o, tres_per_node(spec(v)), "N/A"); },
     .more = true},
    {.name = "gres",  // an old name of the same field
     .header = "TRES_PER_NODE",
     .put = [](Text o, Q v) { text_or(o, tres_per_node(spec(v)), "N/A"); },
     .more = true},
    {.name = "tres-per-socket",
     .header = "TRES_PER_SOCKET",
     .put = put_asked_word<&AskedTres::per_socket>,
     .more = true},
    {.name = "tres-per-task",
     .header = "TRES_PER_TASK",
     .put = [](Text o, Q v) { put_gpus_per_task(o, v); },
     .more = true},
    same("UserID"),
    same("UserName"),
    {.letter = 'w',
     .name = "WCKey",
     .header = "WCKEY",
     .put = [](Text o, Q v) { text_or(o, spec(v).wckey, "(null)"); },
     .more = true},
    {.letter = 'Z',
     .name = "WorkDir",
     .header = "WORK_DIR",
     .put = [](Text o, Q v) { o += spec(v).work_dir; },
     .more = true},
};

}  // namespace

std::span<const Field<QueueRow>> queue_fields() {
  return kQueueFields;
}

}  // namespace gantry::cli::slurm
