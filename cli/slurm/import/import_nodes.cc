#include "cli/slurm/import/import_nodes.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "cli/option.h"
#include "cli/slurm/format.h"
#include "common/resources/resources.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

using WordMap = std::map<std::string, std::string>;

constexpr std::string_view kNodeKeys[] = {
    "nodename",   "nodehostname", "nodeaddr",        "cpus",           "procs",
    "boards",     "sockets",      "socketsperboard", "corespersocket", "threadspercore",
    "realmemory", "memspeclimit", "tmpdisk",         "gres",           "feature",
    "features",   "state"};
constexpr std::string_view kImportedPartitionKeys[] = {
    "partitionname", "nodes",        "default",       "maxtime", "defaulttime", "maxnodes",
    "prioritytier",  "defmempercpu", "oversubscribe", "shared",  "state"};

std::string conf_word(const WordMap& words, const char* key, std::string otherwise = "") {
  const auto it = words.find(key);
  return it == words.end() ? std::move(otherwise) : it->second;
}

std::int64_t conf_number(const WordMap& words, const char* key, std::int64_t otherwise) {
  const auto n = parse_integer(key, conf_word(words, key), 0, INT64_MAX);
  return n ? *n : otherwise;
}

template <std::size_t N>
void leave_others(const std::string& place, const WordMap& words,
                  const std::string_view (&known)[N], std::vector<std::string>& left_out) {
  for (const auto& [key, value] : words)
    if (std::find(std::begin(known), std::end(known), key) == std::end(known))
      left_out.push_back(fmt::format("{}: {}={}: has no counterpart", place, key, value));
}

std::int64_t conf_cpus_of(const WordMap& words) {
  const std::int64_t sockets =
      words.contains("sockets")
          ? conf_number(words, "sockets", 1)
          : conf_number(words, "boards", 1) * conf_number(words, "socketsperboard", 1);
  const std::int64_t made =
      sockets * conf_number(words, "corespersocket", 1) * conf_number(words, "threadspercore", 1);
  return conf_number(words, "cpus", conf_number(words, "procs", made));
}

// One item of a Gres list: "gpu:a100:4", "gpu:4(S:0-1)", "nvme:no_consume:1", "fpga:2K" have a
// name, a type and a count.
struct ConfGres {
  std::string name, type;
  std::int64_t count = 1;
};
ConfGres parse_conf_gres(std::string text) {
  text = text.substr(0, text.find('('));
  ConfGres out;
  std::vector<std::string> parts(1);
  for (const char c : text)
    if (c == ':')
      parts.emplace_back();
    else
      parts.back() += c;
  out.name = lower_case(parts[0]);
  for (std::size_t i = 1; i < parts.size(); ++i)
    if (const auto n = parse_integer("count", parts[i], 0, 1'000'000))
      out.count = *n;
    else if (parts[i] != "no_consume")
      out.type = lower_case(parts[i]);
  return out;
}

// Translates the value of Gres in slurm.conf to our keys.
void put_conf_gres(const std::string& place, const std::string& text, WordMap& ours,
                   std::vector<std::string>& left_out) {
  std::int64_t gpus = 0, shards = 0;
  std::set<std::string> models;
  std::vector<std::string> others;
  for (const std::string& one : split_list(text)) {
    const ConfGres gres = parse_conf_gres(one);
    if (gres.name == "gpu") {
      gpus += gres.count;
      if (!gres.type.empty()) models.insert(gres.type);
    } else if (gres.name == "shard") {
      shards = gres.count;
    } else if (gres.name == "mps") {
      ours["gpu_sharing"] = "mps";
      left_out.push_back(fmt::format(
          "{}: gres={}: the number of parts: a job asks for a part of a GPU (--gpus=0.5)", place,
          one));
    } else if (!gres.type.empty()) {
      left_out.push_back(
          fmt::format("{}: gres={}: other resources than GPUs have no types", place, one));
    } else {
      if (one.find("no_consume") != std::string::npos)
        left_out.push_back(fmt::format("{}: gres={}: what is given is always taken", place, one));
      others.push_back(fmt::format("\"{}:{}\"", gres.name, gres.count));
    }
  }
  if (gpus > 0) ours["gpus"] = std::to_string(gpus);
  if (models.size() == 1) ours["gpu_model"] = *models.begin();
  if (models.size() > 1)
    left_out.push_back(fmt::format("{}: gres={}: a node's GPUs are of one model", place, text));
  if (shards > 0 && gpus > 0) {
    ours.emplace("gpu_sharing", "time-slicing");
    ours["gpu_shards"] = std::to_string(shards / gpus);
  }
  if (!others.empty()) ours["gres"] = fmt::format("[{}]", fmt::join(others, ", "));
}

