#include "noded/sampling/job_files.h"

#include <algorithm>

#include "noded/machine/files.h"

namespace gantry::sampling {
namespace {

neighbours::DiskUse& disk_of(std::vector<neighbours::DiskUse>& disks, const std::string& name) {
  const auto it = std::find_if(disks.begin(), disks.end(),
                               [&](const neighbours::DiskUse& one) { return one.name == name; });
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
  if (io_pressure_.is_there()) {
    out.stalled.emplace();
    out.stalled->cpu = us_of(stalled_us(cpu_pressure_.read(buffer)));
    out.stalled->memory = us_of(stalled_us(memory_pressure_.read(buffer)));
    out.stalled->io = us_of(stalled_us(io_pressure_.read(buffer)));
  }
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
