// gctl update KIND NAME KEY=VALUE..., and the commands that change the states of nodes.
#include <fmt/core.h>

#include "cli/columns/history_rows.h"
#include "cli/commands/control/gctl.h"
#include "cli/session.h"
#include "common/proto/job_text.h"
#include "common/text/hostlist.h"
#include "common/text/split.h"
#include "common/text/text.h"
#include "config/nearest.h"

namespace gantry::cli::gctl_update {
namespace {

struct NoOptions {};

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

tl::unexpected<Error> wrong(std::string message) {
  return fail(ErrorCode::invalid_argument, std::move(message));
}

struct Pair {
  std::string key;  // in lower case
  std::string value;
};
Result<std::vector<Pair>> parse_pairs(std::span<const std::string> operands) {
  std::vector<Pair> pairs;
  for (const std::string& operand : operands) {
    const std::size_t equals = operand.find('=');
    if (equals == std::string::npos || equals == 0)
      return fail(ErrorCode::usage, fmt::format("\"{}\" is not KEY=VALUE", operand));
    pairs.push_back({lower(operand.substr(0, equals)), operand.substr(equals + 1)});
  }
  if (pairs.empty()) return fail(ErrorCode::usage, "nothing to change is given");
  return pairs;
}

// ---- jobs

Result<void> set_job(proto::UpdateJob& update, const Pair& pair, Instant now) {
  const std::string& key = pair.key;
  if (key == "time" || key == "timelimit") {
    ASSIGN(limit, parse_duration(pair.value));
    if (!*limit) return wrong("a time limit cannot become UNLIMITED");
    update.time_limit = **limit;
  } else if (key == "nice") {
    ASSIGN(n, parse_integer("nice", pair.value, -10'000, 10'000));
    update.nice = static_cast<std::int32_t>(*n);
  } else if (key == "priority") {
    ASSIGN(n, parse_integer("priority", pair.value, 0, UINT32_MAX));
    update.priority = static_cast<std::uint32_t>(*n);
  } else if (key == "partition") {
    update.partition = pair.value;
  } else if (key == "account") {
    update.account = pair.value;
  } else if (key == "reservation" || key == "reservationname") {
    update.reservation = pair.value;
  } else if (key == "name" || key == "jobname") {
    update.name = pair.value;
  } else if (key == "comment") {
    update.comment = pair.value;
  } else if (key == "begin" || key == "starttime") {
    ASSIGN(t, parse_time(pair.value, now));
    update.begin = *t;
  } else if (key == "arraytaskthrottle") {
    ASSIGN(n, parse_integer("arraytaskthrottle", pair.value, 1, 1'000'000));
    update.array_max_running = static_cast<std::uint32_t>(*n);
  } else {
    static constexpr std::string_view kKeys[] = {
        "timelimit", "nice",      "priority",          "partition", "jobname",
        "comment",   "starttime", "arraytaskthrottle", "account",   "reservation"};
    return fail(ErrorCode::usage,
                fmt::format("\"{}\" of a job cannot be changed{}", key, did_you_mean(key, kKeys)));
  }
  return {};
}

int report(const Invocation& in, Session& session, const proto::JobsDone& done) {
  for (const auto& refused : done.refused)
    fmt::print(stderr, "{}: error: job {}: {}\n", in.program(), format_job_ref(refused.job),
               refused.error.message);
  tell_not_reached(in.program(), session, done.not_active);
  return done.refused.empty() && done.not_active.empty() ? 0 : 1;
}

Result<int> update_job(const Invocation& in, const std::string& id, std::span<const Pair> pairs) {
  proto::UpdateJob update;
  const auto ref = parse_job_ref(id);
  if (!ref) return wrong(fmt::format("Invalid job id {}", id));
  update.job = *ref;
  for (const Pair& pair : pairs) TRY(set_job(update, pair, system_now()));
  ASSIGN(session, Session::open(in.program()));
  ASSIGN(done, session->call<proto::JobsDone>(update));
  return report(in, *session, *done);
}

// ---- nodes

Result<std::vector<std::string>> names_of(const std::string& list) {
  auto names = expand_hostlist(list);
  if (names && names->empty()) return wrong("no node is named");
  return names;
}

Result<int> change_nodes(const Invocation& in, const proto::UpdateNodes& update) {
  const bool owes_reason =
      update.action != proto::NodeAction::resume && update.action != proto::NodeAction::keep;
  if (owes_reason && update.reason.empty())
    return fail(ErrorCode::usage, "a reason is needed, for those who come later");
  ASSIGN(ok, ask<proto::Ok>(in.program(), update));
  return 0;
}

Result<int> update_node(const Invocation& in, const std::string& list,
                        std::span<const Pair> pairs) {
  proto::UpdateNodes update;
  std::optional<proto::NodeAction> action;
  for (const Pair& pair : pairs) {
    const std::string value = lower(pair.value);
    if (pair.key == "reason") {
      update.reason = pair.value;
    } else if (pair.key == "features" && value == "@file") {
      update.file_features = true;
    } else if (pair.key == "features") {
      update.features = split_list(pair.value);
    } else if (pair.key == "comment") {
      update.comment = pair.value;
    } else if (pair.key == "state") {
      if (value == "drain")
        action = proto::NodeAction::drain;
      else if (value == "resume" || value == "undrain" || value == "idle")
        action = proto::NodeAction::resume;
      else if (value == "close")
        action = proto::NodeAction::close;
      else if (value == "down")
        return fail(ErrorCode::usage,
                    "\"down\" could mean two things: close the node, or declare a lost one dead; "
                    "use state=close or gctl dead");
      else
        return wrong(fmt::format("\"{}\" is no state; use drain, resume or close", pair.value));
    } else {
      return fail(
          ErrorCode::usage,
          fmt::format("\"{}\" of a node cannot be changed; there are state, reason, features and "
                      "comment",
                      pair.key));
    }
  }
  update.action = action.value_or(proto::NodeAction::keep);
  ASSIGN(names, names_of(list));
  update.nodes = std::move(*names);
  return change_nodes(in, update);
}

// ---- partitions

Result<int> update_partition(const Invocation& in, const std::string& name,
                             std::span<const Pair> pairs) {
  proto::UpdatePartition update;
  update.name = name;
  for (const Pair& pair : pairs) {
    const std::string value = lower(pair.value);
    if (pair.key != "state")
      return fail(
          ErrorCode::usage,
          fmt::format(
              "here only the state of a partition changes; for \"{}\" there is gctl partition "
              "update",
              pair.key));
    if (value != "up" && value != "down")
      return wrong(fmt::format("\"{}\" is not up or down", pair.value));
    update.up = value == "up";
  }
  ASSIGN(ok, ask<proto::Ok>(in.program(), update));
  return 0;
}

// "job 12 time=1:00" and Slurm's "JobId=12 TimeLimit=1:00" are the same.
Result<int> run_update(const Invocation& in) {
  NoOptions none;
  OPERANDS(parsed, in, &none, 1, kAnyOperands);
  std::span<const std::string> operands = **parsed;
  std::string kind = lower(operands[0]);
  std::string name;
  if (const std::size_t equals = kind.find('='); equals != std::string::npos) {
    name = operands[0].substr(equals + 1);
    kind.resize(equals);
    operands = operands.subspan(1);
  } else {
    if (operands.size() < 2) return fail(ErrorCode::usage, fmt::format("which {}?", kind));
    name = operands[1];
    operands = operands.subspan(2);
  }
  ASSIGN(pairs, parse_pairs(operands));
  if (kind == "job" || kind == "jobid") return update_job(in, name, *pairs);
  if (kind == "node" || kind == "nodename") return update_node(in, name, *pairs);
  if (kind == "partition" || kind == "partitionname") return update_partition(in, name, *pairs);
  return fail(ErrorCode::usage, fmt::format("\"{}\" is not job, node or partition", kind));
}

// ---- drain, resume, close, dead

struct Change {
  std::string reason;
  std::vector<std::string> gpus;
  std::vector<std::string> racks;
};
bool add_words(std::vector<std::string>& words, std::string_view text) {
  while (true) {
    const auto comma = text.find(',');
    if (text.substr(0, comma).empty()) return false;
    words.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}
Result<void> add_gpus(Change& o, std::string_view text) {
  if (!add_words(o.gpus, text)) return wrong("a number or UUID is missing");
  return {};
}
Result<void> add_racks(Change& o, std::string_view text) {
  if (!add_words(o.racks, text)) return wrong("a name is missing");
  return {};
}

constexpr Option kReason =
    takes("reason", 'r', "TEXT", "Why; shown by ginfo -R", put<&Change::reason>);
constexpr Option kGpu = takes("gpu", 'g', "GPU[,GPU...]",
                              "These GPUs alone, by number (ginfo --gpus) or UUID", call<add_gpus>);
constexpr Option kRack =
    takes("rack", "RACK[,RACK...]",
          "In place of NODES: all of these parts of the topology, as NAME or LEVEL:NAME",
          call<add_racks>);
constexpr Option kReasonOptions[] = {kReason, kRack};
constexpr Option kDrainOptions[] = {kReason, kGpu, kRack};
constexpr Option kResumeOptions[] = {kGpu, kRack};

template <proto::NodeAction Action>
Result<int> run_action(const Invocation& in) {
  Change change;
  OPERANDS(operands, in, &change, 0, 1);
  if ((*operands)->empty() == change.racks.empty())
    return fail(ErrorCode::usage, change.racks.empty() ? "name nodes, or racks with --rack"
                                                       : "name nodes or racks, not both at once");
  if (!change.gpus.empty() && !change.racks.empty())
    return fail(ErrorCode::usage, "--gpu is for GPUs of nodes that are named");
  proto::UpdateNodes update;
  update.action = Action;
  update.reason = std::move(change.reason);
  update.gpus = std::move(change.gpus);
  update.domains = std::move(change.racks);
  if (update.domains.empty()) {
    ASSIGN(names, names_of((*operands)->front()));
    update.nodes = std::move(*names);
  }
  return change_nodes(in, update);
}

}  // namespace

const Command kGctlUpdate{
    {"update", "Change a job, node or partition", "job|node|partition NAME KEY=VALUE..."},
    {.description =
         "Of a job: time, nice, priority, partition, account, reservation, name, "
         "comment, begin, arraytaskthrottle. In another tenant's partition a job gets a project "
         "there, unless one of the same name is there. Of a "
         "node: state=drain|resume|close, reason, comment, features (`@file`: those of gantry.yaml "
         "again). Of a partition: state=up|down; all else is gctl partition's.",
     .examples = {{"gctl update job 12 time=2:00:00 nice=50",
                   "A longer time limit, a lower priority"},
                  {"gctl update partition batch state=down", "Start no more jobs in a partition"}},
     .run = run_update}};
const Command kGctlDrain{
    {"drain", "Start no more jobs on nodes, or on single GPUs of theirs", "[NODES]"},
    {.description = "Those that run there go on. With --gpu the rest of the node takes "
                    "jobs as before; a slice stands for all of its GPU. It stays so "
                    "until gctl resume, whatever is started again in between.",
     .options = kDrainOptions,
     .examples = {{"gctl drain gpu[01-04] -r 'new firmware'",
                   "Their jobs go on, and no more start"},
                  {"gctl drain gpu01 --gpu 3 -r 'a noisy fan'", "The same for one GPU of the node"},
                  {"gctl drain --rack r7 -r 'its switch is replaced'",
                   "The same for all nodes of a rack"}},
     .run = run_action<proto::NodeAction::drain>}};
const Command kGctlResume{
    {"resume", "Put nodes back into service, or single GPUs of theirs", "[NODES]"},
    {.description =
         "With --gpu these GPUs are no longer drained, their faults are "
         "forgotten and they are looked at again at once; what is still "
         "wrong with one keeps it out of service (ginfo --gpus). Without it the node's own state "
         "changes and GPUs stay as they are.",
     .options = kResumeOptions,
     .examples = {{"gctl resume gpu[01-04]", "Jobs may start there again"},
                  {"gctl resume gpu01 --gpu 3", "GPU 3 was mended, or is no longer drained"}},
     .run = run_action<proto::NodeAction::resume>}};
const Command kGctlClose{{"close", "Take nodes out of service and end what runs there", "[NODES]"},
                         {.options = kReasonOptions,
                          .examples = {{"gctl close gpu01 -r 'a fan burns'",
                                        "Its jobs end now; they are requeued if they may be"}},
                          .run = run_action<proto::NodeAction::close>}};
const Command kGctlDead{{"dead",
                         "Declare that lost nodes run nothing any more, so that their jobs may "
                         "end or be requeued; never say it of a node that may be alive",
                         "[NODES]"},
                        {.options = kReasonOptions,
                         .examples = {{"gctl dead gpu01 -r 'taken out of the rack'",
                                       "What ran there is over, because the machine is off"}},
                         .run = run_action<proto::NodeAction::dead>}};

}  // namespace gantry::cli::gctl_update
