// gtenant import --slurm: the files of a site become a valid configuration, valid documents and a
// list of what was left out.
#include <doctest/doctest.h>

#include <fstream>

#include "config/config.h"
#include "tests/cli/run_program.h"
#include "tests/golden/golden.h"
#include "tests/places.h"

using namespace gantry;
using namespace gantry::test;

namespace {

std::string folder() {
  return source_dir() + "/tests/slurm/import/";
}

Run import_run(std::vector<std::string> more) {
  std::vector<std::string> argv{"gtenant", "import", "--slurm", folder() + "slurm.conf"};
  argv.insert(argv.end(), more.begin(), more.end());
  return run_program({argv, {}, {}, {}});
}

Run import_text(const ScratchDir& files, const std::string& text) {
  std::ofstream(files.path() + "/slurm.conf") << text;
  return run_program({{"gtenant", "import", "--slurm", files.path() + "/slurm.conf"}, {}, {}, {}});
}

}  // namespace

TEST_CASE("importing a site's slurm.conf, gres.conf and dump prints what the golden file says") {
  const Run run = import_run({folder() + "gres.conf", folder() + "cluster.cfg"});
  CHECK(run.status == 0);
  check_golden("tests/slurm/import/imported.txt", run.out + "--- standard error\n" + run.err);
}

TEST_CASE("the daemons accept the imported configuration, and the imported documents are valid") {
  const ScratchDir files;
  const Run run =
      import_run({folder() + "gres.conf", folder() + "cluster.cfg", "-d", files.path() + "/new"});
  REQUIRE(run.status == 0);
  CHECK(run.out == files.path() + "/new/gantry.yaml\n" + files.path() + "/new/tenants.yaml\n");
  const auto config = load_config(files.path() + "/new/gantry.yaml");
  REQUIRE_MESSAGE(config, config.error().message);
  CHECK(config->nodes.size() == 7);
  CHECK(config->controller.kill_wait == seconds(45));
  const Run check = run_program(
      {{"gtenant", "check", "--offline", "-f", files.path() + "/new/tenants.yaml"}, {}, {}, {}});
  CHECK_MESSAGE(check.status == 0, check.err);
}

TEST_CASE("files that cannot be imported are refused with a message") {
  CHECK(run_program({{"gtenant", "import"}, {}, {}, {}}).status == 2);
  const Run missing = run_program({{"gtenant", "import", "--slurm", "/nonexistent"}, {}, {}, {}});
  CHECK(missing.status == 1);
  CHECK(missing.err == "gtenant import: error: there is no /nonexistent\n");
  const ScratchDir files;
  CHECK(import_text(files, "ClusterName\n").err ==
        "gtenant import: error: slurm.conf:1: \"ClusterName\" is not KEY=VALUE\n");
  CHECK(import_text(files, "Include slurm.conf\n").err ==
        "gtenant import: error: slurm.conf:1: too many includes\n");
  CHECK(import_text(files, "NodeName=n[1-2 CPUs=4 RealMemory=10\n").status == 1);
  const Run stray = import_run({folder() + "nodes.conf"});
  CHECK(stray.status == 1);
  CHECK(stray.err.ends_with("is neither a gres.conf nor a file of sacctmgr dump\n"));
}
