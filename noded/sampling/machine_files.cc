#include "noded/sampling/machine_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "noded/machine/files.h"

namespace gantry::sampling {

namespace {

constexpr std::uint64_t kUsOfTick = 10'000;  // USER_HZ is 100 on every supported architecture
constexpr std::uint64_t kBytesOfMegabit = 1'000'000 / 8;

// Block devices that only show files or memory of the machine.
bool is_disk(std::string_view name) {
  constexpr std::array<std::string_view, 5> kOthers{"loop", "ram", "zram", "sr", "fd"};
  return std::ranges::none_of(kOthers,
                              [&](std::string_view other) { return name.starts_with(other); });
}

neighbours::Stalled stalled(const KeptFile& cpu, const KeptFile& memory, const KeptFile& io,
                            std::string& buffer) {
  return {us_of(stalled_us(cpu.read(buffer))), us_of(stalled_us(memory.read(buffer))),
          us_of(stalled_us(io.read(buffer)))};
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

// Only real devices: bridges, tunnels and veth pairs would count the same bytes again.
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
  if (counts_pressure()) sample.stalled = stalled(cpu_, memory_, io_, buffer_);
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
    const bool counted =
        std::ranges::any_of(disks_, [&](const auto& disk) { return disk.second == name; });
    if (!counted) continue;
    std::array<std::uint64_t, 10> n{};
    for (std::uint64_t& one : n) one = take_number(line);
    out.push_back({std::string(name), us_of(n[9] * 1000), (n[2] + n[6]) * kSector, n[0] + n[4]});
  }
}

KeptFile::KeptFile(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}

std::string_view KeptFile::read(std::string& buffer) const {
  if (!fd_) return {};
  if (buffer.size() < 4096) buffer.resize(4096);
  std::size_t have = 0;
  for (;;) {
    const ssize_t n =
        ::pread(fd_.get(), buffer.data() + have, buffer.size() - have, static_cast<off_t>(have));
    if (n < 0) return {};
    have += static_cast<std::size_t>(n);
    // One read returns all of such a file, unless the buffer is full.
    if (have < buffer.size()) return std::string_view(buffer).substr(0, have);
    buffer.resize(buffer.size() * 2);
  }
}

std::uint64_t KeptFile::number(std::string& buffer) const {
  std::string_view text = read(buffer);
  return take_number(text);
}

std::uint64_t take_number(std::string_view& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  while (text.starts_with(' ')) text.remove_prefix(1);
  return error == std::errc{} ? value : 0;
}

std::string_view take_word(std::string_view& text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  while (text.starts_with(' ')) text.remove_prefix(1);
  return word;
}

std::string_view take_line(std::string_view& text) {
  const auto end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

std::uint64_t keyed(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    std::string_view line = take_line(text);
    if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != ' ') continue;
    line.remove_prefix(name.size() + 1);
    return take_number(line);
  }
  return 0;
}

std::uint64_t stalled_us(std::string_view text) {
  const auto at = text.find("total=");
  if (!text.starts_with("some ") || at == std::string_view::npos) return 0;
  text.remove_prefix(at + 6);
  return take_number(text);
}

namespace {

neighbours::DiskUse& disk_of(std::vector<neighbours::DiskUse>& disks, const std::string& name) {
  const auto it =
      std::ranges::find_if(disks, [&](const neighbours::DiskUse& one) { return one.name == name; });
  return it != disks.end() ? *it : disks.emplace_back(neighbours::DiskUse{name, 0, 0, 0});
}

// "254:0 Read 4096": adds the lines of reads and writes.
template <class Add>
void each_v1(std::string_view text, const DiskNames& disks, const Add& add) {
  while (!text.empty()) {
    std::string_view line = take_line(text);
    const auto name = disks.find(take_word(line));
    const std::string_view what = take_word(line);
    if (name != disks.end() && (what == "Read" || what == "Write"))
      add(name->second, take_number(line));
  }
}

}  // namespace

