#include "noded/machine/discover.h"

#include <sched.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <set>

#include "noded/machine/files.h"

namespace gantry::runtime {

namespace {

std::int64_t number_in(const std::string& path, std::int64_t fallback) {
  const auto text = read_file(path);
  if (!text) return fallback;
  std::int64_t value = fallback;
  const auto t = trim(*text);
  std::from_chars(t.data(), t.data() + t.size(), value);
  return value;
}

// Reads "Name: 123 kB" in a meminfo file, as bytes. Lines of per-node files begin with "Node 0 ".
std::int64_t meminfo(const std::string& path, std::string_view name) {
  const auto text = read_file(path);
  for (const auto& line : split(text.value_or(""), '\n')) {
    const auto at = line.find(name);
    if (at == std::string::npos || line.size() <= at + name.size() || line[at + name.size()] != ':')
      continue;
    const auto value = trim(std::string_view(line).substr(at + name.size() + 1));
    std::int64_t kib = 0;
    std::from_chars(value.data(), value.data() + value.size(), kib);
    return kib * 1024;
  }
  return 0;
}

std::vector<std::uint16_t> own_cpus() {
  std::vector<std::uint16_t> ids;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0)
    for (std::uint16_t i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set)) ids.push_back(i);
  return ids;
}

void add_numa(NodeFacts& facts) {
  const std::string base = "/sys/devices/system/node/";
  for (const auto& name : list_dir(base)) {
    if (!name.starts_with("node") || name.size() < 5 || name[4] < '0' || name[4] > '9') continue;
    const auto id = static_cast<std::uint16_t>(std::atoi(name.c_str() + 4));
    facts.numa.push_back({id, meminfo(base + name + "/meminfo", "MemTotal")});
    for (const auto cpu : parse_cpu_list(read_file(base + name + "/cpulist").value_or("")))
      for (auto& fact : facts.cpus)
        if (fact.id == cpu) fact.numa = id;
  }
  if (facts.numa.empty()) facts.numa.push_back({0, facts.memory});
}

void count_cores(NodeFacts& facts) {
  std::set<std::uint32_t> sockets;
  std::set<std::pair<std::uint32_t, std::uint32_t>> cores;
  for (const auto& cpu : facts.cpus) {
    sockets.insert(cpu.socket);
    cores.insert({cpu.socket, cpu.core});
  }
  facts.sockets = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(sockets.size()));
  const auto all = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(cores.size()));
  facts.cores_per_socket = std::max<std::uint32_t>(1, all / facts.sockets);
  facts.threads_per_core =
      std::max<std::uint32_t>(1, static_cast<std::uint32_t>(facts.cpus.size()) / all);
}

}  // namespace

std::vector<std::uint16_t> cpus_here(std::vector<std::uint16_t> cpus,
                                     const std::vector<std::uint16_t>& shared) {
  if (shared.empty()) return cpus;
  for (std::uint16_t& cpu : cpus) cpu = shared[cpu % shared.size()];
  std::ranges::sort(cpus);
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

NodeFacts discover_node(const std::string& scratch_dir) {
  NodeFacts facts;
  for (const auto id : own_cpus()) {
    const std::string dir = "/sys/devices/system/cpu/cpu" + std::to_string(id) + "/topology/";
    CpuFact cpu;
    cpu.id = id;
    cpu.core =
        static_cast<std::uint32_t>(std::max<std::int64_t>(0, number_in(dir + "core_id", id)));
    cpu.socket = static_cast<std::uint32_t>(
        std::max<std::int64_t>(0, number_in(dir + "physical_package_id", 0)));
    facts.cpus.push_back(cpu);
  }
  facts.memory = meminfo("/proc/meminfo", "MemTotal");
  add_numa(facts);
  count_cores(facts);
  struct statvfs fs {};
  if (!scratch_dir.empty() && ::statvfs(scratch_dir.c_str(), &fs) == 0)
    facts.scratch_free =
        static_cast<std::int64_t>(fs.f_bavail) * static_cast<std::int64_t>(fs.f_frsize);
  facts.boot_id = trim(read_file("/proc/sys/kernel/random/boot_id").value_or(""));
  utsname name{};
  if (::uname(&name) == 0) {
    facts.kernel = name.release;
    facts.hostname = name.nodename;
  }
  return facts;
}

double load_average() {
  double load[1] = {0};
  return ::getloadavg(load, 1) == 1 ? load[0] : 0;
}

std::int64_t available_memory() {
  return meminfo("/proc/meminfo", "MemAvailable");
}

std::vector<std::uint16_t> parse_cpu_list(std::string_view text) {
  std::vector<std::uint16_t> ids;
  for (const auto& part : split(trim(text), ',')) {
    const auto dash = part.find('-');
    unsigned first = 0, last = 0;
    const char* end = part.data() + part.size();
    if (std::from_chars(part.data(), end, first).ec != std::errc{}) continue;
    last = first;
    if (dash != std::string::npos &&
        std::from_chars(part.data() + dash + 1, end, last).ec != std::errc{})
      continue;
    for (unsigned i = first; i <= last && i < 65536; ++i)
      ids.push_back(static_cast<std::uint16_t>(i));
  }
  return ids;
}

NumaMap NumaMap::read(const std::string& base) {
  NumaMap out;
  std::set<int> nodes;
  for (const std::string& name : list_dir(base)) {
    int id = -1;
    if (!name.starts_with("node")) continue;
    const char* end = name.data() + name.size();
    if (const auto at = std::from_chars(name.data() + 4, end, id);
        at.ec == std::errc{} && at.ptr == end)
      nodes.insert(id);
  }
  for (const int node : nodes) {
    const std::string dir = base + "/node" + std::to_string(node);
    for (const std::uint16_t cpu : parse_cpu_list(read_file(dir + "/cpulist").value_or("")))
      out.node_of_[cpu] = node;
    // The file has one number for each node that exists, in their order.
    auto to = nodes.begin();
    for (const std::string& word : split(trim(read_file(dir + "/distance").value_or("")), ' ')) {
      std::uint32_t distance = 0;
      if (word.empty()) continue;
      if (to == nodes.end()) break;
      const auto at = std::from_chars(word.data(), word.data() + word.size(), distance);
      if (at.ec == std::errc{}) out.distance_[node][*to] = distance;
      ++to;
    }
  }
  return out;
}

std::uint32_t NumaMap::distance(std::span<const std::uint16_t> cpus, int node) const {
  if (node < 0) return kNumaOwn;
  std::uint32_t least = kNumaUnknown;
  for (const std::uint16_t cpu : cpus) {
    const auto from = node_of_.find(cpu);
    if (from == node_of_.end()) continue;
    const auto row = distance_.find(from->second);
    if (row == distance_.end()) continue;
    if (const auto at = row->second.find(node); at != row->second.end())
      least = std::min(least, at->second);
  }
  return least;
}

}  // namespace gantry::runtime
