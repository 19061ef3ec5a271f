// scontrol reconfigure and token: requests that concern the controller itself.
#include <fmt/core.h>
#include <unistd.h>

#include "cli/cluster/reconfigure.h"
#include "cli/session.h"
#include "cli/slurm/control/scontrol.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {

int control_reconfigure(const Control& c, const Arguments& args) {
  if (!args.empty()) return refused("too many arguments for keyword:reconfigure\n");
  const auto done = reconfigure(c.program);
  return done ? 0 : control_error("slurm_reconfigure error", done.error());
}

int control_token(const Control& c, const Arguments& args) {
  proto::MakeToken message;
  for (const std::string& arg : args) {
    const KeyValue pair = key_value(arg);
    if (pair.key == "username") {
      message.user = pair.value;
    } else if (pair.key == "lifespan") {
      const auto lifetime = parse_integer("lifespan", pair.value, 1, UINT32_MAX);
      if (!lifetime)
        return refused("scontrol: error: lifespan={}: {}\n", pair.value, lifetime.error().message);
      message.lifetime = seconds(*lifetime);
    } else {
      return refused("scontrol: error: {}: token takes username=NAME and lifespan=SECONDS\n", arg);
    }
  }
  const auto made = ask<proto::TokenMade>(c.program, message);
  if (!made) return control_error("scontrol: error: slurm_fetch_token", made.error());
  fmt::print("SLURM_JWT={}\n", made->token);
  return 0;
}

}  // namespace gantry::cli::slurm
