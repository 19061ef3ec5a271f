// AskedTres keeps the request for GPUs of a job or step, and related requests, in the words of
// Slurm's listings: "gres:gpu:h100:4". It is only shown, and affects nothing; "" = not asked for.
#pragma once

#include <string>

#include "common/fields.h"

namespace gantry {

struct AskedTres {
  std::string per_job;   // for a step: of the whole step
  std::string per_node;  // from --gpus-per-node and --gres
  std::string per_socket;
  std::string per_task;
  std::string cpus;    // for each GPU: "gres:gpu:2"
  std::string memory;  // for each GPU, in MiB: "gres:gpu:1024"
  std::string bind;    // "gpu:closest"
  std::string freq;    // "gpu:medium"
  friend bool operator==(const AskedTres&, const AskedTres&) = default;
  GANTRY_FIELDS(FIELD(1, per_job), FIELD(2, per_node), FIELD(3, per_socket), FIELD(4, per_task),
                FIELD(5, cpus), FIELD(6, memory), FIELD(7, bind), FIELD(8, freq))
};

}  // namespace gantry
