// gantry-fake-gpu FLEET.json COMMAND...: shows and changes the GPUs of the stand-in driver while
// daemons use it. The state is in FLEET.json.state, which is made if it does not exist; `init`
// makes it again, which is not allowed while a daemon has it open.
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "tests/nvml/control.h"

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() < 2) {
    std::fprintf(stderr, "usage: gantry-fake-gpu FLEET.json COMMAND...\n  init\n%s",
                 gantry::fake::control_usage().c_str());
    return 2;
  }
  const std::string path = words[0] + ".state";
  const bool init = words[1] == "init";
  if (init) ::unlink(path.c_str());
  const auto mapping = gantry::fake::Mapping::open(path, words[0]);
  if (!mapping) {
    std::fprintf(stderr, "gantry-fake-gpu: %s\n", mapping.error().message.c_str());
    return 1;
  }
  if (init) return 0;
  const auto done = gantry::fake::control(**mapping, std::span(words).subspan(1));
  std::fputs(done ? done->c_str() : (done.error().message + "\n").c_str(), done ? stdout : stderr);
  return done ? 0 : 1;
}
