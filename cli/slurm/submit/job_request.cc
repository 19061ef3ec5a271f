// The setters of options that only Slurm has, and their effect on a request.
#include "cli/slurm/submit/job_request.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <pwd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <map>

#include "cli/files.h"
#include "cli/slurm/frame.h"
#include "cli/slurm/submit/modest_options.h"
#include "cli/step/step_run.h"
#include "cli/submit/job_setters.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

constexpr int kLoginSeconds = 8;  // seconds for a login shell to print its environment, as in Slurm
constexpr std::size_t kMaxLoginBytes = 1u << 20;

Result<void> wrong(std::string message) {
  return fail(ErrorCode::invalid_argument, std::move(message));
}

bool was_given(std::span<const Given> given, std::string_view name) {
  return std::any_of(given.begin(), given.end(),
                     [&](const Given& g) { return g.option->name == name; });
}

bool typed(std::span<const Given> given, std::string_view name) {
  return std::any_of(given.begin(), given.end(),
                     [&](const Given& g) { return g.option->name == name && g.place.empty(); });
}

// Adds entries NAME=VALUE\0... to `out`; names that exist already keep their values.
void add_entries(std::string_view text, std::map<std::string, std::string>& out) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\0'), text.size());
    const std::string_view entry = text.substr(0, end);
    const std::size_t equals = entry.find('=');
    if (equals != 0 && equals != std::string_view::npos)
      out.try_emplace(std::string(entry.substr(0, equals)), entry.substr(equals + 1));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// The environment of a login shell of the user: what `$SHELL -lc "env -0"` prints if it starts with
