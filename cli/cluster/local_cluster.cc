// Makes the files and keys of a local cluster and chooses its sizes.
#include "cli/cluster/local_cluster.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <pwd.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/files.h"
#include "common/auth/munge.h"
#include "common/auth/signature.h"
#include "common/auth/users.h"
#include "common/proto/job_text.h"
#include "common/text/hash.h"
#include "common/text/text.h"

namespace gantry::cli {
namespace {

constexpr std::string_view kMark = "# Made by `gantry up`; `gantry down --remove` removes it.";
constexpr std::uint32_t kMaxNodes = 256;
// Limit for a node that shares the machine's CPUs with the other nodes.
constexpr std::uint32_t kMostCpus = 256;
constexpr std::int64_t kLeastMemory = 64 << 20;  // for each node
constexpr std::size_t kMaxDirectory = 80;        // most characters; a socket's path may have 107

// Before Linux 6.3 a packet between two VXLAN links on one machine is delivered directly and never
// reaches the other node's namespace.
bool can_have_job_networks(const ClusterRequest& request) {
  if (::geteuid() != 0) return false;
  if (request.nodes < 2) return true;
  utsname system{};
  int major = 0, minor = 0;
  if (::uname(&system) != 0 || std::sscanf(system.release, "%d.%d", &major, &minor) != 2)
    return false;
  return major > 6 || (major == 6 && minor >= 3);
}

// Finds ports that are free now. They lie below the range that the kernel gives to outgoing
// connections. Otherwise a daemon that is started again could find its port taken by a connection
// of another program, or even by a connection to itself.
class FreePorts {
 public:
  explicit FreePorts(std::uint32_t seed) : next_(seed % kCount) {}

  // Returns the wanted port if it is free, else another free port; 0 if there is none.
  std::uint16_t take(std::uint16_t wanted = 0) {
    if (wanted != 0 && is_free(wanted)) return wanted;
    for (std::uint32_t tried = 0; tried < kCount; ++tried) {
      const auto port = static_cast<std::uint16_t>(kFirst + next_++ % kCount);
      if (is_free(port)) return port;
    }
    return 0;
  }

 private:
  static constexpr std::uint32_t kFirst = 10'000, kCount = 20'000;

  static bool is_free(std::uint16_t port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    const bool good = ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    ::close(fd);
    return good;
  }

  std::uint32_t next_;
};

// Whether a gantry-gate can run here: HAProxy is installed and, for root, the user as which it runs
// exists.
bool can_have_gate() {
  const GateConfig usual;
  return ::access(usual.haproxy.c_str(), X_OK) == 0 &&
         (::geteuid() != 0 || ::getpwnam(usual.user.c_str()) != nullptr);
}

// The section for gantry-gate. Its stop waits a few seconds for open requests, and not an hour.
std::string gate_section(const std::string& state_dir, std::uint16_t port) {
  return fmt::format(
      "\ngate:\n  name: gate\n  listen: ['127.0.0.1:{}']\n  state_dir: {}\n  stop_time: 5s\n", port,
      state_dir);
}

// The first of the ports on which nodes accept requests for replicas: above those of FreePorts, and
// below those of outgoing connections.
std::uint32_t service_port(std::uint32_t hash) {
  constexpr std::uint32_t kFirst = 30'000, kCount = 2'500;
  return kFirst + hash % kCount;
}

// Settings of the controller for services. Gates accept identity tokens, whose keys are read at the
// metrics port.
std::string services_settings(std::uint32_t first_port, const std::string& cluster,
                              std::uint16_t metrics_port, const std::string& tokens) {
  return fmt::format(
      "  service_port: {}\n  metrics_port: {}\n  metrics_tokens: {}\n"
      "  identity_issuer: https://{}.gantry.invalid\n",
      first_port, metrics_port, tokens, cluster);
}

// Bytes of scratch disk for each node: an equal share of half of the free space on the disk with
// the nodes' state, in whole GiB.
std::int64_t scratch_of(const std::string& directory, std::uint32_t nodes) {
  constexpr std::int64_t kGiB = std::int64_t{1} << 30;
  struct statvfs disk {};
  if (::statvfs(directory.c_str(), &disk) != 0) return 0;
  const auto free = static_cast<std::int64_t>(disk.f_bavail * disk.f_frsize);
  return free / 2 / nodes / kGiB * kGiB;
}

std::string user_of(uid_t uid) {
  const passwd* entry = ::getpwuid(uid);
  return entry == nullptr ? std::to_string(uid) : entry->pw_name;
}

}  // namespace

std::string node_name(std::uint32_t index) {
  return fmt::format("node{}", index + 1);
}

bool munge_works() {
  return auth::munge_encode(net::PublicKey{}).has_value();
}

Result<Machine> look_at_machine() {
  Machine machine;
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0)
    return fail(ErrorCode::io_error, "the cores of this machine cannot be counted");
  for (std::uint16_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) machine.cpus.push_back(cpu);
  machine.memory = std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  return machine;
}

