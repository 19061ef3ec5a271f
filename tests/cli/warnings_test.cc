// What gbatch and sbatch say at a submit about scripts and folders that are probably mistakes.
#include <doctest/doctest.h>

#include "cli/submit/submit.h"
#include "tests/cli/run_program.h"

using namespace gantry;
using namespace gantry::cli;

using Warnings = std::vector<std::string>;

TEST_CASE("directives that are not read are told, with their lines") {
  CHECK(script_warnings("#!/bin/sh\n#SBATCH -t 5\n\n# a comment\n##SBATCH -t 9\ntrue\n", "j.sh") ==
        Warnings{});
  CHECK(
      script_warnings("#!/bin/sh\n# SBATCH --mem=1G\ntrue\n", "j.sh") ==
      Warnings{"j.sh:2 is ignored: a directive is written \"#SBATCH ...\", with a blank behind it "
               "and none inside"});
  CHECK(
      script_warnings("#!/bin/sh\n#GANTRY--mem=1G\ntrue\n", "j.sh") ==
      Warnings{"j.sh:2 is ignored: a directive is written \"#GANTRY ...\", with a blank behind it "
               "and none inside"});
  CHECK(script_warnings("#!/bin/sh\n#SBATCH -t 5\nmodule load x\n#SBATCH --mem=1G\n", "j.sh") ==
        Warnings{"j.sh:4 is ignored: directives end at the first command of the script"});
  CHECK(
      script_warnings("#!/bin/sh\ntrue\n#SBATCH -t 1\n#SBATCH -n 2\n#SBATCH -N 1\n", "-") ==
      Warnings{"-:3 is ignored, with 2 more behind it: directives end at the first command of the "
               "script"});
}

TEST_CASE("words about directives and scripts that a script writes are no mistakes") {
  CHECK(script_warnings("#!/bin/sh\n# SBATCH lines follow\n#SBATCH -t 1\ntrue\n", "j.sh") ==
        Warnings{});
  CHECK(script_warnings("#!/bin/sh\n# see SBATCH\n#SBATCHES\ntrue\n", "j.sh") == Warnings{});
  CHECK(script_warnings(
            "#!/bin/sh\ncat > b.sh <<'END'\n#!/bin/sh\n#SBATCH -t 1\nEND\nsbatch b.sh\n", "j.sh") ==
        Warnings{});
  CHECK(script_warnings("#!/bin/sh\ncat <<-END > b.sh\n\t#SBATCH -t 1\n\tEND\ntrue\n", "j.sh") ==
        Warnings{});
}

TEST_CASE("folders that are missing here are told once") {
  const test::ScratchDir files;
  JobSpec spec;
  spec.work_dir = files.path();
  CHECK(folder_warnings(spec) == Warnings{});
  spec.std_out = "out-%j.txt";
  spec.std_err = "logs-%j/err";  // the folder is decided by the job's number
  CHECK(folder_warnings(spec) == Warnings{});
  spec.std_out = spec.std_err = "logs/%j.out";
  CHECK(folder_warnings(spec) ==
        Warnings{"the folder " + files.path() +
                 "/logs of --output does not exist here; the job fails unless its node has it"});
  spec.std_out = "/dev/null";
  CHECK(folder_warnings(spec) ==
        Warnings{"the folder " + files.path() +
                 "/logs of --error does not exist here; the job fails unless its node has it"});
  spec.work_dir += "/none";
  CHECK(folder_warnings(spec) ==
        Warnings{"the working directory " + spec.work_dir +
                 " does not exist here; the job fails unless its node has it"});
}