// a minimal environment.
Result<std::string> login_environment() {
  const passwd* user = ::getpwuid(::geteuid());
  if (user == nullptr) return fail(ErrorCode::not_found, "the user database does not know you");
  const std::string shell =
      user->pw_shell != nullptr && *user->pw_shell != 0 ? user->pw_shell : "/bin/sh";
  const std::string home = fmt::format("HOME={}", user->pw_dir);
  const std::string name = fmt::format("USER={}", user->pw_name);
  const std::string login = fmt::format("LOGNAME={}", user->pw_name);
  const std::string path = "PATH=/usr/local/bin:/usr/bin:/bin";
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return fail(ErrorCode::io_error, fmt::format("pipe: {}", std::strerror(errno)));
  const pid_t pid = ::fork();
  if (pid == 0) {
    const char* argv[] = {shell.c_str(), "-lc", "env -0", nullptr};
    const char* env[] = {home.c_str(), name.c_str(), login.c_str(), path.c_str(), nullptr};
    const int null = ::open("/dev/null", O_RDWR);
    ::dup2(null, 0);
    ::dup2(ends[1], 1);
    ::dup2(null, 2);
    ::execve(argv[0], const_cast<char**>(argv), const_cast<char**>(env));
    ::_exit(127);
  }
  ::close(ends[1]);
  std::string text;
  bool in_time = pid > 0;
  std::array<char, 65536> buffer;
  while (in_time && text.size() < kMaxLoginBytes) {
    pollfd ready{ends[0], POLLIN, 0};
    in_time = ::poll(&ready, 1, kLoginSeconds * 1000) > 0;
    const ssize_t n = in_time ? ::read(ends[0], buffer.data(), buffer.size()) : -1;
    if (n <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
  ::close(ends[0]);
  if (pid > 0 && !in_time) ::kill(pid, SIGKILL);
  while (pid > 0 && ::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (text.empty())
    return fail(
        ErrorCode::io_error,
        fmt::format("--get-user-env: {} -lc env said nothing within {} s", shell, kLoginSeconds));
  return text;
}

Result<std::string> read_export_file(const std::string& name) {
  const bool is_fd = name.find_first_not_of("0123456789") == std::string::npos;
  ASSIGN(text, read_small_file(is_fd ? "/proc/self/fd/" + name : name));
  if (!*text) return fail(ErrorCode::not_found, fmt::format("--export-file: there is no {}", name));
  return **text;
}

}  // namespace

namespace set {

Result<void> clusters(SlurmRequest& r, std::string_view text) {
  r.clusters = text;
  return {};
}
Result<void> wckey(SlurmRequest& r, std::string_view text) {
  TRY(job::check_text(text));
  if (text.size() > 256) return wrong("has more than 256 bytes");
  r.spec.wckey = text;
  return {};
}
Result<void> export_file(SlurmRequest& r, std::string_view text) {
  if (text.empty()) return wrong("must not be empty");
  r.export_file = text;
  return {};
}
Result<void> nodefile(SlurmRequest& r, std::string_view text) {
  ASSIGN(file, read_small_file(std::string(text)));
  if (!*file) return wrong(fmt::format("there is no {}", text));
  std::string list;
  for (const char c : **file) list += c == '\n' || c == ' ' || c == '\t' ? ',' : c;
  std::string tidy;
  for (const std::string& word : split_list(list)) tidy += (tidy.empty() ? "" : ",") + word;
  return job::set_nodelist(r, tidy);
}
Result<void> cpus_per_gpu(SlurmRequest& r, std::string_view text) {
  ASSIGN(n, parse_integer("the number of cores per GPU", text, 1, 1024));
  r.cpus_per_gpu = static_cast<std::uint32_t>(*n);
  return {};
}
Result<void> tasks_per_gpu(SlurmRequest& r, std::string_view text) {
  ASSIGN(n, parse_integer("the number of tasks per GPU", text, 1, 1024));
  r.tasks_per_gpu = static_cast<std::uint32_t>(*n);
  return {};
}
Result<void> immediate(SlurmRequest& r, std::string_view text) {
  ASSIGN(n, parse_integer("the seconds to wait", text.empty() ? "1" : text, 1, 31'536'000));
  r.most_wait = seconds(*n);
  return {};
}
Result<void> get_user_env(SlurmRequest& r, std::string_view text) {
  // The value [TIMEOUT][L|S] says how long the shell may take and whether it is a login shell. It
  // is only checked: here it is always a login shell, and may take 8 s.
  if (text.find_first_not_of("0123456789LS") != std::string_view::npos)
    return wrong(fmt::format("\"{}\" is not [SECONDS][L|S]", text));
  r.get_user_env = true;
  return {};
}
Result<void> propagate(SlurmRequest& r, std::string_view text) {
  TRY(parse_limit_names(text));
  r.propagate = text.empty() ? "ALL" : text;
  return {};
}
Result<void> time_min(SlurmRequest& r, std::string_view text) {
  ASSIGN(limit, parse_duration(text));
  if (!*limit || (*limit)->us == 0) return wrong("it must be more than 0, and not unlimited");
  r.spec.time_min = *limit;
  return {};
}
Result<void> contiguous(SlurmRequest& r, std::string_view) {
  r.spec.shape.node_layout = NodeLayout::next_to_each_other;
  return {};
}
Result<void> spread_job(SlurmRequest& r, std::string_view) {
  r.spec.shape.node_layout = NodeLayout::as_many_as_may_be;
  return {};
}
Result<void> tres_per_task(SlurmRequest& r, std::string_view text) {
  for (const std::string& item : split_list(text)) {
    const std::size_t at = item.find_first_of("=:", item.find('/') == std::string::npos ? 0 : 5);
    const std::string name = item.substr(0, at);
    const std::string value = at == std::string::npos ? "1" : item.substr(at + 1);
    Result<void> done = wrong(fmt::format("\"{}\" is not cpu=N or gres/gpu[:MODEL]=N", item));
    if (name == "cpu") done = job::set_cpus(r, value);
    if (name == "gres/gpu") {
      std::string model = value;
      std::replace(model.begin(), model.end(), '=', ':');
      done = job::set_gpus_per_task(r, model);
    }
    if (!done) return done;
  }
  return {};
}
Result<void> qos(SlurmRequest& r, std::string_view text) {
  return job::spec_text<&JobSpec::priority_class>(r, text == "normal" ? "" : text);
}
// Sets how tasks are spread over the nodes, and over the sockets of a node. Within a socket a task
// gets adjacent cores.
Result<void> distribution(SlurmRequest& r, std::string_view text) {
  // The size of a plane is passed to the job in its own variable.
  const char* plane = text == "plane" ? std::getenv("SLURM_DIST_PLANESIZE") : nullptr;
  ASSIGN(asked,
         parse_distribution(plane == nullptr ? std::string(text) : fmt::format("plane={}", plane)));
  r.spec.distribution = *asked;
  return {};
}
Result<void> hint(SlurmRequest&, std::string_view text) {
  if (text == "nomultithread" || text == "compute_bound") return {};
  return wrong(fmt::format("\"{}\": a task has whole cores to itself: nomultithread", text));
}
Result<void> one(SlurmRequest&, std::string_view text) {
  if (text == "1") return {};
  return wrong(fmt::format("\"{}\": cores are given whole, so it can only be 1", text));
}
Result<void> none(SlurmRequest&, std::string_view text) {
  if (text == "none" || text == "NONE" || text == "no") return {};
  return wrong(fmt::format("\"{}\": it can only be none", text));
}
Result<void> no_kill(SlurmRequest& r, std::string_view text) {
  r.spec.no_kill = text != "off" && text != "no";
  if (text.empty() || text == "off" || text == "no" || text == "1" || text == "yes") return {};
  return wrong(fmt::format("\"{}\" is not off", text));
}
Result<void> mem_bind(SlurmRequest& r, std::string_view text) {
  ASSIGN(bind, parse_mem_bind(text));
  r.mem_bind = std::move(*bind);
  r.mem_bind_text = text;
  return {};
}

// Reads 1[@TIME]. A job cannot choose how long it waits for a single switch: the switch is
// preferred, or required if TIME is unlimited.
Result<void> switches(SlurmRequest& r, std::string_view text) {
  const std::size_t at = std::min(text.find('@'), text.size());
  if (text.substr(0, at) != "1")
    return wrong(
        fmt::format("\"{}\": only 1 can be kept, all nodes on one switch; gbatch has "
                    "--topology",
                    text));
  bool always = false;
  if (at < text.size()) {
    ASSIGN(wait, parse_duration(text.substr(at + 1)));
    always = !wait->has_value();
  }
  return job::set_topology(r, always ? "required:switch" : "preferred:switch");
}

}  // namespace set

namespace {

// Applies --ntasks-per-gpu: either the number of GPUs follows from the tasks, or the number of
// tasks from the GPUs. As in Slurm each task then sees one GPU, unless --gpu-bind says otherwise.
Result<void> settle_tasks_per_gpu(SlurmRequest& r) {
  if (!r.tasks_per_gpu) return {};
  constexpr std::uint32_t kOne = 1000;  // GpuWish counts in thousandths
  GpuWish& gpus = r.gpus;
  if (gpus.per_task || r.spec.shape.tasks_per_node)
    return fail(ErrorCode::invalid_argument,
                "--ntasks-per-gpu excludes --gpus-per-task and --ntasks-per-node");
  const bool sized = gpus.in_all || gpus.per_node;
  if (r.tasks && sized)
    return fail(ErrorCode::invalid_argument,
                "--ntasks-per-gpu goes with --ntasks or with GPUs, not with both");
  if (!r.tasks && !sized)
    return fail(ErrorCode::invalid_argument,
                "--ntasks-per-gpu needs --ntasks, or GPUs: --gpus, --gpus-per-node or --gres");
  if (r.gpu_bind.empty()) r.gpu_bind = fmt::format("single:{}", *r.tasks_per_gpu);
  if (r.tasks) {
    gpus.in_all = (*r.tasks + *r.tasks_per_gpu - 1) / *r.tasks_per_gpu * kOne;
    return {};
  }
  const std::uint32_t nodes = r.nodes ? r.nodes->first : 1;
  const std::uint32_t count = gpus.in_all ? *gpus.in_all : *gpus.per_node * nodes;
  r.tasks = std::max(1u, count / kOne * *r.tasks_per_gpu);
  return {};
}

}  // namespace

Result<void> name_hosts(SlurmRequest& r, std::span<const Given> given) {
  // srun accepts a file of hosts for -m arbitrary, as Slurm's does.
  if (r.manner == Manner::slurm && std::getenv("SLURM_HOSTFILE") != nullptr &&
      !was_given(given, "nodelist"))
    r.spec.distribution = Distribution{NodeOrder::arbitrary};
  const auto& distribution = r.spec.distribution;
  if (!distribution || distribution->nodes != NodeOrder::arbitrary) return {};
  std::string list;
  for (const Given& g : given)
    if (g.option->name == "nodelist") list = g.value;
  if (list.empty()) {
    const char* name = std::getenv("SLURM_HOSTFILE");
    if (name == nullptr && !typed(given, "distribution")) {  // a variable of the surrounding job
      r.spec.distribution.reset();
      return {};
    }
    if (name == nullptr)
      return fail(
          ErrorCode::usage,
          "-m arbitrary needs the node of each task: --nodelist, or a file of SLURM_HOSTFILE");
    ASSIGN(file, read_small_file(name));
    if (!*file) return wrong(fmt::format("SLURM_HOSTFILE: there is no {}", name));
    for (const char c : **file) list += c == '\n' || c == ' ' || c == '\t' ? ',' : c;
  }
  std::map<std::string, std::uint32_t> tasks;
  std::uint32_t most = 0;
  for (const std::string& word : split_list(list)) {
    // A host may have a number of tasks: n1*2.
    const std::size_t star = std::min(word.find('*'), word.size());
    ASSIGN(names, expand_hostlist(word.substr(0, star)));
    ASSIGN(count, parse_integer("tasks on a node", star < word.size() ? word.substr(star + 1) : "1",
                                1, 65'536));
    for (const std::string& host : *names)
      for (std::int64_t i = 0; i < *count; ++i)
        if (!r.tasks || r.hosts.size() < *r.tasks) {
          r.hosts.push_back(host);
          most = std::max(most, ++tasks[host]);
        }
  }
  if (r.tasks && r.hosts.size() < *r.tasks)
    return fail(ErrorCode::usage,
                fmt::format("-m arbitrary: {} tasks, and the list names nodes for {}", *r.tasks,
                            r.hosts.size()));
  r.tasks = static_cast<std::uint32_t>(r.hosts.size());
  r.nodes = {static_cast<std::uint32_t>(tasks.size()), static_cast<std::uint32_t>(tasks.size())};
  JobShape& shape = r.spec.shape;
  shape.required_nodes.clear();
  for (const auto& [host, count] : tasks) shape.required_nodes.push_back(host);
  shape.min_cpus_per_node =
      std::max(shape.min_cpus_per_node, shape.overcommit ? 0 : most * shape.cpus_per_task);
  return {};
}

namespace {

// As in Slurm, other options that contradict --hint override it. If both come from the command
// line, or both from variables, -v reports that.
void settle_hint(const Invocation& call, const SlurmRequest& r, std::span<const Given> given) {
  const auto rival = [&](const Given& g) {
    const std::string_view name = g.option->name;
    return name == "ntasks-per-core" || name == "threads-per-core" || name == "extra-node-info" ||
           (name == "cpu-bind" && g.value != "verbose" && g.value != "v");
  };
  bool hint[2] = {}, others[2] = {};  // [0]: typed; [1]: from variables or directives
  for (const Given& g : given) {
    const bool far = !g.place.empty();
    hint[far] = hint[far] || g.option->name == "hint";
    others[far] = others[far] || rival(g);
  }
  if (!r.verbose && verbosity_of(given) == 0) return;
  if (hint[0] && others[0])
    fmt::print(stderr,
               "{}: Following options are mutually exclusive with --hint: --ntasks-per-core, "
               "--threads-per-core, -B and --cpu-bind (other then --cpu-bind=verbose). Ignoring "
               "--hint.\n",
               call.program());
  else if (!hint[0] && !others[0] && hint[1] && others[1])
    fmt::print(stderr,
               "{}: Following options are mutually exclusive with --hint: --ntasks-per-core, "
               "--threads-per-core, -B and --cpu-bind, but more than one set by environment "
               "variables. Ignoring SLURM_HINT.\n",
               call.program());
}

// As in Slurm, a limit beyond the deadline is shortened to it, in whole minutes. If not even a
// minute is left, it stays, and is refused.
void cut_at_deadline(SlurmRequest& r) {
  constexpr Duration kMinute = minutes(1),
                     kWay = seconds(1);  // time for the request to reach the controller
  if (!r.spec.deadline || !r.spec.time_limit || r.spec.time_min) return;
  const Duration left = *r.spec.deadline - std::max(r.now, r.spec.begin.value_or(r.now)) - kWay;
  if (left >= *r.spec.time_limit || left < kMinute) return;
  r.spec.time_limit = Duration{left.us / kMinute.us * kMinute.us};
}

// However the tasks of a node are distributed over its sockets, no socket has more of them than the
// node.
Result<void> check_sockets(const SlurmRequest& r) {
  if (!r.tasks_per_socket) return {};
  const JobShape& shape = r.spec.shape;
  const std::uint32_t others = std::max(shape.min_nodes, 1u) - 1;  // each has at least one task
  const std::uint32_t most = shape.tasks_per_node.value_or(shape.tasks - others);
  if (most <= *r.tasks_per_socket) return {};
  return fail(
      ErrorCode::invalid_argument,
      fmt::format("--ntasks-per-socket={}: a node may get {} tasks, and tasks are not dealt "
                  "to sockets; --ntasks-per-node={} is taken with it",
                  *r.tasks_per_socket, most, *r.tasks_per_socket));
}

}  // namespace

Result<void> before_finish(const Invocation& call, SlurmRequest& r, std::span<const Given> given) {
  settle_hint(call, r, given);
  TRY(name_hosts(r, given));
  if (!r.inside) TRY(settle_gpus(call, r, given));
  TRY(settle_tasks_per_gpu(r));
  if (r.spec.begin && r.spec.deadline && *r.spec.deadline < *r.spec.begin)
    return fail(ErrorCode::usage, "Incompatible begin and deadline time specification");
  cut_at_deadline(r);
  r.spec.limits = own_limits(*parse_limit_names(r.propagate));
  if (r.tasks && r.nodes && *r.tasks < r.nodes->first) {
    fmt::print(stderr, "{}: Warning: can't run {} processes on {} nodes, setting nnodes to {}\n",
               call.program(), *r.tasks, r.nodes->first, *r.tasks);
    r.nodes->first = *r.tasks;
  }
  if (r.tasks && r.nodes) r.nodes->second = std::min(r.nodes->second, *r.tasks);
  const bool by_tres = std::any_of(given.begin(), given.end(), [](const Given& g) {
    return g.option->name == "tres-per-task" && g.value.find("gres/gpu") != std::string::npos;
  });
  r.spec.given.tres = asked_tres(given);
  r.spec.given.gres = was_given(given, "gres");
  r.spec.given.gpus = was_given(given, "gpus");
  r.spec.given.gpus_per_node = was_given(given, "gpus-per-node");
  r.spec.given.cpus_per_gpu = r.cpus_per_gpu;
  for (const Given& g : given)
    if (g.option->name == "export") r.export_rule = g.value;
  r.spec.shape.all_gpus = r.spec.shape.exclusive && was_given(given, "exclusive");
  r.spec.given.gpus_per_task = by_tres || was_given(given, "gpus-per-task");
  return {};
}

Result<void> after_finish(SlurmRequest& r) {
  TRY(check_sockets(r));
  JobSpec& spec = r.spec;
  JobShape& shape = spec.shape;
  // As in Slurm the option, which may come from a variable, has no effect on a job without GPUs.
  if (r.cpus_per_gpu && shape.gpus_per_task > 0) {
    shape.cpus_per_task = std::max(1u, *r.cpus_per_gpu * shape.gpus_per_task);
  } else if (r.cpus_per_gpu && shape.gpus_per_node > 0) {
    const std::uint32_t per_node = shape.tasks / std::max(shape.min_nodes, 1u);
    const std::uint32_t tasks = shape.tasks_per_node.value_or(std::max(per_node, 1u));
    const std::uint32_t cores = *r.cpus_per_gpu * shape.gpus_per_node;
    // Cores that cannot be divided evenly among the tasks are requested per node.
    shape.cpus_per_task = std::max(1u, cores / tasks);
    if (cores % tasks != 0) shape.min_cpus_per_node = std::max(shape.min_cpus_per_node, cores);
  }
  for (std::string* file : {&spec.std_in, &spec.std_out, &spec.std_err})
    if (*file == "none") *file = "/dev/null";
  if (spec.std_out.empty()) spec.std_out = spec.array ? "slurm-%A_%a.out" : "slurm-%j.out";
  return {};
}

Result<std::map<std::string, std::string>> slurm_environment(const SlurmRequest& r) {
  std::map<std::string, std::string> out = job_environment(r.exported);
  if (!r.export_file.empty()) {
    // The job gets the file's variables and the present SLURM_* variables, as in Slurm; --export
    // has no effect.
    ASSIGN(text, read_export_file(r.export_file));
    out.clear();
    add_entries(*text, out);
  }
  if (r.get_user_env) {
    ASSIGN(text, login_environment());
    add_entries(*text, out);
  }
  for (auto& [name, value] : task_gpu_variables(r.gpus, r.gpu_bind)) out[name] = value;
  if (!r.mem_bind_text.empty()) out["SLURM_MEM_BIND"] = r.mem_bind_text;
  if (!r.gpu_freq.empty()) out["SLURM_GPU_FREQ"] = r.gpu_freq;
  if (r.spec.open_mode == OpenMode::append) out.try_emplace("SLURM_OPEN_MODE", "a");
  // Steps of the job follow the same rule, unless they set another; the default is all.
  if (!r.export_rule.empty() && r.export_rule != "ALL")
    out.try_emplace("SLURM_EXPORT_ENV", r.export_rule);
  return out;
}

void say_start(const std::string& program, const proto::SubmitReply& reply, Instant now) {
  fmt::print(stderr, "{}: Job 0 to start at {} using {} processors on nodes {} in partition {}\n",
             program, format_time(reply.expected_start.value_or(now)), reply.cpus,
             reply.expected_nodes.empty() ? "(null)" : reply.expected_nodes, reply.partition);
}

}  // namespace gantry::cli::slurm
