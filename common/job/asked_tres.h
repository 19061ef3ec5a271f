// AskedTres keeps the GPUs, and what goes with them, that a job or a step has asked for, in the
// words of Slurm's listings: "gres:gpu:h100:4". It is shown, and decides nothing; "" = not asked
// for.
#pragma once

#include <string>

namespace gantry {

struct AskedTres {
  std::string per_job;   // of a step: of the whole step
  std::string per_node;  // by --gpus-per-node and --gres
  std::string per_socket;
  std::string per_task;
  std::string cpus;    // for each GPU: "gres:gpu:2"
  std::string memory;  // for each GPU, in MiB: "gres:gpu:1024"
  std::string bind;    // "gpu:closest"
  std::string freq;    // "gpu:medium"
  friend bool operator==(const AskedTres&, const AskedTres&) = default;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "per_job", s.per_job);
    v(2, "per_node", s.per_node);
    v(3, "per_socket", s.per_socket);
    v(4, "per_task", s.per_task);
    v(5, "cpus", s.cpus);
    v(6, "memory", s.memory);
    v(7, "bind", s.bind);
    v(8, "freq", s.freq);
  }
};

}  // namespace gantry