Result<ClusterRequest> settle_sizes(ClusterRequest r, const Machine& machine) {
  const auto cores = static_cast<std::uint32_t>(machine.cpus.size());
  const auto refuse = [](std::string text) {
    return fail(ErrorCode::invalid_argument, std::move(text));
  };
  if (r.nodes == 0) r.nodes = std::min<std::uint32_t>(4, cores);
  if (r.nodes > kMaxNodes)
    return refuse(fmt::format("{} nodes are too many; at most {}", r.nodes, kMaxNodes));
  if (r.cpus == 0) r.cpus = std::max<std::uint32_t>(1, cores / r.nodes);
  if (r.cpus > cores && (!r.oversubscribe || r.cpus > kMostCpus))
    return refuse(
        r.oversubscribe
            ? fmt::format("a node cannot have {} cores; at most {}", r.cpus, kMostCpus)
            : fmt::format("a node cannot have {} cores; this machine has {}", r.cpus, cores));
  if (r.cpus * r.nodes > cores && !r.oversubscribe)
    return refuse(
        fmt::format("{} nodes with {} cores each need {}, and this machine has {}; ask for "
                    "less, or share cores with --oversubscribe",
                    r.nodes, r.cpus, r.cpus * r.nodes, cores));
  constexpr std::int64_t kMiB = 1 << 20;
  if (r.memory == 0) r.memory = machine.memory / 5 * 4 / r.nodes / kMiB * kMiB;
  if (r.memory < kLeastMemory)
    return refuse(fmt::format("{} is too little memory for a node; at least {}",
                              format_memory(r.memory), format_memory(kLeastMemory)));
  if (r.memory > machine.memory)
    return refuse(fmt::format("a node cannot have {}; this machine has {}", format_memory(r.memory),
                              format_memory_rounded(machine.memory)));
  if (r.memory * r.nodes > machine.memory && !r.oversubscribe)
    return refuse(
        fmt::format("{} nodes with {} each need {}, and this machine has {}; ask for less, or "
                    "share memory with --oversubscribe",
                    r.nodes, format_memory(r.memory), format_memory(r.memory * r.nodes),
                    format_memory_rounded(machine.memory)));
  return r;
}

Result<LocalCluster> LocalCluster::at(const std::string& directory) {
  std::string path = directory;
  if (path.empty()) {
    path = ::geteuid() == 0 ? "/var/lib/gantry/local" : state_home() + "/gantry";
    if (!path.starts_with('/') || path == "/gantry")
      return fail(ErrorCode::invalid_argument, "HOME is not set; say where with --state DIR");
  }
  std::error_code error;
  path = std::filesystem::absolute(path, error).lexically_normal().string();
  if (path.ends_with('/') && path.size() > 1) path.pop_back();
  if (path == "/" || path.find_first_of(" \t\n:\"'#") != std::string::npos)
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("\"{}\" cannot hold a cluster; name a directory without blanks and quotes",
                    path));
  if (path.size() > kMaxDirectory)
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} is longer than {} characters, and paths of sockets are short; name "
                            "another directory with --state",
                            path, kMaxDirectory));
  return LocalCluster(path);
}

bool LocalCluster::exists() const {
  const auto text = read_small_file(path("gantry.yaml"));
  return text && *text && (*text)->starts_with(kMark);
}

Result<Config> LocalCluster::config() const {
  return load_config(path("gantry.yaml"));
}

Result<ClientConfig> LocalCluster::client() const {
  const std::string file = path("client.conf");
  ASSIGN(text, read_small_file(file));
  if (!*text) return fail(ErrorCode::not_found, fmt::format("there is no {}", file));
  return parse_client_config(**text, file);
}

Result<void> LocalCluster::make_tree(const ClusterRequest& r) const {
  std::vector<std::pair<std::string, mode_t>> wanted{
      {directory_, 0755},           {path("ctld"), 0700},  {path("ctld/nodes.d"), 0700},
      {path("ctld/users.d"), 0700}, {path("nodes"), 0755}, {path("users"), 0711},
      {path("log"), 0755},          {path("pid"), 0755}};
  for (std::uint32_t i = 0; i < r.nodes; ++i) {
    wanted.emplace_back(path("nodes/" + node_name(i)), 0755);
    wanted.emplace_back(path("nodes/" + node_name(i) + "/state"), 0700);
    wanted.emplace_back(path("nodes/" + node_name(i) + "/run"), 0755);
  }
  for (const auto& [name, mode] : wanted) {
    TRY(make_directories(name, 0755));
    if (::chmod(name.c_str(), mode) != 0)
      return fail(ErrorCode::io_error,
                  fmt::format("cannot change {}: {}", name, std::strerror(errno)));
  }
  return {};
}

