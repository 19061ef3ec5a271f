// A submit as gbatch sends it from an ordinary shell, about 1 KB long.
#pragma once

#include "common/proto/messages.h"

namespace gantry {

inline proto::SubmitJob sample_submit() {
  proto::SubmitJob m;
  m.request_id = "b1946ac92492d2347c6235b4d2611184";
  m.spec.name = "train-resnet";
  m.spec.partition = "main";
  m.spec.account = "vision";
  m.spec.shape.tasks = 4;
  m.spec.shape.cpus_per_task = 2;
  m.spec.shape.memory_per_node = 8ll << 30;
  m.spec.time_limit = minutes(90);
  m.spec.work_dir = "/home/ada/work/resnet";
  m.spec.std_out = "out/%x-%j.log";
  m.spec.submit_host = "login1";
  m.spec.submit_line = "gbatch --ntasks 4 -c 2 --mem 8G -t 90 train.sh";
  m.spec.given.tasks = m.spec.given.cpus_per_task = true;
  m.script =
      "#!/bin/bash\n#SBATCH -n 4\nset -euo pipefail\nmodule load cuda\n"
      "grun python3 train.py --epochs 40 --batch-size 512 --data /data/imagenet\n";
  m.environment = {{"HOME", "/home/ada"},
                   {"LANG", "en_GB.UTF-8"},
                   {"LOGNAME", "ada"},
                   {"PATH", "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games"},
                   {"SHELL", "/bin/bash"},
                   {"TERM", "xterm-256color"},
                   {"USER", "ada"},
                   {"XDG_RUNTIME_DIR", "/run/user/1000"},
                   {"SSH_CONNECTION", "10.1.2.3 51234 10.1.0.1 22"}};
  return m;
}

}  // namespace gantry
