// The setters of job options.
#include "cli/submit/job_setters.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/random_id.h"
#include "cli/submit/job_refs.h"
#include "common/job/mail.h"
#include "common/proto/job_text.h"
#include "common/resources/resources.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"

namespace gantry::cli::job {
namespace {

using R = JobRequest;

constexpr std::int64_t kMaxCount =
    1'000'000;  // limit for tasks and cpus; the controller has the real limits

Result<void> invalid(std::string message) {
  return fail(ErrorCode::invalid_argument, std::move(message));
}

Result<std::uint32_t> count(std::string_view text, std::string_view what) {
  ASSIGN(number, parse_integer(what, text, 1, kMaxCount));
  return static_cast<std::uint32_t>(*number);
}

Result<void> set_names(std::vector<std::string>& out, std::string_view text) {
  // As in Slurm a list may end with a comma, because other commands' output may contain one.
  if (text.ends_with(',')) text.remove_suffix(1);
  ASSIGN(names, expand_hostlist(text));
  if (names->empty()) return invalid("names no node");
  std::sort(names->begin(), names->end());
  names->erase(std::unique(names->begin(), names->end()), names->end());
  out = std::move(*names);
  return {};
}

}  // namespace

Result<void> check_text(std::string_view text) {
  if (text.size() > 4096) return invalid("is longer than 4096 bytes");
  if (text.find('\n') != std::string_view::npos) return invalid("must be one line");
  return {};
}

namespace {

// "12", or with k (1024) or m (1024 * 1024), as Slurm counts nodes.
Result<std::uint32_t> count_nodes(std::string_view text) {
  const char last = text.empty() ? ' ' : text.back();
  const std::uint32_t each = last == 'k' || last == 'K'   ? 1024
                             : last == 'm' || last == 'M' ? 1024 * 1024
                                                          : 1;
  if (each > 1) text.remove_suffix(1);
  // The controller has the limit.
  ASSIGN(n, parse_integer("the number of nodes", text, 1, UINT32_MAX / each));
  return static_cast<std::uint32_t>(*n) * each;
}

}  // namespace

Result<void> set_nodes(R& r, std::string_view text) {
  const std::size_t dash = text.find('-');
  ASSIGN(low, count_nodes(text.substr(0, dash)));
  std::uint32_t most = *low;
  if (dash != std::string_view::npos) {
    ASSIGN(high, count_nodes(text.substr(dash + 1)));
    most = *high;
  }
  if (most < *low) return invalid(fmt::format("\"{}\" has a maximum below its minimum", text));
  r.nodes = {*low, most};
  return {};
}
Result<void> set_tasks(R& r, std::string_view text) {
  ASSIGN(n, count(text, "the number of tasks"));
  r.tasks = *n;
  return {};
}
Result<void> set_cpus(R& r, std::string_view text) {
  ASSIGN(n, count(text, "the number of cores per task"));
  r.spec.shape.cpus_per_task = *n;
  return {};
}
Result<void> set_overcommit(R& r, std::string_view) {
  r.spec.shape.overcommit = true;
  return {};
}
Result<void> set_min_cpus(R& r, std::string_view text) {
  ASSIGN(n, count(text, "the least number of cores on each node"));
  r.spec.shape.min_cpus_per_node = *n;
  return {};
}
Result<void> set_tasks_per_node(R& r, std::string_view text) {
  ASSIGN(n, count(text, "the number of tasks per node"));
  r.spec.shape.tasks_per_node = *n;
  return {};
}
template <auto Which>
Result<void> set_gpus(R& r, std::string_view text) {
  ASSIGN(n, parse_gpus(text, r.gpus));
  r.gpus.*Which = *n;
  return {};
}
Result<void> set_gpus_per_node(R& r, std::string_view text) {
  return set_gpus<&GpuWish::per_node>(r, text);
}
Result<void> set_gpus_in_all(R& r, std::string_view text) {
  return set_gpus<&GpuWish::in_all>(r, text);
}
Result<void> set_gpus_per_task(R& r, std::string_view text) {
  return set_gpus<&GpuWish::per_task>(r, text);
}
Result<void> set_gpu_names(R& r, std::string_view text) {
  if (text != "uuid" && text != "index")
    return invalid(fmt::format("\"{}\" is not uuid or index", text));
  r.spec.gpu_names = text == "uuid" ? GpuNames::uuid : GpuNames::index;
  return {};
}
Result<void> set_gres(R& r, std::string_view text) {
  return parse_gres(text, r.gpus);
}
// NAME, NAME:N or NAME*N, separated by commas or semicolons.
Result<void> set_licenses(R& r, std::string_view text) {
  std::vector<GresCount> licenses;
  std::string list(text);
  std::replace(list.begin(), list.end(), ';', ',');
  for (const std::string& one : split_list(list)) {
    const std::size_t end = std::min(one.find_first_of(":*"), one.size());
    GresCount& added = licenses.emplace_back(GresCount{one.substr(0, end), 1});
    if (end < one.size()) {
      ASSIGN(n, parse_integer("licences", one.substr(end + 1), 1, kMostLicenses));
      added.count = static_cast<std::uint32_t>(*n);
    }
    if (added.name.empty() || added.name.find_first_of("| ") != std::string::npos)
      return invalid(fmt::format("\"{}\" is no licence: NAME or NAME:N", one));
  }
  std::sort(licenses.begin(), licenses.end());
  for (std::size_t i = 1; i < licenses.size(); ++i)
    if (licenses[i].name == licenses[i - 1].name)
      return invalid(fmt::format("{} is given twice", licenses[i].name));
  if (licenses.empty()) return invalid("must not be empty");
  r.spec.shape.licenses = std::move(licenses);
  return {};
}
Result<void> set_mem_per_gpu(R& r, std::string_view text) {
  ASSIGN(bytes, parse_memory(text));
  if (*bytes == 0) return invalid("must be more than 0");
  r.gpus.memory_each = *bytes;
  return {};
}
Result<void> set_mem(R& r, std::string_view text) {
  ASSIGN(bytes, parse_memory(text));
  if (*bytes == 0)
    return invalid("0 would mean all memory of the node; use --exclusive, or say how much");
  r.spec.shape.memory_per_node = *bytes;
  r.spec.shape.memory_per_cpu.reset();
  return {};
}
// --mem=0 asks for all memory of a node. Nobody else can then run there, so such a job gets the
// whole node.
Result<void> set_mem_or_all(R& r, std::string_view text) {
  const auto bytes = parse_memory(text);
  if (!bytes || *bytes != 0) return set_mem(r, text);
  r.spec.shape.memory_per_node.reset();
  r.spec.shape.memory_per_cpu.reset();
  return set_exclusive(r, "");
}
Result<void> set_mem_per_cpu(R& r, std::string_view text) {
  ASSIGN(bytes, parse_memory(text));
  if (*bytes == 0) return invalid("must be more than 0");
  r.spec.shape.memory_per_cpu = *bytes;
  r.spec.shape.memory_per_node.reset();
  return {};
}
Result<void> set_tmp(R& r, std::string_view text) {
  ASSIGN(bytes, parse_memory(text));
  r.spec.shape.scratch_per_node = *bytes;
  return {};
}
Result<void> set_time(R& r, std::string_view text) {
  ASSIGN(limit, parse_duration(text));
  r.spec.time_limit = *limit;
  r.spec.unlimited_time = !limit->has_value();
  if (*limit && (*limit)->us == 0)  // in Slurm 0 means: as long as the partition allows
    return invalid("0 is no time limit; use UNLIMITED, or leave it to the partition");
  return {};
}
Result<void> set_time_or_none(R& r, std::string_view text) {
  ASSIGN(limit, parse_duration(text));
  const bool none = !limit->has_value() || (*limit)->us == 0;  // 0 means no limit, as in Slurm
  r.spec.unlimited_time = none;
  r.spec.time_limit = none ? std::nullopt : *limit;
  return {};
}
Result<void> set_begin(R& r, std::string_view text) {
  ASSIGN(t, parse_time(text, r.now));
  r.spec.begin = *t;
  return {};
}
Result<void> set_deadline_or_past(R& r, std::string_view text) {
  ASSIGN(t, parse_time(text, r.now));
  r.spec.deadline = *t;
  return {};
}
Result<void> set_deadline(R& r, std::string_view text) {
  TRY(set_deadline_or_past(r, text));
  if (*r.spec.deadline <= r.now) return invalid(fmt::format("\"{}\" is in the past", text));
  return {};
}
Result<void> set_array(R& r, std::string_view text) {
  ASSIGN(array, parse_index_ranges(text));
  r.spec.array = std::move(*array);
  return {};
}
Result<void> set_dependency(R& r, std::string_view text) {
  ASSIGN(parsed, parse_dependency(text));
  r.spec.dependencies = std::move(parsed->list);
  r.spec.any_dependency = parsed->any;
  return {};
}
Result<void> set_kill_on_invalid(R& r, std::string_view text) {
  if (text != "yes" && text != "no") return invalid(fmt::format("\"{}\" is not yes or no", text));
  r.spec.cancel_on_invalid_dependency = text == "yes";
  return {};
}
Result<void> set_nodelist(R& r, std::string_view text) {
  return set_names(r.spec.shape.required_nodes, text);
}
Result<void> set_exclude(R& r, std::string_view text) {
  return set_names(r.spec.shape.excluded_nodes, text);
}
Result<void> set_exclusive(R& r, std::string_view text) {
  if (text.empty())
    r.spec.shape.exclusive = true;
  else if (text == "user")
    r.spec.shape.sharing = NodeSharing::same_user;
  else if (text == "tenant")
    r.spec.shape.sharing = NodeSharing::same_tenant;
  else
    return invalid(
        fmt::format("\"{}\" is not user or tenant; --exclusive alone asks for whole nodes", text));
  return {};
}
Result<void> set_gpu_models(R& r, std::string_view text) {
  for (std::string& model : split_list(text)) {
    for (char& c : model) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    r.spec.shape.gpu_models.push_back(std::move(model));
  }
  if (r.spec.shape.gpu_models.empty()) return invalid("must not be empty");
  return {};
}
Result<void> set_tolerations(R& r, std::string_view text) {
  auto& taints = r.spec.shape.tolerations;
  for (std::string& taint : split_list(text)) taints.push_back(std::move(taint));
  std::sort(taints.begin(), taints.end());
  taints.erase(std::unique(taints.begin(), taints.end()), taints.end());
  if (taints.empty()) return invalid("must not be empty");
  return {};
}
// [required:|preferred:|balanced:]LEVEL
Result<void> set_topology(R& r, std::string_view text) {
  TopologyWish wish = TopologyWish::required;
  if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    bool known = false;
    for (const auto& [value, name] : enum_names(TopologyWish{}))
      if (value != TopologyWish::none && name == text.substr(0, colon)) {
        wish = value;
        known = true;
      }
    if (!known)
      return invalid(
          fmt::format("\"{}\" is not required, preferred or balanced", text.substr(0, colon)));
    text.remove_prefix(colon + 1);
  }
  if (text.empty()) return invalid("the level is missing");
  TRY(check_text(text));
  r.spec.shape.topology = wish;
  r.spec.shape.topology_level = text;
  return {};
}
// LEVEL[:N]
Result<void> set_keyed(R& r, std::string key, std::string_view text) {
  JobShape& shape = r.spec.shape;
  if (!shape.anti_affinity.empty())
    return invalid("a job keeps away from others by one key: --anti-affinity or --spread");
  const std::size_t colon = std::min(text.find(':'), text.size());
  shape.anti_affinity_level = text.empty() ? "node" : text.substr(0, colon);
  if (shape.anti_affinity_level.empty()) return invalid("the level is missing");
  if (colon < text.size()) {
    ASSIGN(n, parse_integer("the number in one domain", text.substr(colon + 1), 1, 65'536));
    shape.anti_affinity_most = static_cast<std::uint32_t>(*n);
  }
  shape.anti_affinity = std::move(key);
  return check_text(shape.anti_affinity_level);
}
// KEY[:LEVEL[:N]]
Result<void> set_anti_affinity(R& r, std::string_view text) {
  TRY(check_text(text));
  const std::size_t colon = std::min(text.find(':'), text.size());
  if (colon == 0) return invalid("the key is missing");
  const std::string_view rest = colon < text.size() ? text.substr(colon + 1) : "";
  if (colon + 1 == text.size()) return invalid("the level is missing");
  return set_keyed(r, std::string(text.substr(0, colon)), rest);
}
Result<void> set_spread(R& r, std::string_view text) {
  if (text.empty()) return invalid("the level is missing");
  return set_keyed(r, "spread-" + random_id().substr(0, 8), text);
}
Result<void> set_nice(R& r, std::string_view text) {
  if (text.empty()) {
    r.spec.nice = 100;
    return {};
  }
  ASSIGN(n, parse_integer("nice", text, -10'000, 10'000));
  r.spec.nice = static_cast<std::int32_t>(*n);
  return {};
}
Result<void> set_priority(R& r, std::string_view text) {
  ASSIGN(n, parse_integer("priority", text, 0, UINT32_MAX));
  r.spec.priority = static_cast<std::uint32_t>(*n);
  return {};
}
Result<void> set_hold(R& r, std::string_view) {
  r.spec.hold = true;
  return {};
}
Result<void> set_requeue(R& r, std::string_view) {
  r.spec.requeue = true;
  return {};
}
Result<void> set_no_requeue(R& r, std::string_view) {
  r.spec.requeue = false;
  return {};
}
Result<void> set_signal(R& r, std::string_view text) {
  ASSIGN(warn, parse_warn_signal(text));
  r.spec.warn_signal = *warn;
  return {};
}
Result<void> set_open_mode(R& r, std::string_view text) {
  if (text == "append" || text == "a")
    r.spec.open_mode = OpenMode::append;
  else if (text == "truncate" || text == "t")
    r.spec.open_mode = OpenMode::truncate;
  else
    return invalid(fmt::format("\"{}\" is not append or truncate", text));
  return {};
}
Result<void> set_mail_type(R& r, std::string_view text) {
  ASSIGN(events, parse_mail_events(text));
  r.spec.mail.events = *events;
  return {};
}

Result<void> set_mail_user(R& r, std::string_view text) {
  ASSIGN(to, parse_mail_addresses(text));
  r.spec.mail.to = std::move(*to);
  return {};
}

Result<void> set_net(R& r, std::string_view text) {
  const auto rate = parse_rate(text);
  if (!rate || *rate > kMostRate)
    return invalid(
        fmt::format("\"{}\" is not a rate of bits per second, such as 500M or 10G (at "
                    "most 10T)",
                    text));
  r.spec.network_rate = static_cast<std::uint64_t>(*rate);
  return {};
}

Result<void> set_io(R& r, std::string_view text) {
  const auto rate = parse_rate(text);
  if (!rate || *rate > kMostRate)
    return invalid(
        fmt::format("\"{}\" is not a rate of bytes per second, such as 200M or 2G (at "
                    "most 10T)",
                    text));
  r.spec.io_rate = static_cast<std::uint64_t>(*rate);
  return {};
}

Result<void> set_network(R& r, std::string_view text) {
  r.spec.network_profile.clear();
  if (text == "none")
    r.spec.network = NetworkMode::loopback;
  else if (text == "host")
    r.spec.network = NetworkMode::host;
  else if (text == "job" || text.starts_with("job,"))
    r.spec.network = NetworkMode::job;
  else
    return invalid(fmt::format("\"{}\" is not job, job,PROFILE, none or host", text));
  if (text == "job,") return invalid("\"job,\" lacks the name of a network profile");
  if (text.starts_with("job,")) r.spec.network_profile = text.substr(4);
  return {};
}
Result<void> set_mounts(R& r, std::string_view text) {
  std::vector<std::string> mounts = split_list(text);
  for (const std::string& mount : mounts) {
    const std::size_t colon = mount.find(':');
    const std::string_view rest =
        colon == std::string::npos ? "" : std::string_view(mount).substr(colon + 1);
    const std::size_t flags = rest.find(':');
    const std::string_view mode = flags == std::string_view::npos ? "ro" : rest.substr(flags + 1);
    if (!mount.starts_with('/') || !rest.starts_with('/') || (mode != "ro" && mode != "rw"))
      return invalid(fmt::format("\"{}\" is not SRC:DST[:ro|:rw] with absolute paths", mount));
  }
  r.spec.container.mounts = std::move(mounts);
  return {};
}
Result<void> set_container_writable(R& r, std::string_view) {
  r.spec.container.writable = true;
  return {};
}

Result<void> set_constraint(R& r, std::string_view text) {
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 &&
        std::string_view("_-.&|").find(c) == std::string_view::npos)
      return invalid(fmt::format("\"{}\" is not supported; use feature names with & or |", text));
  if (text.empty()) return invalid("must not be empty");
  r.spec.shape.constraint = text;
  return {};
}

Result<void> set_export(R& r, std::string_view text) {
  ExportRule rule{.all = false, .names = {}, .set = {}};
  if (text == "NIL") return invalid("NIL is not supported; use NONE");
  for (const std::string& item : split_list(text)) {
    const std::size_t equals = item.find('=');
    if (item == "ALL") {
      rule.all = true;
    } else if (item == "NONE") {
      if (text != "NONE") return invalid("NONE must stand alone");
    } else if (equals == 0) {
      return invalid(fmt::format("\"{}\" has no name before `=`", item));
    } else if (equals == std::string::npos) {
      rule.names.push_back(item);
    } else {
      rule.set.emplace_back(item.substr(0, equals), item.substr(equals + 1));
    }
  }
  r.exported = std::move(rule);
  return {};
}

}  // namespace gantry::cli::job
