#include "tests/sched/openb.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>
#include <sstream>

#include "tests/sched/replay.h"

namespace gantry::sched {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::uint64_t kInflation = 130;  // percent

std::vector<std::vector<std::string>> read_csv(const std::string& path) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(read_trace(path));
  std::string line;
  std::getline(lines, line);  // names of the columns
  while (std::getline(lines, line)) {
    std::vector<std::string> row;
    std::istringstream fields(line);
    for (std::string field; std::getline(fields, field, ',');) row.push_back(field);
    rows.push_back(std::move(row));
  }
  return rows;
}

class Models {
 public:
  std::uint32_t index(const std::string& name) {
    return numbers_.emplace(name, static_cast<std::uint32_t>(numbers_.size())).first->second;
  }
  std::uint64_t bits(const std::string& names) {  // "V100M16|V100M32"
    std::uint64_t bits = 0;
    std::istringstream all(names);
    for (std::string name; std::getline(all, name, '|');) bits |= std::uint64_t{1} << index(name);
    return bits;
  }

 private:
  std::map<std::string, std::uint32_t> numbers_;
};

}  // namespace

std::optional<Openb> read_openb(const std::string& nodes, const std::string& tasks) {
  if (!std::filesystem::exists(nodes) || !std::filesystem::exists(tasks)) return std::nullopt;
  Openb openb;
  Models models;
  for (const auto& row : read_csv(nodes)) {
    DeviceRoom node;
    node.cpu = std::stoll(row[1]);
    node.memory = std::stoll(row[2]) * kMiB;
    node.devices = static_cast<std::uint32_t>(std::stoul(row[3]));
    node.model = models.index(row.size() > 4 ? row[4] : "");
    std::fill_n(node.free.begin(), node.devices, kWholeGpu);
    openb.gpus += node.devices;
    openb.nodes.push_back(node);
  }
  for (const auto& row : read_csv(tasks)) {
    DeviceNeed task;
    task.cpu = std::stoll(row[1]);
    task.memory = std::stoll(row[2]) * kMiB;
    task.gpus = static_cast<std::uint32_t>(std::stoul(row[3]));
    task.each = task.gpus == 0 ? kWholeGpu : static_cast<std::uint16_t>(std::stoul(row[4]));
    task.models = models.bits(row[5]);
    openb.tasks.push_back(task);
  }
  return openb;
}

OpenbResult run_openb(const Openb& openb, std::uint64_t seed) {
  std::map<DeviceNeed, std::uint64_t> counts;
  for (const DeviceNeed& task : openb.tasks) ++counts[task];
  FragmentPlacer placer(Fragmentation(typical_needs(counts)), openb.nodes);
  std::mt19937_64 random(seed);
  std::vector<DeviceNeed> tasks = openb.tasks;
  std::shuffle(tasks.begin(), tasks.end(), random);
  OpenbResult result;
  std::uint64_t asked = 0, used = 0;
  for (std::size_t i = 0; asked * 100 < openb.gpus * kWholeGpu * kInflation; ++i) {
    const DeviceNeed& task =
        i < tasks.size() ? tasks[i] : openb.tasks[random() % openb.tasks.size()];
    asked += std::uint64_t{task.gpus} * task.each;
    if (placer.place(task)) {
      used += std::uint64_t{task.gpus} * task.each;
      ++result.placed;
    } else {
      ++result.refused;
    }
  }
  result.allocated =
      100.0 * static_cast<double>(used) / static_cast<double>(openb.gpus) / kWholeGpu;
  result.signatures = placer.fragmentation().signatures();
  return result;
}

}  // namespace gantry::sched
