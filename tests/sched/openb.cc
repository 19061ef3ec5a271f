#include "tests/sched/openb.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>
#include <sstream>

#include "common/assert.h"
#include "ctld/sched/controller_policy.h"
#include "ctld/sched/cycle/schedule.h"
#include "tests/sched/replay.h"

namespace gantry::sched {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::uint64_t kInflation = 130;  // percent

std::vector<std::vector<std::string>> read_csv(const std::string& path) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(read_trace(path));
  std::string line;
  std::getline(lines, line);  // this line has the names of the columns
  while (std::getline(lines, line)) {
    std::vector<std::string> row;
    std::istringstream fields(line);
    for (std::string field; std::getline(fields, field, ',');) row.push_back(field);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::uint32_t whole_cores(const std::string& thousandths) {
  return static_cast<std::uint32_t>((std::stoul(thousandths) + 999) / 1000);
}

}  // namespace

std::optional<Openb> read_openb(const std::string& nodes, const std::string& tasks) {
  if (!std::filesystem::exists(nodes) || !std::filesystem::exists(tasks)) return std::nullopt;
  Openb openb;
  for (const auto& row : read_csv(nodes)) {
    NodeChanged node;
    node.node = NodeId{static_cast<std::uint32_t>(openb.nodes.size())};
    node.name = row[0];
    node.available = true;
    for (std::uint32_t c = 0; c < whole_cores(row[1]); ++c)
      node.cpus.push_back(static_cast<std::uint16_t>(c));
    node.memory = std::stoll(row[2]) * kMiB;
    node.gpus = static_cast<std::uint32_t>(std::stoul(row[3]));
    node.gpu_model = row.size() > 4 ? row[4] : "";
    node.gpu_sharing = true;
    openb.gpus += node.gpus;
    openb.nodes.push_back(std::move(node));
  }
  for (const auto& row : read_csv(tasks)) {
    JobShape shape;
    shape.cpus_per_task = std::max(whole_cores(row[1]), 1u);
    shape.memory_per_node = std::max<std::int64_t>(std::stoll(row[2]), 1) * kMiB;
    shape.gpus_per_node = static_cast<std::uint32_t>(std::stoul(row[3]));
    const std::uint32_t each =
        shape.gpus_per_node == 0 ? 1000 : static_cast<std::uint32_t>(std::stoul(row[4]));
    GANTRY_ASSERT(each == 1000 || shape.gpus_per_node == 1, "parts of several GPUs");
    if (each < 1000) {
      shape.gpus_per_node = 0;
      shape.gpu_share = each;
    }
    if (row.size() > 5) {  // such as "V100M16|V100M32"
      std::istringstream all(row[5]);
      for (std::string name; std::getline(all, name, '|');) shape.gpu_models.push_back(name);
    }
    openb.tasks.push_back({std::move(shape)});
  }
  return openb;
}

Openb openb_mix(const Openb& openb, const std::string& mix) {
  Openb out{openb.nodes, {}, openb.gpus};
  std::mt19937_64 random(99);
  std::vector<OpenbTask> more;
  std::uint64_t all = 0, of_more = 0;
  const auto is_more = [&](const OpenbTask& t) {
    if (mix == "gpushare100") return t.shape.gpu_share > 0;
    return mix == "multigpu50" && t.shape.gpus_per_node > 1;
  };
  std::vector<const std::string*> models;  // one entry for each GPU
  for (const NodeChanged& n : openb.nodes) models.insert(models.end(), n.gpus, &n.gpu_model);
  for (const OpenbTask& t : openb.tasks) {
    all += t.thousandths();
    if (is_more(t)) {
      more.push_back(t);
      of_more += t.thousandths();
    }
    if (mix == "gpushare100" && t.shape.gpus_per_node > 0) continue;
    out.tasks.push_back(t);
    if (mix == "cpu200" && t.thousandths() == 0) out.tasks.push_back(t);
    if (mix == "gpuspec33" && t.thousandths() > 0 && random() % 3 == 0)
      out.tasks.back().shape.gpu_models = {*models[random() % models.size()]};
  }
  if (more.empty()) return out;
  const std::uint64_t wanted = mix == "multigpu50" ? all - of_more : all;
  while (of_more < wanted) {
    out.tasks.push_back(more[random() % more.size()]);
    of_more += out.tasks.back().thousandths();
  }
  return out;
}

OpenbResult run_openb(const Openb& openb, std::uint64_t seed) {
  Replica replica;
  PartitionChanged partition;
  partition.name = "pool";
  for (const NodeChanged& node : openb.nodes) {
    replica.apply(node);
    partition.nodes.push_back(node.node);
  }
  replica.apply(partition);
  const Policy policy = controller_policy(Policy{}.depth);
  std::mt19937_64 random(seed);
  std::vector<OpenbTask> tasks = openb.tasks;
  std::shuffle(tasks.begin(), tasks.end(), random);
  OpenbResult result;
  Instant now{seconds(1'000'000).us};
  std::uint64_t asked = 0, used = 0;
  for (std::size_t i = 0; asked * 100 < openb.gpus * 1000 * kInflation; ++i) {
    const OpenbTask& task =
        i < tasks.size() ? tasks[i] : openb.tasks[random() % openb.tasks.size()];
    asked += task.thousandths();
    now = now + seconds(1);
    JobQueued job;
    job.job = JobId{i + 1};
    job.key.shape = task.shape;
    job.queued_since = now;
    replica.apply(job);
    Plan plan = schedule(replica, now, policy);
    replica.apply(JobUnqueued{job.job});
    if (plan.starts.empty()) {
      ++result.refused;
      continue;
    }
    replica.apply(JobPlaced{job.job, plan.starts[0].grants, std::nullopt, false});
    used += task.thousandths();
    ++result.placed;
  }
  result.allocated = 100.0 * static_cast<double>(used) / static_cast<double>(openb.gpus) / 1000;
  return result;
}

}  // namespace gantry::sched
