// The options with which a job asks for resources that its tenant owns; see submit_option.h.
#pragma once

#include "cli/submit/job_setters.h"
#include "cli/submit/submit_option.h"

namespace gantry::cli {

inline constexpr SubmitOption kAccessOptionTable[] = {
    {.option = takes("dataset", "NAME[:rw]",
                     "Let the job see this dataset, at its own path: to read it, or with :rw to "
                     "write to it too; may be given several times",
                     call<job::set_dataset>),
     .families = Families::gantry},
    {.option = takes("identity", "AUDIENCE,...",
                     "For each audience a signed token that says which job this is, in "
                     "/run/secrets/identity-AUDIENCE, renewed while the job runs",
                     call<job::set_identity>),
     .families = Families::gantry},
    {.option = takes("sandbox", "LEVEL",
                     "How strong the wall around the job is: standard, hardened (fewer system "
                     "calls, less of the machine to be seen), gvisor (a kernel of its own in user "
                     "space) or vm; gvisor and vm where nodes have them",
                     call<job::set_sandbox>),
     .slurm = {.help = "How strong the wall around the job is: standard, hardened, gvisor or vm "
                       "(ours)"}},
    {.option = takes("secret", "NAME[@VERSION][:FILE]",
                     "Put this secret of the tenant into /run/secrets/FILE (default: NAME); may be "
                     "given several times",
                     call<job::set_secret>),
     .families = Families::gantry},
    {.option = takes(
         "stage-in", "KEY:PATH",
         "Before the script starts, copy this key of the tenant's object store to a file, or with "
         "a / at its end all that begins with it to a directory; may be given several times",
         call<job::add_stage_in>),
     .families = Families::gantry},
    {.option = takes("stage-out", "PATH:KEY",
                     "After the script has ended, copy a file to this key, or a directory to one "
                     "with a / at its end; may be given several times",
                     call<job::add_stage_out>),
     .families = Families::gantry},
};

}  // namespace gantry::cli
