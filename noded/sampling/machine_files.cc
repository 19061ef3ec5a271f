#include "noded/sampling/machine_files.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "noded/machine/files.h"

namespace gantry::sampling {
namespace {

constexpr std::uint64_t kUsOfTick = 10'000;  // USER_HZ is 100 on every architecture that we run on
constexpr std::uint64_t kBytesOfMegabit = 1'000'000 / 8;

// Disks that only show files or memory of the machine again.
bool is_disk(std::string_view name) {
  constexpr std::array<std::string_view, 5> kOthers{"loop", "ram", "zram", "sr", "fd"};
  return std::none_of(kOthers.begin(), kOthers.end(),
                      [&](std::string_view other) { return name.starts_with(other); });
}

}  // namespace

MachineFiles::MachineFiles(std::string proc, std::string sys, std::uint64_t memory_traffic_most)
    : proc_(std::move(proc)),
      sys_(std::move(sys)),
      traffic_most_(memory_traffic_most),
      cpu_(proc_ + "/pressure/cpu"),
      memory_(proc_ + "/pressure/memory"),
      io_(proc_ + "/pressure/io"),
      stat_(proc_ + "/stat"),
      meminfo_(proc_ + "/meminfo"),
      diskstats_(proc_ + "/diskstats") {
  find_disks();
  find_links();
  find_traffic();
}

void MachineFiles::find_disks() {
  for (const std::string& name : runtime::list_dir(sys_ + "/block")) {
    if (!is_disk(name)) continue;
    const auto number = runtime::read_file(sys_ + "/block/" + name + "/dev");
    if (number) disks_[runtime::trim(*number)] = name;
  }
}

// Links of devices: bridges, tunnels and pairs of namespaces carry the same bytes once more.
void MachineFiles::find_links() {
  for (const std::string& name : runtime::list_dir(sys_ + "/class/net")) {
    const std::string dir = sys_ + "/class/net/" + name;
    if (::access((dir + "/device").c_str(), F_OK) != 0) continue;
    const auto speed = runtime::read_file(dir + "/speed");  // in Mbit/s; -1 = not known
    const std::string text = runtime::trim(speed.value_or("-1"));
    std::string_view rest = text;
    const std::uint64_t megabits = take_number(rest);
    if (megabits == 0) continue;
    const std::string counts = dir + "/statistics/";
    links_.push_back({name, megabits * kBytesOfMegabit, KeptFile(counts + "rx_bytes"),
                      KeptFile(counts + "tx_bytes"), KeptFile(counts + "rx_dropped"),
                      KeptFile(counts + "tx_dropped")});
  }
}

void MachineFiles::find_traffic() {
  if (traffic_most_ == 0) return;
  const std::string dir = sys_ + "/fs/resctrl/mon_data";
  for (const std::string& domain : runtime::list_dir(dir)) {
    KeptFile file(dir + "/" + domain + "/mbm_total_bytes");
    if (file.is_there()) traffic_.push_back(std::move(file));
  }
}

void MachineFiles::read(neighbours::Sample& sample) {
  if (counts_pressure()) {
    sample.stalled.emplace();
    sample.stalled->cpu = us_of(stalled_us(cpu_.read(buffer_)));
    sample.stalled->memory = us_of(stalled_us(memory_.read(buffer_)));
    sample.stalled->io = us_of(stalled_us(io_.read(buffer_)));
  }
  std::string_view stat = stat_.read(buffer_);
  std::string_view cpu = take_line(stat);  // "cpu  user nice system idle iowait irq softirq steal"
  if (cpu.starts_with("cpu ")) {
    take_word(cpu);
    std::uint64_t ticks = 0;
    for (int i = 0; i < 8; ++i) {
      const std::uint64_t n = take_number(cpu);
      if (i != 3 && i != 4) ticks += n;
    }
    sample.cpu = us_of(ticks * kUsOfTick);
    std::uint32_t cpus = 0;
    while (take_line(stat).starts_with("cpu")) ++cpus;
    sample.cpus = cpus;
  }
  const std::string_view memory = meminfo_.read(buffer_);
  const auto kib = [&](std::string_view name) {
    const auto at = memory.find(name);
    if (at == std::string_view::npos) return std::int64_t{0};
    std::string_view rest = memory.substr(at + name.size());
    take_word(rest);
    const auto number = rest.find_first_not_of(' ');
    rest.remove_prefix(std::min(number, rest.size()));
    return static_cast<std::int64_t>(take_number(rest));
  };
  sample.memory_used = (kib("MemTotal") - kib("MemAvailable")) * 1024;
  read_disks(sample.disks);
  for (const Link& link : links_) {
    sample.links.push_back({link.name, neighbours::Direction::in, link.in.number(buffer_),
                            link.in_drops.number(buffer_), link.bytes_per_second});
    sample.links.push_back({link.name, neighbours::Direction::out, link.out.number(buffer_),
                            link.out_drops.number(buffer_), link.bytes_per_second});
  }
  if (traffic_.empty()) return;
  sample.memory_traffic_most = traffic_most_;
  sample.memory_traffic = 0;
  for (const KeptFile& file : traffic_) *sample.memory_traffic += file.number(buffer_);
}

// MAJOR MINOR NAME reads merged sectors ms writes merged sectors ms now busy_ms ...
void MachineFiles::read_disks(std::vector<neighbours::DiskCount>& out) {
  constexpr std::uint64_t kSector = 512;
  std::string_view text = diskstats_.read(buffer_);
  while (!text.empty()) {
    std::string_view line = take_line(text);
    take_word(line);
    take_word(line);
    const std::string_view name = take_word(line);
    const bool counted = std::any_of(disks_.begin(), disks_.end(),
                                     [&](const auto& disk) { return disk.second == name; });
    if (!counted) continue;
    std::array<std::uint64_t, 10> n{};
    for (std::uint64_t& one : n) one = take_number(line);
    out.push_back({std::string(name), us_of(n[9] * 1000), (n[2] + n[6]) * kSector, n[0] + n[4]});
  }
}

}  // namespace gantry::sampling