bool conf_yes(const std::string& text) {
  return lower_case(text) == "yes";
}

// Translates a time limit of slurm.conf: minutes, or D-HH:MM:SS. UNLIMITED is also our word.
std::string conf_limit(const std::string& text) {
  const auto limit = parse_duration(text);
  if (!limit || !*limit) return "unlimited";
  return fmt::format("{}s", (*limit)->us / 1'000'000);
}

}  // namespace

void NodesAndPartitions::take(const ConfLine& line, WordMap& defaults, WordMap& words) const {
  words = defaults;
  for (const auto& [key, value] : line.words) words[key] = value;
  if (lower_case(line.words.front().second) != "default") return;
  defaults = words;
  defaults.erase(line.words.front().first);
  words.clear();
}

void NodesAndPartitions::take_node(const ConfLine& line, LeftOut& left_out) {
  Node node;
  node.place = line.place;
  take(line, node_defaults_, node.words);
  if (node.words.empty()) return;  // the line was NodeName=DEFAULT
  node.names = conf_word(node.words, "nodename");
  const std::string state = lower_case(conf_word(node.words, "state"));
  if (state == "future" || state == "cloud") {
    left_out.push_back(
        fmt::format("{}: nodename={}: nodes in the state {} are not known before "
                    "they are there",
                    line.place, node.names, state));
    return;
  }
  leave_others(line.place, node.words, kNodeKeys, left_out);
  if (!state.empty() && state != "unknown" && state != "idle")
    left_out.push_back(fmt::format("{}: {}: state={}: nodes are drained with gctl drain",
                                   line.place, node.names, state));
  for (const char* key : {"nodeaddr", "nodehostname"})
    if (const std::string value = conf_word(node.words, key); value != node.names && !value.empty())
      left_out.push_back(fmt::format("{}: {}={}: a node calls the controller, under its own name",
                                     line.place, key, value));
  put_conf_gres(line.place, conf_word(node.words, "gres"), node.ours, left_out);
  nodes_.push_back(std::move(node));
}

void NodesAndPartitions::take_partition(const ConfLine& line, LeftOut& left_out) {
  Partition partition;
  partition.place = line.place;
  take(line, partition_defaults_, partition.words);
  if (partition.words.empty()) return;
  partition.name = conf_word(partition.words, "partitionname");
  leave_others(line.place, partition.words, kImportedPartitionKeys, left_out);
  const auto leave = [&](const char* key, const std::string& value, std::string_view why) {
    left_out.push_back(fmt::format("{}: {}={}: {}", line.place, key, value, why));
  };
  if (const std::string state = lower_case(conf_word(partition.words, "state"));
      !state.empty() && state != "up" && state != "down")
    leave("state", state, "a partition is up or down");
  for (const char* key : {"maxnodes", "defmempercpu", "prioritytier"}) {
    const std::string value = conf_word(partition.words, key, "1");
    const bool none = std::string_view(key) == "maxnodes" && lower_case(value) == "unlimited";
    if (!none &&
        !parse_integer(key, value, std::string_view(key) == "prioritytier" ? 0 : 1, INT64_MAX))
      leave(key, value, "is no number of ours");
  }
  partitions_.push_back(std::move(partition));
}

