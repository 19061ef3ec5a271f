// Nodes and partitions of slurm.conf and gres.conf, converted; see import_conf.h.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/slurm/import/import_conf.h"

namespace gantry::cli::slurm {

class NodesAndPartitions {
 public:
  using LeftOut = std::vector<std::string>;

  void take_node(const ConfLine& line, LeftOut& left_out);
  void take_partition(const ConfLine& line, LeftOut& left_out);
  void take_gres(const ConfLine& line, LeftOut& left_out);  // call it after all nodes

  // The text of the sections `nodes` and `partitions`.
  [[nodiscard]] std::string yaml(LeftOut& left_out) const;

  std::string default_memory_per_cpu;  // slurm.conf's DefMemPerCPU, in MB

 private:
  struct Node {
    std::string place, names;
    std::map<std::string, std::string> words;
    std::map<std::string, std::string> ours;  // keys of gantry.yaml, set by gres.conf
  };
  struct Partition {
    std::string place, name;
    std::map<std::string, std::string> words;
  };
  void take(const ConfLine& line, std::map<std::string, std::string>& defaults,
            std::map<std::string, std::string>& words) const;

  std::map<std::string, std::string> node_defaults_, partition_defaults_;
  std::vector<Node> nodes_;
  std::vector<Partition> partitions_;
};

}  // namespace gantry::cli::slurm