Result<void> LocalCluster::make_node_keys(const ClusterRequest& r) const {
  for (std::uint32_t i = 0; i < r.nodes; ++i) {
    const std::string name = node_name(i);
    const net::KeyPair pair = net::generate_key_pair();
    ::unlink(path("nodes/" + name + "/key").c_str());
    TRY(net::save_key_pair(path("nodes/" + name + "/key"), pair));
    if (auto saved = write_file(path("ctld/nodes.d/" + name + ".pub"),
                                net::to_z85(pair.public_key) + "\n", 0600);
        !saved)
      return saved;
  }
  return {};
}

Result<void> LocalCluster::make_user_keys(const ClusterRequest& r) const {
  std::vector<std::string> users = r.users;
  const std::string me = user_of(::geteuid());
  if (std::find(users.begin(), users.end(), me) == users.end()) users.push_back(me);
  for (const std::string& user : users) {
    ASSIGN(owner, auth::find_user(user));
    if (::geteuid() != 0 && owner->uid.value() != ::geteuid())
      return fail(ErrorCode::permission_denied,
                  fmt::format("only root can make a key for {}", user));
    const auth::SigningKey key = auth::generate_signing_key();
    const std::string file = path("users/" + user + ".key");
    ::unlink(file.c_str());
    TRY(auth::save_signing_key(file, key));
    if (::geteuid() == 0 && ::chown(file.c_str(), owner->uid.value(), owner->gid.value()) != 0)
      return fail(ErrorCode::io_error,
                  fmt::format("cannot give {} to {}: {}", file, user, std::strerror(errno)));
    if (auto saved = write_file(path("ctld/users.d/" + user + ".pub"),
                                net::to_hex(key.verify_key.view()) + "\n", 0600);
        !saved)
      return saved;
  }
  return {};
}

Result<void> LocalCluster::create(const ClusterRequest& r, const Machine& machine) const {
  TRY(make_tree(r));
  const net::KeyPair pair = net::generate_key_pair();
  ::unlink(path("ctld.key").c_str());
  TRY(net::save_key_pair(path("ctld.key"), pair));
  TRY(write_file(path("ctld.pub"), net::to_z85(pair.public_key) + "\n", 0644));
  TRY(make_node_keys(r));
  TRY(make_user_keys(r));

  constexpr std::uint16_t kPort = 6870, kMetricsPort = 6874, kGatePort = 8080;
  // Clusters on one machine must not share cgroups, because a node ends every process that it finds
  // in its own cgroup and does not know. The name of the cgroup is therefore made from the
  // directory.
  const std::uint32_t hash = fnv1a(directory_);
  FreePorts ports(hash);
  const std::uint16_t port = ports.take(kPort);
  const bool munge = munge_works();
  std::string runtimes;
  for (const std::string& runtime : r.runtimes)
    runtimes += (runtimes.empty() ? "" : ", ") + runtime;
  std::string yaml = fmt::format(
      "{}\ncluster: {}\n\ncontroller:\n  host: 127.0.0.1\n  port: {}\n  state_dir: {}\n"
      "  public_key_file: {}\n  secret_key_file: {}\n  admins: [{}]\n  allow_munge: {}\n"
      "  job_networks: {}\n  login_nodes: [{}]\n  heartbeat: 1s\n  node_timeout: 10s\n"
      "  kill_wait: 5s\n",
      kMark, r.name, port, path("ctld"), path("ctld.pub"), path("ctld.key"), user_of(::geteuid()),
      munge, r.job_networks && can_have_job_networks(r), node_name(0));
  const bool gate = r.gate && can_have_gate();
  if (gate) {
    const std::string tokens = path("ctld/metrics.tokens");
    TRY(write_file(tokens, "# TENANT TOKEN, or * TOKEN, for /metrics\n", 0600));
    yaml += services_settings(service_port(hash), r.name, ports.take(kMetricsPort), tokens);
  }
  yaml += fmt::format(
      "\nnoded:\n  runtimes: [{}]\n  image_cache_dir: {}\n  cgroup_root: gantry-{:08x}\n"
      "  allow_root_jobs: {}\n\nnodes:\n",
      runtimes, path("images"), hash, r.root_jobs);
  const std::int64_t scratch = scratch_of(directory_, r.nodes);
  for (std::uint32_t i = 0; i < r.nodes; ++i) {
    std::vector<std::uint32_t> cpus;
    for (std::uint32_t k = 0; k < r.cpus; ++k)
      cpus.push_back(r.cpus > machine.cpus.size()
                         ? k  // more than the machine has: see gantry-noded --share-cpus
                         : machine.cpus[(i * r.cpus + k) % machine.cpus.size()]);
    std::sort(cpus.begin(), cpus.end());
    yaml += fmt::format(
        "  - {{name: {}, cpus: {}, cpu_ids: '{}', memory: {}, scratch: {}, "
        "address: '127.0.0.1:{}'}}\n",
        node_name(i), r.cpus, format_index_ranges(compress_indexes(cpus)), format_memory(r.memory),
        format_memory(scratch), ports.take());
  }
  if (gate) yaml += gate_section(path("gate"), ports.take(kGatePort));
  yaml += "\npartitions:\n  - {name: batch, nodes: all, default: true, allow_host_network: true}\n";
  const std::string address = fmt::format("127.0.0.1:{}", port);
  const std::string client =
      client_config_text(r.name, address, pair.public_key, path("users/%u.key"),
                         path("nodes/" + node_name(0) + "/run/cli.sock"));
  TRY(write_file(path("client.conf"), client, 0644));
  return write_file(path("gantry.yaml"), yaml, 0644);  // written last: then the cluster exists
}