// Takes from gres.conf only what slurm.conf lacks: models of GPUs, and device files of other
// resources. NVIDIA's library finds the device files and cores of GPUs.
void NodesAndPartitions::take_gres(const ConfLine& line, LeftOut& left_out) {
  WordMap words;
  for (const auto& [key, value] : line.words) words[key] = value;
  const std::string name = lower_case(conf_word(words, "name"));
  const std::string type = lower_case(conf_word(words, "type"));
  if (name.empty()) {  // a line without a name: AutoDetect=nvml
    if (!lower_case(conf_word(words, "autodetect")).starts_with("nv"))
      leave_others(line.place, words, {"nodename"}, left_out);
    return;
  }
  if (name == "mps" || name == "shard") return;  // taken from Gres in slurm.conf
  const auto wanted = expand_hostlist(conf_word(words, "nodename"));
  bool used = false;
  if (name != "gpu")  // NVIDIA's library tells the rest about GPUs
    leave_others(line.place, words, {"name", "nodename", "type", "count", "file"}, left_out);
  for (Node& node : nodes_) {
    const auto names = expand_hostlist(node.names);
    const bool here = !words.contains("nodename") ||
                      (wanted && names && std::any_of(names->begin(), names->end(), [&](auto& n) {
                         return std::find(wanted->begin(), wanted->end(), n) != wanted->end();
                       }));
    if (!here) continue;
    const std::string& had = conf_word(node.words, "gres");
    if (had.find(name) == std::string::npos) continue;
    used = true;
    if (name == "gpu") {
      if (!type.empty() && !node.ours.contains("gpu_model")) node.ours["gpu_model"] = type;
    } else if (words.contains("file") && node.ours.contains("gres")) {
      std::string& gres = node.ours["gres"];
      const std::size_t at = gres.find("\"" + name + ":");
      if (at != std::string::npos)
        gres.replace(at, gres.find('"', at + 1) - at + 1,
                     fmt::format("\"{}:{}\"", name, words["file"]));
    }
  }
  if (!used)
    left_out.push_back(
        fmt::format("{}: name={}: no node of slurm.conf has it in Gres", line.place, name));
}

std::string NodesAndPartitions::yaml(LeftOut& left_out) const {
  std::string out = "\nnodes:\n";
  for (const Node& node : nodes_) {
    out += fmt::format("  - name: {}\n    cpus: {}\n", node.names, conf_cpus_of(node.words));
    const std::int64_t memory = conf_number(node.words, "realmemory", 0);
    if (memory == 0)
      left_out.push_back(fmt::format("{}: {}: memory is not given; put in what there is for jobs",
                                     node.place, node.names));
    out += fmt::format("    memory: {}M\n",
                       std::max<std::int64_t>(memory - conf_number(node.words, "memspeclimit", 0),
                                              memory == 0 ? 1024 : 1));
    if (const std::int64_t tmp = conf_number(node.words, "tmpdisk", 0); tmp > 0)
      out += fmt::format("    scratch: {}M\n", tmp);
    for (const auto& [key, value] : node.ours) out += fmt::format("    {}: {}\n", key, value);
    const std::string features =
        conf_word(node.words, "features", conf_word(node.words, "feature"));
    if (!features.empty())
      out += fmt::format("    features: [{}]\n", fmt::join(split_list(features), ", "));
  }
  if (partitions_.empty()) return out;
  out += "\npartitions:\n";
  const bool marked = std::any_of(partitions_.begin(), partitions_.end(), [](const Partition& p) {
    return conf_yes(conf_word(p.words, "default"));
  });
  for (const Partition& p : partitions_) {
    const std::string nodes = conf_word(p.words, "nodes", "ALL");
    out += fmt::format("  - name: {}\n    nodes: {}\n", p.name,
                       lower_case(nodes) == "all" ? "all" : nodes);
    if (conf_yes(conf_word(p.words, "default")) || (!marked && &p == &partitions_.front()))
      out += "    default: true\n";
    if (!marked && &p == &partitions_.front())
      left_out.push_back(fmt::format("{}: {}: made the default, as none is", p.place, p.name));
    if (lower_case(conf_word(p.words, "state")) == "down") out += "    up: false\n";
    if (p.words.contains("prioritytier"))
      out += fmt::format("    priority: {}\n", conf_word(p.words, "prioritytier"));
    if (p.words.contains("maxtime"))
      out += fmt::format("    max_time: {}\n", conf_limit(conf_word(p.words, "maxtime")));
    if (p.words.contains("defaulttime"))
      out += fmt::format("    default_time: {}\n", conf_limit(conf_word(p.words, "defaulttime")));
    const std::string most = conf_word(p.words, "maxnodes");
    if (parse_integer("MaxNodes", most, 1, 65536)) out += fmt::format("    max_nodes: {}\n", most);
    const std::string each = conf_word(p.words, "defmempercpu", default_memory_per_cpu);
    if (parse_integer("DefMemPerCPU", each, 1, INT64_MAX))
      out += fmt::format("    default_memory_per_cpu: {}M\n", each);
    const std::string shared =
        lower_case(conf_word(p.words, "oversubscribe", conf_word(p.words, "shared")));
    if (shared == "exclusive") out += "    exclusive_nodes: true\n";
    if (shared.starts_with("force") || shared.starts_with("yes"))
      left_out.push_back(
          fmt::format("{}: oversubscribe={}: cores are never given to two jobs", p.place, shared));
  }
  return out;
}

}  // namespace gantry::cli::slurm