JobFiles::JobFiles(const runtime::CgroupLayout& layout, const std::string& monitored,
                   WatchedJob job)
    : job_(std::move(job)), version_(layout.version) {
  const auto file = [&](std::string_view controller, const char* name) {
    const runtime::CgroupMount* mount = layout.with(controller);
    if (mount == nullptr && version_ == 2 && !layout.mounts.empty()) mount = &layout.mounts[0];
    return mount == nullptr ? KeptFile() : KeptFile(mount->path + "/" + job_.cgroup + "/" + name);
  };
  if (version_ == 2) {
    cpu_ = file("cpu", "cpu.stat");
    memory_ = file("memory", "memory.current");
    io_ = file("io", "io.stat");
    cpu_pressure_ = file("cpu", "cpu.pressure");
    memory_pressure_ = file("memory", "memory.pressure");
    io_pressure_ = file("io", "io.pressure");
  } else if (version_ == 1) {
    cpu_ = file("cpuacct", "cpuacct.usage");
    memory_ = file("memory", "memory.usage_in_bytes");
    io_ = file("blkio", "blkio.throttle.io_service_bytes_recursive");
    operations_ = file("blkio", "blkio.throttle.io_serviced_recursive");
  }
  if (!job_.network_sys.empty()) {
    const std::string counts = job_.network_sys + "/class/net/eth0/statistics/";
    network_in_ = KeptFile(counts + "rx_bytes");
    network_out_ = KeptFile(counts + "tx_bytes");
  }
  for (const std::string& domain : runtime::list_dir(monitored + "/mon_data")) {
    KeptFile traffic(monitored + "/mon_data/" + domain + "/mbm_total_bytes");
    if (traffic.is_there()) traffic_.push_back(std::move(traffic));
  }
}

void JobFiles::read_v1(const DiskNames& disks, neighbours::JobCount& out,
                       std::string& buffer) const {
  out.cpu = us_of(cpu_.number(buffer) / 1000);
  each_v1(io_.read(buffer), disks,
          [&](const std::string& name, std::uint64_t n) { disk_of(out.disks, name).bytes += n; });
  each_v1(operations_.read(buffer), disks, [&](const std::string& name, std::uint64_t n) {
    disk_of(out.disks, name).operations += n;
  });
}

void JobFiles::read_v2(const DiskNames& disks, neighbours::JobCount& out,
                       std::string& buffer) const {
  const std::string_view cpu = cpu_.read(buffer);
  out.cpu = us_of(keyed(cpu, "usage_usec"));
  out.throttled = us_of(keyed(cpu, "throttled_usec"));
  if (io_pressure_.is_there())
    out.stalled = stalled(cpu_pressure_, memory_pressure_, io_pressure_, buffer);
  std::string_view text = io_.read(buffer);
  while (!text.empty()) {  // "254:0 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0"
    std::string_view line = take_line(text);
    const auto name = disks.find(take_word(line));
    if (name == disks.end()) continue;
    neighbours::DiskUse& disk = disk_of(out.disks, name->second);
    while (!line.empty()) {
      std::string_view word = take_word(line);
      const auto equals = word.find('=');
      if (equals == std::string_view::npos) continue;
      const std::string_view what = word.substr(0, equals);
      word.remove_prefix(equals + 1);
      if (what == "rbytes" || what == "wbytes") disk.bytes += take_number(word);
      if (what == "rios" || what == "wios") disk.operations += take_number(word);
    }
  }
}

neighbours::JobCount JobFiles::read(const DiskNames& disks, std::string& buffer) const {
  neighbours::JobCount out;
  out.key = job_.key;
  out.cpus = job_.cpus;
  out.memory_limit = job_.memory_limit;
  out.memory = static_cast<std::int64_t>(memory_.number(buffer));
  out.network_limit = job_.network_limit;
  if (version_ == 2)
    read_v2(disks, out, buffer);
  else
    read_v1(disks, out, buffer);
  for (neighbours::DiskUse& disk : out.disks) {
    disk.limit = job_.io_limit;
    disk.held = held_.contains(disk.name);
  }
  if (network_in_.is_there()) {
    out.network_in = network_in_.number(buffer);
    out.network_out = network_out_.number(buffer);
  }
  if (!traffic_.empty()) {
    out.memory_traffic = 0;
    for (const KeptFile& file : traffic_) *out.memory_traffic += file.number(buffer);
  }
  return out;
}

}  // namespace gantry::sampling