Result<std::vector<Daemon>> LocalCluster::daemons(const Config& config) const {
  ASSIGN(ctld, find_program("gantry-ctld"));
  ASSIGN(noded, find_program("gantry-noded"));
  const auto daemon = [&](const std::string& name) {
    return Daemon{name, path("pid/" + name), path("log/" + name + ".log"), {}};
  };
  ASSIGN(machine, look_at_machine());
  std::vector<Daemon> out{daemon("ctld")};
  out[0].argv = {*ctld, "--config", path("gantry.yaml")};
  for (const NodeConfig& node : config.nodes) {
    const std::string own = path("nodes/" + node.name);
    out.push_back(daemon(node.name));
    out.back().argv = {*noded,        "--config",     path("gantry.yaml"), "--name",     node.name,
                       "--state-dir", own + "/state", "--run-dir",         own + "/run", "--key",
                       own + "/key",  "--listen",     node.address};
    if (node.cpus > machine->cpus.size()) out.back().argv.push_back("--share-cpus");
  }
  // A gantry.yaml without the section has the default directory of a gate, which does not belong to
  // this cluster.
  if (config.gate.state_dir != path("gate")) return out;
  ASSIGN(gate, find_program("gantry-gate"));
  out.push_back(daemon("gate"));
  out.back().argv = {*gate, "--config", path("gantry.yaml")};
  return out;
}

namespace {

// Removes the cgroups that are empty. rmdir() refuses a cgroup that is in use, for example by a job
// that was left running.
void remove_cgroups_below(const std::string& directory) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored))
    if (entry.is_directory(ignored)) remove_cgroups_below(entry.path());
  ::rmdir(directory.c_str());
}

// Removes the cgroups of jobs that were running when their node daemon ended, and that have ended
// since.
void remove_cgroups(const Config& config) {
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    if (line.find(" - cgroup") == std::string::npos) continue;
    std::istringstream words(line);
    std::string at;
    for (int i = 0; i < 5; ++i) words >> at;  // the fifth field is the mount point
    const std::string root = at + "/" + config.noded.cgroup_root;
    for (const auto& node : config.nodes) remove_cgroups_below(root + "/" + node.name);
    ::rmdir(root.c_str());
  }
}

// Unmounts what is mounted below the directory: networks of jobs that were running when their node
// daemon ended.
void unmount_below(const std::string& directory) {
  std::ifstream mounts("/proc/self/mountinfo");
  std::vector<std::string> found;
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string at;
    for (int i = 0; i < 5; ++i) words >> at;  // the fifth field is the mount point
    if (at.starts_with(directory + "/")) found.push_back(at);
  }
  for (auto at = found.rbegin(); at != found.rend(); ++at)
    ::umount2(at->c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
}

}  // namespace

Result<void> LocalCluster::remove() const {
  if (!exists())
    return fail(ErrorCode::not_found,
                fmt::format("{} holds no cluster made by `gantry up`", directory_));
  if (const auto known = config()) remove_cgroups(*known);
  unmount_below(directory_);
  std::error_code error;
  std::filesystem::remove_all(directory_, error);
  if (error)
    return fail(ErrorCode::io_error,
                fmt::format("cannot remove {}: {}", directory_, error.message()));
  return {};
}

}  // namespace gantry::cli
